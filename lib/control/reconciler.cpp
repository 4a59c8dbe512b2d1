#include "control/reconciler.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "control/shared_sysctls.hpp"
#include "control/sysctl_file.hpp"

namespace adit::control {
namespace {

using netlink::Route;
using netlink::Rule;

/// Where wg-quick(8) starts to look for a free table, too.
constexpr std::uint32_t kFirstOwnTable = 51820;
constexpr std::uint32_t kLastOwnTable = kFirstOwnTable + 1000;

/// Stand for the whole Internet where the route to it is asked for (RFC 5737, RFC 3849).
constexpr std::array kAnywhere = {"192.0.2.1", "2001:db8::1"};

bool isOwnSuppressRule(const Rule& rule) {
  return rule.protocol == netlink::kRouteProtocol && rule.suppressPrefixLength.has_value();
}

bool contains(const std::vector<std::uint32_t>& tables, std::uint32_t table) {
  return std::ranges::find(tables, table) != tables.end();
}

bool sameRule(const Rule& a, const Rule& b) {
  return a.sameAs(b);
}

/// The kernel evaluates rules by priority; `wanted` is in the order of adding, each before the
/// ones that are there.
bool inWantedOrder(const std::vector<Rule>& present, const std::vector<Rule>& wanted) {
  return std::ranges::equal(present, std::vector<Rule>(wanted.rbegin(), wanted.rend()), sameRule);
}

}  // namespace

Reconciler::Reconciler(netlink::Routing& routing, nat::Firewall& firewall, Privileged& privileged,
                       UndoRecord& undo, std::function<void()> saveUndo)
    : routing_(routing),
      firewall_(firewall),
      privileged_(privileged),
      undo_(undo),
      saveUndo_(std::move(saveUndo)) {}

bool Reconciler::noted(const Result<void>& result) {
  if (!result) {
    report_.warnings.push_back(result.error().message);
  }
  return result.has_value();
}

NetworkFacts Reconciler::gatherFacts(const config::Config& config, const std::string& interface,
                                     const std::vector<Endpoint>& endpoints,
                                     std::uint16_t listenPort) {
  NetworkFacts facts;
  facts.interface = interface;
  facts.listenPort = listenPort;
  if (const auto link = routing_.findLink(interface); link && *link) {
    facts.interfaceIndex = (*link)->index;
  }
  if (const std::string& name = config.interface.publicInterface; !name.empty()) {
    const auto link = routing_.findLink(name);
    facts.publicMissing = link && !*link;
  }
  std::optional<Route> defaultRoute;
  for (const int family : {AF_INET, AF_INET6}) {
    const auto routes = routing_.routes({.family = family, .table = netlink::kMainTable});
    if (!routes) {
      continue;
    }
    for (const Route& route : *routes) {
      if (route.destination.isDefault() && route.interface != 0 &&
          route.interface != facts.interfaceIndex &&
          (!defaultRoute || (defaultRoute->destination.address().family() == family &&
                             route.metric < defaultRoute->metric))) {
        defaultRoute = route;
      }
    }
  }
  const std::vector<std::uint32_t> own = ownTables(facts.interfaceIndex);
  facts.ownTable = own.empty() ? 0 : own.front();
  for (std::uint32_t table = kFirstOwnTable; facts.ownTable == 0 && table < kLastOwnTable;
       ++table) {
    const auto used = routing_.routes({.table = table});
    if (!used || used->empty()) {
      facts.ownTable = table;
    }
  }
  const std::uint32_t mark =
      config.interface.firewallMark.value_or(needsOwnTable(config) ? facts.ownTable : 0);
  for (const Endpoint& endpoint : endpoints) {
    const auto answer = routing_.lookupRoute(endpoint.address, mark);
    if (answer && answer->mtu != 0 && answer->interface != facts.interfaceIndex &&
        (facts.pathMtu == 0 || answer->mtu < facts.pathMtu)) {
      facts.pathMtu = answer->mtu;
    }
  }
  if (defaultRoute) {
    if (const auto links = routing_.links()) {
      for (const netlink::Link& link : *links) {
        if (link.index == defaultRoute->interface) {
          facts.defaultInterface = link.name;
          facts.pathMtu = facts.pathMtu != 0 ? facts.pathMtu : link.mtu;
        }
      }
    }
  }
  facts.homeAddresses = homeAddresses(facts.interfaceIndex);
  return facts;
}

std::vector<IpAddress> Reconciler::homeAddresses(std::uint32_t tunnel) {
  std::vector<IpAddress> addresses;
  for (const char* anywhere : kAnywhere) {
    const auto answer = routing_.lookupRoute(*IpAddress::parse(anywhere), 0);
    if (answer && answer->preferredSource && !answer->local && answer->interface != tunnel) {
      addresses.push_back(*answer->preferredSource);
    }
  }
  return addresses;
}

std::vector<std::uint32_t> Reconciler::ownTables(std::uint32_t index) {
  std::vector<std::uint32_t> tables;
  if (undo_.table != 0) {
    tables.push_back(undo_.table);
  }
  if (index == 0) {
    return tables;
  }
  const auto routes = routing_.routes({.protocol = netlink::kRouteProtocol, .interface = index});
  if (routes) {
    for (const Route& route : *routes) {
      if (route.table != netlink::kMainTable && !contains(tables, route.table)) {
        tables.push_back(route.table);
      }
    }
  }
  return tables;
}

Result<ReconcileReport> Reconciler::apply(const DesiredNetwork& desired,
                                          std::uint32_t interfaceIndex) {
  report_ = {};
  applySysctls(desired);
  if (auto link = applyLink(desired, interfaceIndex); !link) {
    return tl::unexpected(link.error());
  }
  applyAddresses(desired, interfaceIndex);
  const std::vector<std::uint32_t> tablesBefore = ownTables(interfaceIndex);
  recordTable(desired);
  // Rules that name a table come after its routes: the other way round, packets that already have
  // the mark would leave by the main table in between.
  applyRoutes(desired, interfaceIndex);
  applyRules(desired, tablesBefore);
  if (auto applied = applyFirewall(desired); !applied) {
    return tl::unexpected(applied.error());
  }
  return std::move(report_);
}

Result<void> Reconciler::applyLink(const DesiredNetwork& desired, std::uint32_t index) {
  const auto link = routing_.findLink(desired.ruleset.interface);
  if (!link) {
    return tl::unexpected(link.error());
  }
  if (!*link || (*link)->index != index) {
    return fail("the interface {} has vanished", desired.ruleset.interface);
  }
  if ((*link)->mtu != desired.mtu) {
    if (auto set = routing_.setLinkMtu(index, desired.mtu); !set) {
      return set;
    }
    changed(fmt::format("MTU {}", desired.mtu));
  }
  if (!(*link)->up) {
    noted(routing_.setLinkSilent(index));
    if (auto set = routing_.setLinkUp(index, true); !set) {
      return set;
    }
    changed("link up");
  }
  return {};
}

void Reconciler::applyAddresses(const DesiredNetwork& desired, std::uint32_t index) {
  const auto present = routing_.addresses(index);
  if (!present) {
    report_.warnings.push_back(present.error().message);
    return;
  }
  for (const InterfaceAddress& address : desired.addresses) {
    if (std::ranges::find(*present, address) == present->end() &&
        noted(routing_.addAddress(index, address))) {
      changed(fmt::format("address {} added", address.toString()));
    }
  }
  for (const InterfaceAddress& address : *present) {
    // The kernel's own link-local address stays.
    if (std::ranges::find(desired.addresses, address) == desired.addresses.end() &&
        !address.address.isLinkLocalV6() && noted(routing_.removeAddress(index, address))) {
      changed(fmt::format("address {} removed", address.toString()));
    }
  }
}

void Reconciler::applyRoutes(const DesiredNetwork& desired, std::uint32_t index) {
  const auto present = routing_.routes({.protocol = netlink::kRouteProtocol, .interface = index});
  if (!present) {
    report_.warnings.push_back(present.error().message);
    return;
  }
  const auto same = [](const Route& a, const Route& b) {
    return a.destination == b.destination && a.table == b.table;
  };
  for (const Route& route : desired.routes) {
    const bool there =
        std::ranges::any_of(*present, [&](const Route& r) { return same(r, route); });
    if (!there && noted(routing_.addRoute(route))) {
      changed(fmt::format("route {} added", route.toString()));
    }
  }
  for (const Route& route : *present) {
    const bool wanted =
        std::ranges::any_of(desired.routes, [&](const Route& r) { return same(r, route); });
    if (!wanted && noted(routing_.removeRoute(route))) {
      changed(fmt::format("route {} removed", route.toString()));
    }
  }
}

void Reconciler::recordTable(const DesiredNetwork& desired) {
  const auto own = std::ranges::find_if(
      desired.rules, [](const Rule& rule) { return rule.table != netlink::kMainTable; });
  const std::uint32_t table = own == desired.rules.end() ? 0 : own->table;
  if (table != undo_.table) {
    undo_.table = table;
    saveUndo_();
  }
}

void Reconciler::applyRules(const DesiredNetwork& desired, std::vector<std::uint32_t> tables) {
  for (const Rule& rule : desired.rules) {
    if (rule.table != netlink::kMainTable && !contains(tables, rule.table)) {
      tables.push_back(rule.table);
    }
  }
  for (const int family : {AF_INET, AF_INET6}) {
    std::vector<Rule> wanted;
    std::ranges::copy_if(desired.rules, std::back_inserter(wanted),
                         [&](const Rule& rule) { return rule.family == family; });
    applyRulesOfFamily(family, wanted, tables);
  }
}

void Reconciler::applyRulesOfFamily(int family, const std::vector<Rule>& wanted,
                                    const std::vector<std::uint32_t>& ownTables) {
  const auto present = routing_.rules(family);
  if (!present) {
    if (!wanted.empty()) {
      report_.warnings.push_back(present.error().message);
    }
    return;
  }
  std::vector<Rule> ours;
  const bool wantsSuppress = std::ranges::any_of(wanted, isOwnSuppressRule);
  std::ranges::copy_if(*present, std::back_inserter(ours), [&](const Rule& rule) {
    return rule.protocol == netlink::kRouteProtocol &&
           (contains(ownTables, rule.table) || (wantsSuppress && isOwnSuppressRule(rule)));
  });
  if (inWantedOrder(ours, wanted)) {
    return;
  }
  if (wanted.empty()) {
    removeOwnRules(family, ownTables);
    return;
  }
  for (const Rule& rule : ours) {
    noted(routing_.removeRule(rule));
  }
  for (const Rule& rule : wanted) {
    if (noted(routing_.addRule(rule))) {
      changed(fmt::format("rule {} added", rule.toString()));
    }
  }
}

void Reconciler::applySysctls(const DesiredNetwork& desired) {
  for (const nat::SysctlNeed& need : desired.sysctls) {
    applySysctl(need);
  }
}

void Reconciler::applySysctl(const nat::SysctlNeed& need) {
  const auto present = readSysctlFile(kSysctlRoot, need.path);
  if (!present && present.error().code == ENOENT && !need.required) {
    return;
  }
  const bool differs =
      present && *present != need.value &&
      (need.onlyWhen.empty() || std::ranges::find(need.onlyWhen, *present) != need.onlyWhen.end());
  if (present && !differs) {
    return;
  }
  if (present) {
    undo_.sysctls.try_emplace(need.path, *present);
    saveUndo_();
  }
  const auto old = privileged_.writeSysctl(need.path, need.value);
  if (!old) {
    report_.warnings.push_back(fmt::format("{} ({})", old.error().message, need.why));
    return;
  }
  changed(fmt::format("{} = {} ({})", need.path, need.value, need.why));
}

Result<void> Reconciler::applyFirewall(const DesiredNetwork& desired) {
  using Kind = nat::FirewallChange::Kind;
  const auto change = desired.ruleset.empty() ? firewall_.remove(desired.ruleset.interface)
                                              : firewall_.apply(desired.ruleset);
  if (!change) {
    if (desired.ruleset.exposure) {
      return fail("Expose = maps cannot be enforced: {}", change.error().message);
    }
    report_.warnings.push_back(change.error().message);
    return {};
  }
  switch (change->kind) {
    case Kind::None:
      break;
    case Kind::Installed:
      changed(fmt::format("nft table inet {} installed", desired.ruleset.tableName()));
      break;
    case Kind::Replaced:
      changed(fmt::format("nft table inet {} replaced", desired.ruleset.tableName()));
      break;
    case Kind::Updated:
      changed(fmt::format("nft table inet {}: {} elements added, {} removed",
                          desired.ruleset.tableName(), change->elementsAdded,
                          change->elementsRemoved));
      break;
    case Kind::Removed:
      changed(fmt::format("nft table inet {} removed", desired.ruleset.tableName()));
      break;
  }
  report_.warnings.insert(report_.warnings.end(), change->warnings.begin(), change->warnings.end());
  return {};
}

std::vector<std::string> Reconciler::remove(const std::string& interface) {
  report_ = {};
  if (const auto removed = firewall_.remove(interface); !removed) {
    report_.warnings.push_back(removed.error().message);
  }
  const auto link = routing_.findLink(interface);
  const std::uint32_t index = link && *link ? (*link)->index : 0;
  const std::vector<std::uint32_t> tables = ownTables(index);
  for (const int family : {AF_INET, AF_INET6}) {
    removeOwnRules(family, tables);
  }
  if (index != 0) {
    const auto routes = routing_.routes({.protocol = netlink::kRouteProtocol, .interface = index});
    for (const Route& route : routes ? *routes : std::vector<Route>{}) {
      noted(routing_.removeRoute(route));
    }
  }
  undo_.table = 0;
  for (const auto& [path, value] : withoutShared(interface, undo_.sysctls)) {
    const auto present = readSysctlFile(kSysctlRoot, path);
    // A file that has gone went with its interface.
    if (!present || *present == value) {
      continue;
    }
    if (const auto old = privileged_.writeSysctl(path, value); !old) {
      report_.warnings.push_back(old.error().message);
    }
  }
  undo_.sysctls.clear();
  return std::move(report_.warnings);
}

void Reconciler::removeOwnRules(int family, const std::vector<std::uint32_t>& tables) {
  const auto present = routing_.rules(family);
  if (!present) {
    return;
  }
  // The suppressing rule serves every interface of ours that has taken the default route.
  bool othersNeedSuppress = false;
  for (const Rule& rule : *present) {
    if (rule.protocol != netlink::kRouteProtocol || isOwnSuppressRule(rule)) {
      continue;
    }
    if (contains(tables, rule.table)) {
      noted(routing_.removeRule(rule));
    } else {
      othersNeedSuppress = othersNeedSuppress || rule.invert;
    }
  }
  for (const Rule& rule : *present) {
    if (isOwnSuppressRule(rule) && !othersNeedSuppress) {
      noted(routing_.removeRule(rule));
    }
  }
}

}  // namespace adit::control
