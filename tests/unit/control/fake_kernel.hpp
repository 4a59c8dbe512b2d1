// A kernel that remembers: Routing, Firewall and Privileged for tests of the reconciler.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/privileged.hpp"
#include "nat/firewall.hpp"
#include "netlink/route.hpp"

namespace adit::control {

class FakeRouting final : public netlink::Routing {
 public:
  using Link = netlink::Link;
  using Route = netlink::Route;
  using Rule = netlink::Rule;

  std::vector<Link> linkList{
      {.index = 2, .name = "eth0", .kind = "", .mtu = 1500, .up = true, .running = true},
      {.index = 7, .name = "adit0", .kind = "tun", .mtu = 1500, .up = false, .running = false}};
  std::vector<InterfaceAddress> addressList;
  std::vector<Route> routeList;
  std::vector<Rule> ruleList;  // in order of evaluation
  std::map<IpAddress, netlink::RouteAnswer> answers;
  /// Calls that changed something.
  unsigned changes = 0;
  /// setLinkSilent() was called, and the link was down.
  bool silencedDown = false;
  /// Addresses and routes of IPv6 fail, as with disable_ipv6.
  bool refuseV6 = false;

  Result<std::vector<Link>> links() override { return linkList; }
  Result<std::optional<Link>> findLink(std::string_view name) override {
    const auto found = std::ranges::find(linkList, name, &Link::name);
    return found == linkList.end() ? std::nullopt : std::optional(*found);
  }
  Result<void> createLink(std::string_view, std::string_view) override { return fail("unused"); }
  Result<void> setLinkUp(std::uint32_t index, bool up) override {
    ++changes;
    std::ranges::find(linkList, index, &Link::index)->up = up;
    return {};
  }
  Result<void> setLinkSilent(std::uint32_t index) override {
    silencedDown = !std::ranges::find(linkList, index, &Link::index)->up;
    return {};
  }
  Result<void> setLinkMtu(std::uint32_t index, std::uint32_t mtu) override {
    ++changes;
    std::ranges::find(linkList, index, &Link::index)->mtu = mtu;
    return {};
  }
  Result<void> deleteLink(std::uint32_t index) override {
    std::erase_if(linkList, [&](const Link& link) { return link.index == index; });
    return {};
  }
  Result<std::vector<InterfaceAddress>> addresses(std::uint32_t) override { return addressList; }
  Result<void> addAddress(std::uint32_t, const InterfaceAddress& address) override {
    if (refuseV6 && address.address.isV6()) return fail("IPv6 is disabled on adit0");
    ++changes;
    addressList.push_back(address);
    return {};
  }
  Result<void> removeAddress(std::uint32_t, const InterfaceAddress& address) override {
    ++changes;
    std::erase(addressList, address);
    return {};
  }
  Result<std::vector<Route>> routes(const netlink::RouteFilter& filter) override {
    std::vector<Route> matching;
    std::ranges::copy_if(routeList, std::back_inserter(matching), [&](const Route& route) {
      return (!filter.family || route.destination.address().family() == *filter.family) &&
             (!filter.table || route.table == *filter.table) &&
             (!filter.protocol || route.protocol == *filter.protocol) &&
             (!filter.interface || route.interface == *filter.interface);
    });
    return matching;
  }
  Result<void> addRoute(const Route& route) override {
    ++changes;
    routeList.push_back(route);
    return {};
  }
  Result<void> replaceRoute(const Route& route) override { return addRoute(route); }
  Result<void> removeRoute(const Route& route) override {
    ++changes;
    std::erase(routeList, route);
    return {};
  }
  Result<netlink::RouteAnswer> lookupRoute(const IpAddress& destination, std::uint32_t) override {
    const auto found = answers.find(destination);
    if (found == answers.end()) return fail("no route");
    return found->second;
  }
  Result<std::vector<Rule>> rules(int family) override {
    std::vector<Rule> matching;
    std::ranges::copy_if(ruleList, std::back_inserter(matching),
                         [&](const Rule& rule) { return rule.family == family; });
    return matching;
  }
  Result<void> addRule(const Rule& rule) override {
    if (std::ranges::any_of(ruleList, [&](const Rule& other) { return other.sameAs(rule); })) {
      return {};
    }
    ++changes;
    ruleList.insert(ruleList.begin(), rule);
    return {};
  }
  Result<void> removeRule(const Rule& rule) override {
    ++changes;
    std::erase_if(ruleList, [&](const Rule& other) { return other.sameAs(rule); });
    return {};
  }
};

class FakeFirewall final : public nat::Firewall {
 public:
  using Kind = nat::FirewallChange::Kind;
  std::optional<nat::RulesetSpec> installed;
  std::optional<Error> refusal;

  Result<nat::FirewallChange> apply(const nat::RulesetSpec& spec) override {
    if (refusal) return tl::unexpected(*refusal);
    nat::FirewallChange change;
    change.kind = !installed ? Kind::Installed : *installed == spec ? Kind::None : Kind::Replaced;
    installed = spec;
    return change;
  }
  Result<bool> isApplied(const nat::RulesetSpec& spec) override { return installed == spec; }
  Result<nat::FirewallChange> remove(std::string_view) override {
    nat::FirewallChange change;
    change.kind = installed ? Kind::Removed : Kind::None;
    installed.reset();
    return change;
  }
};

class FakePrivileged : public Privileged {
 public:
  std::map<std::string, std::string> written;
  config::Outcome loadConfig() override { return {}; }
  Result<void> runHooks(HookKind) override { return {}; }
  Result<std::string> writeSysctl(const std::string& path, const std::string& value) override {
    written[path] = value;
    return std::string("old");
  }
  Result<void> setDns(const std::vector<IpAddress>&, const std::vector<std::string>&) override {
    return {};
  }
  Result<void> loadModule() override { return {}; }
  Result<UniqueFd> openTun() override { return fail("unused"); }
};

}  // namespace adit::control
