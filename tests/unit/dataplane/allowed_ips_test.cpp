#include "dataplane/user/allowed_ips.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "dataplane/user/peer.hpp"

using namespace adit;
using namespace adit::dataplane::user;

namespace {

Prefix prefix(const char* text) {
  return *Prefix::parse(text);
}
IpAddress address(const char* text) {
  return *IpAddress::parse(text);
}

// Looks at every prefix.
struct LinearOracle {
  std::map<Prefix, Peer*> entries;

  [[nodiscard]] Peer* find(const IpAddress& where) const {
    Peer* best = nullptr;
    int length = -1;
    for (const auto& [range, peer] : entries) {
      if (range.contains(where) && static_cast<int>(range.length()) > length) {
        best = peer;
        length = static_cast<int>(range.length());
      }
    }
    return best;
  }
};

// Few distinct bits, so that prefixes nest and branch often.
IpAddress randomAddress(std::mt19937& random, bool v6) {
  std::array<std::uint8_t, 16> bytes{};
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 2 * 0x80);
  }
  return v6 ? IpAddress::fromV6(bytes) : IpAddress::fromV4(std::span(bytes).first<4>());
}

}  // namespace

TEST_CASE("the longest prefix wins", "[allowed-ips]") {
  std::array<Peer, 4> peers{Peer{1, {}}, Peer{2, {}}, Peer{3, {}}, Peer{4, {}}};
  AllowedIps table;
  CHECK(table.find(address("10.0.0.1")) == nullptr);
  table.insert(prefix("10.0.0.0/8"), &peers[0]);
  table.insert(prefix("10.1.0.0/16"), &peers[1]);
  table.insert(prefix("10.1.2.3/32"), &peers[2]);
  table.insert(prefix("fd00::/8"), &peers[3]);
  CHECK(table.find(address("10.9.9.9")) == &peers[0]);
  CHECK(table.find(address("10.1.9.9")) == &peers[1]);
  CHECK(table.find(address("10.1.2.3")) == &peers[2]);
  CHECK(table.find(address("10.1.2.2")) == &peers[1]);
  CHECK(table.find(address("11.0.0.0")) == nullptr);
  CHECK(table.find(address("fd00::1")) == &peers[3]);
  CHECK(table.find(address("fe00::1")) == nullptr);
  table.insert(prefix("0.0.0.0/0"), &peers[3]);
  CHECK(table.find(address("11.0.0.0")) == &peers[3]);
  CHECK(table.find(address("fe00::1")) == nullptr);
}

TEST_CASE("a prefix moves to its newest owner, and goes with it", "[allowed-ips]") {
  std::array<Peer, 2> peers{Peer{1, {}}, Peer{2, {}}};
  AllowedIps table;
  table.insert(prefix("10.0.0.0/24"), &peers[0]);
  table.insert(prefix("10.0.0.0/24"), &peers[1]);
  CHECK(table.find(address("10.0.0.1")) == &peers[1]);
  table.removePeer(&peers[0]);
  CHECK(table.find(address("10.0.0.1")) == &peers[1]);
  table.removePeer(&peers[1]);
  CHECK(table.find(address("10.0.0.1")) == nullptr);
}

TEST_CASE("lookups in any table equal those of a linear search", "[allowed-ips]") {
  std::mt19937 random(4);
  std::vector<std::unique_ptr<Peer>> peers;
  for (noise::PeerId id = 0; id < 8; ++id)
    peers.push_back(std::make_unique<Peer>(id, crypto::PublicKey{}));
  for (int round = 0; round < 30; ++round) {
    AllowedIps table;
    LinearOracle oracle;
    for (int step = 0; step < 120; ++step) {
      Peer* peer = peers[random() % peers.size()].get();
      if (random() % 20 == 0) {
        table.removePeer(peer);
        std::erase_if(oracle.entries, [&](const auto& entry) { return entry.second == peer; });
      } else {
        const IpAddress base = randomAddress(random, random() % 2 == 0);
        const Prefix range(base, static_cast<unsigned>(random() % (base.bits() + 1)));
        table.insert(range, peer);
        oracle.entries[range] = peer;
      }
      for (int i = 0; i < 20; ++i) {
        const IpAddress where = randomAddress(random, random() % 2 == 0);
        REQUIRE(table.find(where) == oracle.find(where));
        const std::uint8_t* bytes = where.bytes().data();
        REQUIRE((where.isV6() ? table.findV6(bytes) : table.findV4(bytes)) == oracle.find(where));
      }
      for (const auto& [range, owner] : oracle.entries) {
        REQUIRE(table.find(range.address()) == oracle.find(range.address()));
      }
    }
  }
}
