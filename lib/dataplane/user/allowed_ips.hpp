// Which peer a tunnel address belongs to: longest-prefix match over the allowed IPs of all peers.
//
// One path-compressed binary trie per address family: a node is visited only where prefixes
// branch, so that a lookup among a few prefixes takes a few steps.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "util/address.hpp"

namespace adit::dataplane::user {

struct Peer;

class AllowedIps {
 public:
  /// Gives `prefix` to `peer`, also when another peer had it.
  void insert(const Prefix& prefix, Peer* peer);
  /// Forgets all prefixes of `peer`.
  void removePeer(const Peer* peer);

  /// The peer with the longest prefix that contains the address, or null.
  [[nodiscard]] Peer* find(const IpAddress& address) const;
  /// The same for addresses as they stand in a packet.
  [[nodiscard]] Peer* findV4(const std::uint8_t* address) const;
  [[nodiscard]] Peer* findV6(const std::uint8_t* address) const;

 private:
  // An address as a number: IPv4 in the topmost 32 bits.
  struct Key {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
  };
  struct Node {
    Key key;
    Key mask;
    unsigned bits = 0;
    Peer* peer = nullptr;
    std::array<std::int32_t, 2> children{-1, -1};
  };
  using Trie = std::vector<Node>;

  static Key keyOf(const IpAddress& address);
  static Key maskOf(unsigned bits);
  static unsigned bitAt(const Key& key, unsigned position);
  static unsigned commonBits(const Key& a, const Key& b, unsigned limit);
  static Peer* lookUp(const Trie& trie, const Key& key);
  static std::int32_t addNode(Trie& trie, const Key& key, unsigned bits, Peer* peer);
  static void insertInto(Trie& trie, const Key& key, unsigned bits, Peer* peer);

  // What is inserted, from which the tries are rebuilt on removal.
  std::map<Prefix, Peer*> entries_;
  Trie v4_;
  Trie v6_;
};

}  // namespace adit::dataplane::user
