// What `adit init` and `adit invite` want to know of the machine: its public side, and networks and
// ports that nobody uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crypto/random.hpp"
#include "netlink/route.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct PublicSide {
  std::string interface;
  /// Other interfaces have a default route too.
  bool ambiguous = false;
  /// The first of each family that the Internet can route to.
  std::vector<IpAddress> addresses;
};

/// The interface `wanted`, or where that is empty the one of the default route.
Result<PublicSide> publicSide(netlink::Routing& routing, const std::string& wanted);

/// False for what only makes sense inside a network: private (RFC 1918), shared (RFC 6598), unique
/// local (RFC 4193), link-local and loopback addresses.
bool isPublic(const IpAddress& address);

/// A /24 of 10.0.0.0/8, at random so that it is not the one of every other home, without a route
/// or an address of this machine in it or around it.
Result<Prefix> freeNetworkV4(netlink::Routing& routing, crypto::RandomSource& random);
/// A /64 of a random unique local prefix (RFC 4193, section 3.2).
Prefix randomNetworkV6(crypto::RandomSource& random);
/// Whether a server may give these addresses to this machine, which makes each one's network its
/// own: private ones of a usual size, away from all that the machine can reach without its default
/// route.
Result<void> checkOffered(netlink::Routing& routing,
                          const std::vector<InterfaceAddress>& addresses);
/// The host `number` of a network; `number` must fit.
IpAddress hostOf(const Prefix& network, std::uint32_t number);

/// 51820, or the next UDP port that no socket of this machine has.
Result<std::uint16_t> freePort();

}  // namespace adit::cli
