// What the server has to know of the machine and of its peers: injected, so that the protocol needs
// neither a daemon nor a kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pcp/lease.hpp"
#include "util/address.hpp"

namespace adit::pcp {

/// What a peer may ask for.
struct PeerPolicy {
  /// Stable over restarts, unlike a name.
  std::string id = {};
  /// For people.
  std::string name = {};
  /// External ports (AllowMaps).
  std::vector<PortRange> grants = {};
  /// Also for addresses behind it.
  bool thirdParty = false;
};

/// A mapping of the server's own file.
struct StaticMapping {
  std::uint16_t firstExternal = 0;
  std::uint16_t firstInternal = 0;
  std::uint16_t size = 1;
  /// Client networks that are let in; empty is all.
  std::vector<Prefix> allow = {};
};

class Host {
 public:
  virtual ~Host() = default;

  /// The peer whose allowed addresses hold this one, of all peers the one with the longest prefix;
  /// null for none. The pointer holds until the host's peers change.
  [[nodiscard]] virtual const PeerPolicy* peerOf(const IpAddress& address) const = 0;
  /// Whether packets may be sent to an address at all: neither this machine's nor one that no host
  /// has.
  [[nodiscard]] virtual bool isForeignHost(const IpAddress& address) const = 0;
  /// The public address of a family.
  [[nodiscard]] virtual std::optional<IpAddress> externalAddress(int family) const = 0;
  /// What has a port of the public side, in words: what isReserved(), another tunnel, a local
  /// listener. Leases are not asked about.
  [[nodiscard]] virtual std::optional<std::string> holderOf(const PortRange& ports,
                                                            int family) const = 0;
  /// The same about one port, without words: asked about every port of AllowMaps where a request
  /// leaves the choice, so it should cost next to nothing.
  [[nodiscard]] virtual bool isHeld(std::uint8_t protocol, std::uint16_t port, int family) const {
    return holderOf({protocol, port, port}, family).has_value();
  }
  /// The configuration has some of these ports for itself: the tunnel, or a mapping of the file.
  /// Unlike a listener, which may come later, it also takes ports away from leases.
  [[nodiscard]] virtual bool isReserved(const PortRange& ports) const = 0;
  /// The mapping of the file that leads to a port of a target.
  [[nodiscard]] virtual std::optional<StaticMapping> staticMapping(std::uint8_t protocol,
                                                                   const IpAddress& target,
                                                                   std::uint16_t port) const = 0;
};

}  // namespace adit::pcp
