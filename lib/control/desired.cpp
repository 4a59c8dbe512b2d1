#include "control/desired.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <variant>

#include "control/device_pcp_model.hpp"
#include "pcp/wire.hpp"

namespace adit::control {
namespace {

using netlink::Route;
using netlink::Rule;

/// IPv6 header, UDP header, WireGuard's header and tag (wg-quick(8) takes the same).
constexpr std::uint32_t kOverhead = 40 + 8 + 32;
constexpr std::uint32_t kDefaultPathMtu = 1500;
/// The least that IPv6 (RFC 8200 section 5) and IPv4 (RFC 1122 section 3.3.3) hosts expect.
constexpr std::uint32_t kMinimumMtuV6 = 1280;
constexpr std::uint32_t kMinimumMtuV4 = 576;

std::vector<Prefix> allowedPrefixes(const config::Config& config) {
  std::set<Prefix> unique;
  for (const config::PeerConfig& peer : config.peers) {
    unique.insert(peer.allowedIps.begin(), peer.allowedIps.end());
  }
  return {unique.begin(), unique.end()};
}

bool hasDefaultRoute(const std::vector<Prefix>& prefixes, int family) {
  return std::ranges::any_of(prefixes, [&](const Prefix& prefix) {
    return prefix.isDefault() && prefix.address().family() == family;
  });
}

/// wg-quick leaves out a route that the interface's own addresses already make.
bool coveredByAddress(const config::InterfaceConfig& interface, const Prefix& prefix) {
  return std::ranges::any_of(interface.addresses, [&](const InterfaceAddress& address) {
    return address.length < address.address.bits() && address.prefix() == prefix;
  });
}

Route routeTo(const Prefix& prefix, std::uint32_t table, std::uint32_t interface) {
  Route route;
  route.destination = prefix;
  route.interface = interface;
  route.table = table;
  return route;
}

/// wg-quick's two rules: all that is not the tunnel's own goes to its table, but for routes of the
/// main table that are more specific than the default.
void addDefaultRouteRules(std::vector<Rule>& rules, int family, std::uint32_t mark,
                          std::uint32_t table) {
  Rule own;
  own.family = family;
  own.mark = mark;
  own.invert = true;
  own.table = table;
  rules.push_back(own);
  Rule specific;
  specific.family = family;
  specific.suppressPrefixLength = 0;
  rules.push_back(specific);
}

bool isOwnAddress(const config::Config& config, const IpAddress& address) {
  return std::ranges::find(config.interface.addresses, address, &InterfaceAddress::address) !=
         config.interface.addresses.end();
}

/// No peer stands for it: with Table = reply a default route stands for clients. A host that no
/// peer can be meant by is behind this one only where this one is behind something itself.
bool isOnThisSide(const config::Config& config, const IpAddress& target) {
  const bool reply = std::holds_alternative<config::TableReply>(config.interface.table);
  const bool dialsOut = std::ranges::any_of(
      config.peers, [](const config::PeerConfig& peer) { return peer.endpoint.has_value(); });
  const bool held = std::ranges::any_of(config.peers, [&](const config::PeerConfig& peer) {
    return std::ranges::any_of(peer.allowedIps, [&](const Prefix& prefix) {
      return prefix.contains(target) && !(reply && prefix.isDefault());
    });
  });
  return isOwnAddress(config, target) || (dialsOut && !held);
}

bool isDeclared(const config::Config& config, const config::MapConfig& map) {
  return !map.targets.empty() && std::ranges::all_of(map.targets, [&](const IpAddress& target) {
    return isOnThisSide(config, target);
  });
}

class Derivation {
 public:
  Derivation(const config::Config& config, const NetworkFacts& facts,
             const std::vector<nat::Mapping>& leases)
      : config_(config), facts_(facts), leases_(leases), prefixes_(allowedPrefixes(config)) {}

  DesiredNetwork run() {
    result_.mtu = mtu();
    result_.addresses = config_.interface.addresses;
    result_.firewallMark = config_.interface.firewallMark.value_or(0);
    ruleset();
    std::visit([this](const auto& table) { routes(table); }, config_.interface.table);
    nat::RulesetSpec present = result_.ruleset;
    if (facts_.publicMissing) {
      present.publicInterfaces.clear();
    }
    result_.sysctls = nat::neededSysctls(present);
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::uint32_t mtu() const {
    if (config_.interface.mtu) {
      return *config_.interface.mtu;
    }
    const std::uint32_t path = facts_.pathMtu != 0 ? facts_.pathMtu : kDefaultPathMtu;
    const bool usesV6 =
        std::ranges::any_of(config_.interface.addresses,
                            [](const InterfaceAddress& address) { return address.address.isV6(); });
    return std::max(std::min(path, 65535U) - std::min(kOverhead, path),
                    usesV6 ? kMinimumMtuV6 : kMinimumMtuV4);
  }

  void ruleset() {
    nat::RulesetSpec& spec = result_.ruleset;
    spec.interface = facts_.interface;
    spec.ownPort = facts_.listenPort;
    for (const InterfaceAddress& address : config_.interface.addresses) {
      spec.tunnelAddresses.push_back(address.address);
    }
    spec.tunnelMtu = result_.mtu;
    result_.maps = mappingsBySide(config_);
    if (config_.interface.expose == config::Expose::Maps) {
      spec.exposure = nat::Exposure{result_.maps.declared, repliesFrom()};
      exposeOwnSockets(*spec.exposure);
    }
    spec.forwards = std::ranges::any_of(
        result_.maps.declared, [this](const nat::Mapping& mapping) { return isBehind(mapping); });
    std::ranges::copy_if(result_.maps.declared, std::back_inserter(spec.masked),
                         [this](const nat::Mapping& mapping) {
                           return mapping.source == nat::SourceMode::Masquerade &&
                                  isBehind(mapping);
                         });
    if (!result_.maps.translated.empty() || !leases_.empty()) {
      publicSide();
    }
  }

  /// Where peers ask for ports, and where the server's announcements come to.
  void exposeOwnSockets(nat::Exposure& exposure) const {
    const auto& addresses = config_.interface.addresses;
    if (!addresses.empty() && servesPorts(config_)) {
      exposure.declared.push_back(ownSocket(pcp::kServerPort, addresses));
    }
    if (!result_.maps.declared.empty() && !portPaths(config_).empty()) {
      exposure.declared.push_back(ownSocket(pcp::kClientPort, addresses));
    }
  }

  void publicSide() {
    const std::string& wanted = config_.interface.publicInterface;
    const std::string& name = wanted.empty() ? facts_.defaultInterface : wanted;
    if (name.empty()) {
      result_.mapsInactive = "there is no default route; name the public NIC with Public = NIC";
      return;
    }
    // The rules are by name: they hold from the moment at which it appears.
    result_.ruleset.publicInterfaces.push_back(name);
    result_.ruleset.mappings = result_.maps.translated;
    std::ranges::copy(leases_, std::back_inserter(result_.ruleset.mappings));
    if (facts_.publicMissing) {
      result_.mapsInactive = fmt::format("there is no interface {} (Public = {})", name, name);
    }
  }

  /// The target is another host.
  [[nodiscard]] bool isBehind(const nat::Mapping& mapping) const {
    return std::ranges::any_of(
        std::array{mapping.targetV4, mapping.targetV6}, [this](const auto& target) {
          return target && !isOwnAddress(config_, *target) &&
                 std::ranges::find(facts_.homeAddresses, *target) == facts_.homeAddresses.end();
        });
  }

  /// Where this host opens connections to by the tunnel.
  [[nodiscard]] std::vector<Prefix> repliesFrom() const {
    std::vector<Prefix> networks = tunnelNetworks();
    // With Table = reply nothing is opened by the default route into the tunnel.
    if (!std::holds_alternative<config::TableReply>(config_.interface.table)) {
      std::ranges::copy_if(prefixes_, std::back_inserter(networks),
                           [](const Prefix& prefix) { return prefix.isDefault(); });
    }
    return networks;
  }

  void route(const Prefix& prefix, std::uint32_t table) {
    result_.routes.push_back(routeTo(prefix, table, facts_.interfaceIndex));
  }

  void routes(config::TableOff) {}

  void routes(std::uint32_t table) {
    for (const Prefix& prefix : prefixes_) {
      route(prefix, table);
    }
  }

  void routes(config::TableAuto) {
    for (const Prefix& prefix : prefixes_) {
      if (prefix.isDefault()) {
        defaultRoute(prefix);
      } else if (!coveredByAddress(config_.interface, prefix)) {
        route(prefix, netlink::kMainTable);
      }
    }
  }

  void defaultRoute(const Prefix& prefix) {
    // As wg-quick: the mark that is set names the table too, and one is chosen where none is set.
    if (result_.firewallMark == 0) {
      result_.firewallMark = facts_.ownTable;
    }
    route(prefix, result_.firewallMark);
    addDefaultRouteRules(result_.rules, prefix.address().family(), result_.firewallMark,
                         result_.firewallMark);
    result_.ruleset.guard = nat::DefaultRouteGuard{result_.firewallMark};
  }

  void routes(config::TableReply) {
    result_.ruleset.reply = nat::ReplyMarks{};
    result_.ruleset.answers = nat::UdpAnswers{facts_.homeAddresses, tunnelNetworks()};
    for (const Prefix& prefix : prefixes_) {
      route(prefix, facts_.ownTable);
      if (!prefix.isDefault() && !coveredByAddress(config_.interface, prefix)) {
        route(prefix, netlink::kMainTable);
      }
    }
    for (const int family : {AF_INET, AF_INET6}) {
      if (hasDefaultRoute(prefixes_, family)) {
        addReplyRules(family);
      }
    }
  }

  /// What the main table sends into the tunnel.
  [[nodiscard]] std::vector<Prefix> tunnelNetworks() const {
    std::set<Prefix> networks;
    for (const Prefix& prefix : prefixes_) {
      if (!prefix.isDefault()) {
        networks.insert(prefix);
      }
    }
    for (const InterfaceAddress& address : config_.interface.addresses) {
      networks.insert(address.prefix());
    }
    return {networks.begin(), networks.end()};
  }

  /// The mark alone is not enough: it is restored on output, and a host without a default route
  /// of its own fails to route the reply before it gets there. What answers from a tunnel address
  /// belongs to the tunnel in any case.
  void addReplyRules(int family) {
    Rule rule;
    rule.family = family;
    rule.table = facts_.ownTable;
    for (const InterfaceAddress& address : config_.interface.addresses) {
      if (address.address.family() == family) {
        rule.source = Prefix(address.address, address.address.bits());
        result_.rules.push_back(rule);
      }
    }
    rule.source.reset();
    rule.mark = result_.ruleset.reply->mark;
    rule.markMask = result_.ruleset.reply->mask;
    result_.rules.push_back(rule);
  }

  const config::Config& config_;
  const NetworkFacts& facts_;
  const std::vector<nat::Mapping>& leases_;
  std::vector<Prefix> prefixes_;
  DesiredNetwork result_;
};

nat::Mapping resolvedMapping(const config::MapConfig& map, nat::Protocol protocol) {
  nat::Mapping mapping;
  mapping.protocol = protocol;
  mapping.listenAddress = map.listenAddress;
  mapping.firstPort = map.firstPort;
  mapping.lastPort = map.lastPort;
  mapping.targetPort = map.targetPort;
  for (const IpAddress& target : map.targets) {
    std::optional<IpAddress>& slot = target.isV4() ? mapping.targetV4 : mapping.targetV6;
    if (!slot) {
      slot = target;
    }
  }
  mapping.source = map.source == config::Source::Preserve ? nat::SourceMode::Preserve
                                                          : nat::SourceMode::Masquerade;
  mapping.hairpin = map.hairpin;
  mapping.allow = map.allow;
  mapping.rate = map.rate;
  mapping.overrideListener = map.overrideListener;
  mapping.targetHost = map.targetHost;
  mapping.label = mapping.listenText();
  if (map.location.file != nullptr) {
    mapping.location =
        fmt::format("{}:{}:{}", *map.location.file, map.location.line, map.location.column);
  }
  return mapping;
}

}  // namespace

bool needsOwnTable(const config::Config& config) {
  const std::vector<Prefix> prefixes = allowedPrefixes(config);
  const bool defaultRoute =
      hasDefaultRoute(prefixes, AF_INET) || hasDefaultRoute(prefixes, AF_INET6);
  return std::holds_alternative<config::TableReply>(config.interface.table) ||
         (std::holds_alternative<config::TableAuto>(config.interface.table) && defaultRoute &&
          !config.interface.firewallMark);
}

DesiredNetwork desiredNetwork(const config::Config& config, const NetworkFacts& facts,
                              const std::vector<nat::Mapping>& leases) {
  return Derivation(config, facts, leases).run();
}

namespace {

/// One address of this host in the tunnel stands for the host: the server may map its other family.
void addOtherFamily(const config::Config& config, nat::Mapping& mapping) {
  const std::optional<IpAddress>& target = mapping.targetV4 ? mapping.targetV4 : mapping.targetV6;
  if (!target || !isOwnAddress(config, *target)) {
    return;
  }
  for (const InterfaceAddress& own : config.interface.addresses) {
    std::optional<IpAddress>& slot = own.address.isV4() ? mapping.targetV4 : mapping.targetV6;
    if (!slot) {
      slot = own.address;
    }
  }
}

}  // namespace

MappingsBySide mappingsBySide(const config::Config& config) {
  using Protocol = config::MapConfig::Protocol;
  MappingsBySide result;
  for (const config::MapConfig& map : config.maps) {
    std::vector<nat::Mapping>& side = isDeclared(config, map) ? result.declared : result.translated;
    if (map.protocol != Protocol::Udp) {
      side.push_back(resolvedMapping(map, nat::Protocol::Tcp));
    }
    if (map.protocol != Protocol::Tcp) {
      side.push_back(resolvedMapping(map, nat::Protocol::Udp));
    }
  }
  for (nat::Mapping& mapping : result.declared) {
    addOtherFamily(config, mapping);
  }
  return result;
}

}  // namespace adit::control
