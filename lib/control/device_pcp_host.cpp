// What PortServer knows of the machine and tells pcp::Server.
#include <algorithm>

#include "control/device_pcp_server.hpp"

namespace adit::control {
namespace {

constexpr auto kHoldersFresh = std::chrono::seconds(1);

bool overlap(const nat::Mapping& mapping, const pcp::PortRange& ports) {
  return static_cast<std::uint8_t>(mapping.protocol) == ports.protocol &&
         mapping.firstPort <= ports.last && ports.first <= mapping.lastPort;
}

}  // namespace

const pcp::PeerPolicy* PortServer::peerOf(const IpAddress& address) const {
  const pcp::PeerPolicy* owner = nullptr;
  unsigned longest = 0;
  for (const PortPeer& peer : facts_.peers) {
    for (const Prefix& prefix : peer.allowedIps) {
      if (prefix.contains(address) && (owner == nullptr || prefix.length() > longest)) {
        longest = prefix.length();
        owner = &peer.policy;
      }
    }
  }
  return owner;
}

bool PortServer::isForeignHost(const IpAddress& address) const {
  return !address.isUnspecified() && !address.isLoopback() && !address.isMulticast() &&
         !address.isLinkLocalV6() && std::ranges::find(facts_.own, address) == facts_.own.end() &&
         std::ranges::find(facts_.addresses, address, &InterfaceAddress::address) ==
             facts_.addresses.end();
}

std::optional<IpAddress> PortServer::externalAddress(int family) const {
  const auto found = std::ranges::find(facts_.external, family, &IpAddress::family);
  return found == facts_.external.end() ? std::nullopt : std::optional(*found);
}

bool PortServer::isReserved(const pcp::PortRange& ports) const {
  return reservation(ports).has_value();
}

std::optional<std::string> PortServer::reservation(const pcp::PortRange& ports) const {
  const nat::RulesetSpec& fixed = facts_.ruleset;
  if (fixed.ownPort != 0 && ports.contains(pcp::kUdp, fixed.ownPort)) {
    return fmt::format("udp/{} is the tunnel's own port", fixed.ownPort);
  }
  for (const nat::Mapping& mapping : fixed.mappings) {
    if (overlap(mapping, ports)) {
      return fmt::format("the server's file maps {} to {}", mapping.listenText(),
                         mapping.targetHost);
    }
  }
  return std::nullopt;
}

void PortServer::refreshHolders() const {
  const BootTime now = parts_.clock.now();
  if (!holdersRead_ || now - *holdersRead_ >= kHoldersFresh) {
    holdersRead_ = now;
    listeners_ = nat::localListeners().value_or(std::vector<nat::Listener>{});
    claims_ = nat::claimsOfOthers(parts_.interface).value_or(std::vector<nat::Claim>{});
    knownPorts_.clear();
  }
}

bool PortServer::isHeld(std::uint8_t protocol, std::uint16_t port, int family) const {
  refreshHolders();
  if (const KnownPorts& known = knownPorts_[{protocol, family}]; known.asked.test(port)) {
    return known.held.test(port);
  }
  // It may refresh, too.
  const bool held = holderOf({protocol, port, port}, family).has_value();
  KnownPorts& known = knownPorts_[{protocol, family}];
  known.asked.set(port);
  known.held.set(port, held);
  return held;
}

std::optional<std::string> PortServer::holderOf(const pcp::PortRange& ports, int family) const {
  if (auto reserved = reservation(ports)) {
    return reserved;
  }
  refreshHolders();
  // Without the mappings of the file, which may be many: they are asked about above.
  nat::RulesetSpec wanted;
  wanted.interface = facts_.ruleset.interface;
  wanted.publicInterfaces = facts_.ruleset.publicInterfaces;
  wanted.ownPort = facts_.ruleset.ownPort;
  wanted.tunnelAddresses = facts_.ruleset.tunnelAddresses;
  nat::Mapping mapping;
  mapping.protocol = static_cast<nat::Protocol>(ports.protocol);
  mapping.firstPort = ports.first;
  mapping.lastPort = ports.last;
  // Only its family counts.
  (family == AF_INET6 ? mapping.targetV6 : mapping.targetV4) =
      family == AF_INET6 ? IpAddress::anyV6() : IpAddress::anyV4();
  wanted.mappings = {mapping};
  // Peers need not know which program it is.
  if (!nat::listenerConflicts(wanted, listeners_).empty()) {
    return fmt::format("{} is in use on the server itself", ports.toString());
  }
  if (!nat::claimConflicts(wanted, claims_).empty()) {
    return fmt::format("another tunnel of the server maps {}", ports.toString());
  }
  return std::nullopt;
}

std::optional<pcp::StaticMapping> PortServer::staticMapping(std::uint8_t protocol,
                                                            const IpAddress& target,
                                                            std::uint16_t port) const {
  for (const nat::Mapping& mapping : facts_.ruleset.mappings) {
    const auto& leadsTo = target.isV4() ? mapping.targetV4 : mapping.targetV6;
    const auto size = static_cast<std::uint16_t>(mapping.lastPort - mapping.firstPort + 1);
    if (static_cast<std::uint8_t>(mapping.protocol) == protocol && leadsTo == target &&
        port >= mapping.targetPort && port - mapping.targetPort < size) {
      return pcp::StaticMapping{.firstExternal = mapping.firstPort,
                                .firstInternal = mapping.targetPort,
                                .size = size,
                                .allow = mapping.allow};
    }
  }
  return std::nullopt;
}

std::vector<PortRequestSnapshot> PortServer::snapshots() const {
  using Role = PortRequestSnapshot::Role;
  using State = PortRequestSnapshot::State;
  std::vector<PortRequestSnapshot> all;
  if (!server_) {
    return all;
  }
  const BootTime now = parts_.clock.now();
  for (const pcp::Lease& lease : server_->leases()) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(lease.expires - now);
    all.push_back(
        {.role = Role::Lease,
         .state = State::Granted,
         .peer = nameOf(lease.peer),
         .protocol = lease.natPmp ? "NAT-PMP" : "PCP",
         .listen = lease.external().toString(),
         .target = Endpoint{lease.target, lease.firstInternal, 0}.toString(),
         .lifetime = static_cast<std::uint64_t>(std::max<std::int64_t>(0, left.count()))});
  }
  for (const pcp::RefusedRequest& refused : server_->refusals()) {
    all.push_back({.role = Role::Refusal,
                   .state = State::Refused,
                   .peer = refused.peerName,
                   .protocol = "PCP",
                   .listen = refused.external.toString(),
                   .target = Endpoint{refused.target, refused.internalPort, 0}.toString(),
                   .reason = fmt::format("{}: {}", pcp::resultName(refused.code), refused.reason)});
  }
  return all;
}

}  // namespace adit::control
