// The mappings of a device as they are now, and what is known against them.
#include <fmt/ranges.h>

#include "control/device.hpp"
#include "control/device_peer.hpp"
#include "nat/foreign_address.hpp"

namespace adit::control {
namespace {

/// Where a mapping leads to, by family.
std::vector<std::string> targetsOf(const nat::Mapping& mapping) {
  std::vector<std::string> targets;
  for (const auto& address : {mapping.targetV4, mapping.targetV6}) {
    if (address) {
      targets.push_back(Endpoint{*address, mapping.targetPort, 0}.toString());
    }
  }
  return targets;
}

MapSnapshot described(const nat::Mapping& mapping) {
  const std::vector<std::string> targets = targetsOf(mapping);
  return {.listen = mapping.listenText(),
          .target = fmt::format("{}", fmt::join(targets, " and ")),
          .source = mapping.source == nat::SourceMode::Preserve ? "preserve" : "masquerade",
          .active = false,
          .reason = {},
          .to = mapping.targetHost,
          .targets = targets};
}

/// Why no client's packet comes for a mapping, as far as that is about its address.
std::string foreignListen(const nat::Mapping& mapping, const std::string& interface) {
  if (!mapping.listenAddress) {
    return {};
  }
  const auto host = nat::hostAddresses(interface);
  return host ? nat::foreignAddress(mapping, *host).value_or("") : std::string();
}

}  // namespace

/// The peer that packets to an address go to: the one of the longest prefix.
const Device::Peer* Device::peerFor(const IpAddress& address) const {
  const Peer* owner = nullptr;
  int longest = -1;
  for (const auto& [id, peer] : peers_) {
    for (const Prefix& prefix : peer->allowedIps) {
      if (prefix.contains(address) && static_cast<int>(prefix.length()) > longest) {
        longest = static_cast<int>(prefix.length());
        owner = peer.get();
      }
    }
  }
  return owner;
}

std::string Device::remarkOn(const nat::Mapping& mapping) const {
  for (const auto& target : {mapping.targetV4, mapping.targetV6}) {
    if (!target) {
      continue;
    }
    const Peer* peer = peerFor(*target);
    if (peer == nullptr) {
      return fmt::format("no peer's AllowedIPs hold {}", target->toString());
    }
    if (!hasLiveSession(*peer)) {
      return fmt::format("no session with {}", peer->label());
    }
  }
  return {};
}

/// A host behind this one answers by its own gateway.
std::string Device::remarkOnGateway(const nat::Mapping& mapping) const {
  if (mapping.source == nat::SourceMode::Masquerade) {
    return {};
  }
  for (const auto& target : {mapping.targetV4, mapping.targetV6}) {
    const auto route = target ? parts_.routing.lookupRoute(*target, 0) : tl::unexpected(Error{});
    if (route && !route->local) {
      return fmt::format(
          "; {} has to answer by this machine: where its gateway is another one, write Source = "
          "masquerade here",
          target->toString());
    }
  }
  return {};
}

std::vector<MapSnapshot> Device::mapSnapshots() const {
  std::vector<MapSnapshot> maps;
  if (desired_.maps.translated.empty() && desired_.maps.declared.empty()) {
    return maps;
  }
  std::string notApplied;
  if (const auto applied = parts_.firewall.isApplied(desired_.ruleset); !applied) {
    notApplied = applied.error().message;
  } else if (!*applied) {
    notApplied = "the ruleset in the kernel is another one; it is being restored";
  }
  const nat::UsageByMapping usage = parts_.firewall.usage().value_or(nat::UsageByMapping{});
  const std::string& against = desired_.mapsInactive.empty() ? notApplied : desired_.mapsInactive;
  for (const nat::Mapping& mapping : desired_.maps.translated) {
    MapSnapshot map = described(mapping);
    map.reason = against.empty() ? foreignListen(mapping, desired_.ruleset.interface) : against;
    map.active = map.reason.empty();
    if (map.active) {
      map.reason = remarkOn(mapping);
    }
    if (const auto found = usage.find(map.listen); found != usage.end()) {
      map.usage = found->second;
    }
    maps.push_back(std::move(map));
  }
  for (const nat::Mapping& mapping : desired_.maps.declared) {
    MapSnapshot map = described(mapping);
    map.active = desired_.ruleset.exposure && notApplied.empty();
    map.reason = map.active ? "reachable from the tunnel; the server's file maps the port"
                 : notApplied.empty()
                     ? "its target is on this side: the server's file maps the port"
                     : notApplied;
    describeRequest(mapping, map);
    map.reason += remarkOnGateway(mapping);
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace adit::control
