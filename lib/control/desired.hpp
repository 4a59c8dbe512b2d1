// From the configuration to the network state that it asks for. Pure: everything about the
// machine comes in as `NetworkFacts`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "nat/mapping.hpp"
#include "nat/prerequisites.hpp"
#include "netlink/route.hpp"

namespace adit::control {

/// What the derivation has to know of the machine and of the running device.
struct NetworkFacts {
  std::string interface;
  std::uint32_t interfaceIndex = 0;
  /// The interface that the file calls Public does not exist.
  bool publicMissing = false;
  /// The NIC of the default route, empty where there is none.
  std::string defaultInterface;
  /// Smallest MTU on the way to the peers, or of the default route; 0 where neither is known.
  std::uint32_t pathMtu = 0;
  /// A routing table (and mark) that nobody else uses, for Table = auto and reply.
  std::uint32_t ownTable = 0;
  std::uint16_t listenPort = 0;
  /// What an unbound socket sends from towards the Internet, by the machine's own routes: at most
  /// one address of each family.
  std::vector<IpAddress> homeAddresses;
};

/// The mappings of a file, one for each protocol, in file order.
struct MappingsBySide {
  /// Their targets are behind a peer: ports of this host's public side.
  std::vector<nat::Mapping> translated;
  /// Their targets are this host, or hosts that no peer stands for: ports of the other end's.
  std::vector<nat::Mapping> declared;
};
struct DesiredNetwork {
  std::uint32_t mtu = 0;
  std::vector<InterfaceAddress> addresses;
  std::vector<netlink::Route> routes;
  /// In the order in which they must be added: the kernel evaluates the last one first.
  std::vector<netlink::Rule> rules;
  /// Of the tunnel's own datagrams; 0 is none.
  std::uint32_t firewallMark = 0;
  nat::RulesetSpec ruleset;
  /// All mappings of the file; the ruleset has the translated ones where there is a public side.
  MappingsBySide maps;
  /// Why no mapping can work, empty when nothing is known against it.
  std::string mapsInactive;
  std::vector<nat::SysctlNeed> sysctls;
};

/// The default route goes into a table of its own: Table = auto with a /0 among the allowed IPs,
/// or Table = reply.
bool needsOwnTable(const config::Config& config);

/// `leases`: mappings that peers have asked for, beside the file's.
DesiredNetwork desiredNetwork(const config::Config& config, const NetworkFacts& facts,
                              const std::vector<nat::Mapping>& leases = {});

/// Of the whole file.
MappingsBySide mappingsBySide(const config::Config& config);

}  // namespace adit::control
