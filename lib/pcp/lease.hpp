// Mappings that peers have asked for, and who holds which port.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pcp/wire.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"

namespace adit::pcp {

/// Ports of one protocol, both ends included.
struct PortRange {
  std::uint8_t protocol = 0;
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  [[nodiscard]] bool contains(std::uint8_t ofProtocol, unsigned port) const {
    return protocol == ofProtocol && port >= first && port <= last;
  }
  /// "tcp/8000-8010"
  [[nodiscard]] std::string toString() const;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

struct Lease {
  /// Who holds it, as PeerPolicy::id.
  std::string peer = {};
  /// Where the request came from, and where news about it go to.
  Endpoint client = {};
  /// Where the mapping leads: the client itself, or with THIRD_PARTY a host behind it.
  IpAddress target = {};
  std::uint8_t protocol = 0;
  std::uint16_t firstInternal = 0;
  std::uint16_t firstExternal = 0;
  std::uint16_t size = 1;
  Nonce nonce{};
  /// Asked for by NAT-PMP, which has no nonce.
  bool natPmp = false;
  std::vector<Prefix> allow = {};
  bool masquerade = false;
  bool hairpin = false;
  /// Bits per second; 0 is unlimited.
  std::uint64_t rate = 0;
  BootTime expires{};
  /// Of the request that decided last.
  BootTime updated{};

  [[nodiscard]] PortRange external() const {
    return {protocol, firstExternal, static_cast<std::uint16_t>(firstExternal + size - 1)};
  }
  [[nodiscard]] bool holdsInternal(std::uint8_t ofProtocol, const IpAddress& address,
                                   std::uint16_t port) const {
    return protocol == ofProtocol && target == address && port >= firstInternal &&
           port - firstInternal < size;
  }
  friend bool operator==(const Lease&, const Lease&) = default;
};

/// All leases of a server. Small enough for linear searches: a few thousand at most.
class LeaseTable {
 public:
  [[nodiscard]] const std::vector<Lease>& all() const { return leases_; }

  /// The lease that an internal port of a target belongs to.
  [[nodiscard]] Lease* find(std::uint8_t protocol, const IpAddress& target, std::uint16_t port);
  /// All that hold any of `size` internal ports from `first` on.
  [[nodiscard]] std::vector<Lease*> within(std::uint8_t protocol, const IpAddress& target,
                                           std::uint16_t first, std::uint16_t size);
  [[nodiscard]] std::size_t countOf(std::string_view peer) const;
  /// Ports of a peer's leases that lead to ports of another number.
  [[nodiscard]] std::size_t shiftedOf(std::string_view peer) const;

  /// Whether external ports are held by somebody else: not by the same peer for the same ports of
  /// its address of the other family, which is the same mapping for other clients.
  [[nodiscard]] bool isHeld(const Lease& wanted) const;
  /// The external ports of one protocol that are held, for a lease whose own are not chosen yet.
  [[nodiscard]] std::bitset<65536> heldPorts(std::uint8_t protocol) const;

  void add(Lease lease) { leases_.push_back(std::move(lease)); }
  /// Removes what `gone` says; returns those that were.
  std::vector<Lease> remove(const std::function<bool(const Lease&)>& gone);
  /// When the first lease ends; nothing where there is none.
  [[nodiscard]] std::optional<BootTime> nextExpiry() const;

 private:
  std::vector<Lease> leases_;
};

}  // namespace adit::pcp
