#include "dataplane/user/allowed_ips.hpp"

#include <algorithm>
#include <bit>

#include "dataplane/user/bytes.hpp"

namespace adit::dataplane::user {

AllowedIps::Key AllowedIps::keyOf(const IpAddress& address) {
  const std::uint8_t* bytes = address.bytes().data();
  if (address.isV4()) return {std::uint64_t{loadBe32(bytes)} << 32, 0};
  return {loadBe64(bytes), loadBe64(bytes + 8)};
}

AllowedIps::Key AllowedIps::maskOf(unsigned bits) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  if (bits == 0) return {0, 0};
  if (bits <= 64) return {kAll << (64 - bits), 0};
  return {kAll, kAll << (128 - bits)};
}

unsigned AllowedIps::bitAt(const Key& key, unsigned position) {
  const std::uint64_t word = position < 64 ? key.high : key.low;
  return static_cast<unsigned>(word >> (63 - position % 64)) & 1U;
}

unsigned AllowedIps::commonBits(const Key& a, const Key& b, unsigned limit) {
  const std::uint64_t high = a.high ^ b.high;
  const int common = high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(a.low ^ b.low);
  return std::min(static_cast<unsigned>(common), limit);
}

std::int32_t AllowedIps::addNode(Trie& trie, const Key& key, unsigned bits, Peer* peer) {
  const Key mask = maskOf(bits);
  trie.push_back({{key.high & mask.high, key.low & mask.low}, mask, bits, peer});
  return static_cast<std::int32_t>(trie.size() - 1);
}

void AllowedIps::insertInto(Trie& trie, const Key& key, unsigned bits, Peer* peer) {
  if (trie.empty()) addNode(trie, {}, 0, nullptr);
  // Node 0 is the root, with no bits; it matches everything.
  std::int32_t at = 0;
  for (;;) {
    if (trie[at].bits == bits) {
      trie[at].peer = peer;
      return;
    }
    const unsigned side = bitAt(key, trie[at].bits);
    const std::int32_t child = trie[at].children[side];
    if (child < 0) {
      const std::int32_t leaf = addNode(trie, key, bits, peer);
      trie[at].children[side] = leaf;
      return;
    }
    const unsigned common = commonBits(key, trie[child].key, std::min(bits, trie[child].bits));
    if (common == trie[child].bits) {
      at = child;
      continue;
    }
    // The paths part within the child's bits: a node between them.
    const std::int32_t fork = addNode(trie, key, common, common == bits ? peer : nullptr);
    trie[fork].children[bitAt(trie[child].key, common)] = child;
    trie[at].children[side] = fork;
    if (common != bits) {
      const std::int32_t leaf = addNode(trie, key, bits, peer);
      trie[fork].children[bitAt(key, common)] = leaf;
    }
    return;
  }
}

void AllowedIps::insert(const Prefix& prefix, Peer* peer) {
  entries_[prefix] = peer;
  insertInto(prefix.address().isV4() ? v4_ : v6_, keyOf(prefix.address()), prefix.length(), peer);
}

void AllowedIps::removePeer(const Peer* peer) {
  if (std::erase_if(entries_, [peer](const auto& entry) { return entry.second == peer; }) == 0) {
    return;
  }
  v4_.clear();
  v6_.clear();
  for (const auto& [prefix, owner] : entries_) {
    insertInto(prefix.address().isV4() ? v4_ : v6_, keyOf(prefix.address()), prefix.length(),
               owner);
  }
}

Peer* AllowedIps::lookUp(const Trie& trie, const Key& key) {
  Peer* best = nullptr;
  std::int32_t at = trie.empty() ? -1 : 0;
  while (at >= 0) {
    const Node& node = trie[at];
    if ((((key.high ^ node.key.high) & node.mask.high) |
         ((key.low ^ node.key.low) & node.mask.low)) != 0) {
      break;
    }
    if (node.peer != nullptr) best = node.peer;
    // A full-length node has no children, so bit 128 is never asked for beyond them.
    at = node.bits == 128 ? -1 : node.children[bitAt(key, node.bits)];
  }
  return best;
}

Peer* AllowedIps::find(const IpAddress& address) const {
  return lookUp(address.isV4() ? v4_ : v6_, keyOf(address));
}

Peer* AllowedIps::findV4(const std::uint8_t* address) const {
  return lookUp(v4_, {std::uint64_t{loadBe32(address)} << 32, 0});
}

Peer* AllowedIps::findV6(const std::uint8_t* address) const {
  return lookUp(v6_, {loadBe64(address), loadBe64(address + 8)});
}

}  // namespace adit::dataplane::user
