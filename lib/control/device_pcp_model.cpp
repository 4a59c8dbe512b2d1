#include "control/device_pcp_model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "control/desired.hpp"

namespace adit::control {
namespace {

void addGrant(std::vector<pcp::PortRange>& grants, const config::PortGrant& grant) {
  using Protocol = config::PortGrant::Protocol;
  if (grant.protocol != Protocol::Udp) {
    grants.push_back({pcp::kTcp, grant.first, grant.last});
  }
  if (grant.protocol != Protocol::Tcp) {
    grants.push_back({pcp::kUdp, grant.first, grant.last});
  }
}

/// The first address of a network that a host may have.
IpAddress firstHost(const Prefix& network) {
  std::array<std::uint8_t, 16> bytes{};
  std::ranges::copy(network.address().bytes(), bytes.begin());
  const std::size_t last = network.address().bytes().size() - 1;
  bytes[last] |= 1;
  return network.address().isV4() ? IpAddress::fromV4(std::span(bytes).first<4>())
                                  : IpAddress::fromV6(bytes);
}

std::optional<IpAddress> serverIn(const InterfaceAddress& own,
                                  const std::vector<Prefix>& allowedIps) {
  std::optional<IpAddress> alone;
  for (const Prefix& prefix : allowedIps) {
    const IpAddress& address = prefix.address();
    if (address.family() != own.address.family() || prefix.length() != address.bits()) {
      continue;
    }
    if (own.prefix().contains(address)) {
      return address;
    }
    alone = alone ? alone : address;
  }
  const IpAddress first = firstHost(own.prefix());
  const bool usable =
      own.length + 1 < own.address.bits() && first != own.address &&
      std::ranges::any_of(allowedIps, [&](const Prefix& prefix) { return prefix.contains(first); });
  return usable ? std::optional(first) : alone;
}

}  // namespace

std::vector<PortPeer> portPeers(const config::Config& config) {
  std::vector<PortPeer> peers;
  for (const config::PeerConfig& peer : config.peers) {
    PortPeer& added = peers.emplace_back();
    added.policy.id = peer.publicKey.toBase64();
    added.policy.name = peer.name.empty() ? added.policy.id : peer.name;
    added.policy.thirdParty = peer.allowThirdParty;
    for (const config::PortGrant& grant : peer.allowMaps) {
      addGrant(added.policy.grants, grant);
    }
    added.allowedIps = peer.allowedIps;
  }
  return peers;
}

bool servesPorts(const config::Config& config) {
  return std::ranges::any_of(
             config.peers,
             [](const config::PeerConfig& peer) { return !peer.allowMaps.empty(); }) ||
         !mappingsBySide(config).translated.empty();
}

std::vector<pcp::Path> portPaths(const config::Config& config) {
  std::vector<pcp::Path> paths;
  for (const int family : {AF_INET, AF_INET6}) {
    const auto own = std::ranges::find_if(
        config.interface.addresses,
        [family](const InterfaceAddress& address) { return address.address.family() == family; });
    if (own == config.interface.addresses.end()) {
      continue;
    }
    for (const config::PeerConfig& peer : config.peers) {
      if (!peer.endpoint) {
        continue;
      }
      if (const auto server = serverIn(*own, peer.allowedIps)) {
        paths.push_back({own->address, *server});
        break;
      }
    }
  }
  return paths;
}

std::vector<pcp::WantedMapping> wantedPorts(const std::vector<nat::Mapping>& declared,
                                            const std::vector<pcp::Path>& paths) {
  std::vector<pcp::WantedMapping> wanted;
  for (const nat::Mapping& mapping : declared) {
    for (const auto& target : {mapping.targetV4, mapping.targetV6}) {
      const bool reachable = target && std::ranges::any_of(paths, [&](const pcp::Path& path) {
                               return path.self.family() == target->family();
                             });
      if (!reachable) {
        continue;
      }
      pcp::WantedMapping& want = wanted.emplace_back();
      want.label = mapping.label;
      want.protocol = static_cast<std::uint8_t>(mapping.protocol);
      want.firstExternal = mapping.firstPort;
      want.firstInternal = mapping.targetPort;
      want.size = static_cast<std::uint16_t>(mapping.lastPort - mapping.firstPort + 1);
      want.target = *target;
      want.allow = mapping.allow;
      want.masquerade = mapping.source == nat::SourceMode::Masquerade;
      want.hairpin = mapping.hairpin;
      want.rate = mapping.rate.value_or(0);
    }
  }
  return wanted;
}

std::vector<nat::Mapping> leaseMappings(const std::vector<pcp::Lease>& leases,
                                        const std::vector<PortPeer>& peers) {
  struct Made {
    nat::Mapping mapping;
    BootTime updated{};
  };
  std::map<std::tuple<std::uint8_t, std::uint16_t>, Made> made;
  for (const pcp::Lease& lease : leases) {
    auto& [mapping, updated] = made[{lease.protocol, lease.firstExternal}];
    (lease.target.isV4() ? mapping.targetV4 : mapping.targetV6) = lease.target;
    if (mapping.firstPort != 0 && lease.updated < updated) {
      continue;
    }
    const auto peer = std::ranges::find_if(
        peers, [&](const PortPeer& other) { return other.policy.id == lease.peer; });
    updated = lease.updated;
    mapping.protocol = static_cast<nat::Protocol>(lease.protocol);
    mapping.firstPort = lease.external().first;
    mapping.lastPort = lease.external().last;
    mapping.targetPort = lease.firstInternal;
    mapping.targetHost = peer == peers.end() ? lease.peer : peer->policy.name;
    mapping.label = fmt::format("{} asked for by {}", mapping.listenText(), mapping.targetHost);
    mapping.source = lease.masquerade ? nat::SourceMode::Masquerade : nat::SourceMode::Preserve;
    mapping.hairpin = lease.hairpin;
    mapping.allow = lease.allow;
    mapping.rate = lease.rate == 0 ? std::nullopt : std::optional(lease.rate);
  }
  std::vector<nat::Mapping> mappings;
  for (auto& [key, entry] : made) {
    mappings.push_back(std::move(entry.mapping));
  }
  return mappings;
}

nat::Mapping ownSocket(std::uint16_t port, const std::vector<InterfaceAddress>& addresses) {
  nat::Mapping mapping;
  mapping.protocol = nat::Protocol::Udp;
  mapping.firstPort = mapping.lastPort = mapping.targetPort = port;
  for (const InterfaceAddress& own : addresses) {
    (own.address.isV4() ? mapping.targetV4 : mapping.targetV6) = own.address;
  }
  return mapping;
}

}  // namespace adit::control
