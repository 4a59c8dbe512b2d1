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

struct DesiredNetwork {
  std::uint32_t mtu = 0;
  std::vector<InterfaceAddress> addresses;
  std::vector<netlink::Route> routes;
  /// In the order in which they must be added: the kernel evaluates the last one first.
  std::vector<netlink::Rule> rules;
  /// Of the tunnel's own datagrams; 0 is none.
  std::uint32_t firewallMark = 0;
  nat::RulesetSpec ruleset;
  std::vector<nat::SysctlNeed> sysctls;
};

/// The default route goes into a table of its own: Table = auto with a /0 among the allowed IPs,
/// or Table = reply.
bool needsOwnTable(const config::Config& config);

DesiredNetwork desiredNetwork(const config::Config& config, const NetworkFacts& facts);

/// One mapping for each protocol, in file order.
std::vector<nat::Mapping> resolvedMappings(const std::vector<config::MapConfig>& maps);

}  // namespace adit::control
