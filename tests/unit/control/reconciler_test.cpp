#include "control/reconciler.hpp"

#include <catch2/catch.hpp>

#include "fake_kernel.hpp"

namespace adit::control {
namespace {

Prefix prefix(const char* text) {
  return Prefix::parse(text).value();
}
InterfaceAddress address(const char* text) {
  return InterfaceAddress::parse(text).value();
}

config::Config configWith(config::Table table, std::vector<Prefix> allowedIps) {
  config::Config config;
  config.interface.addresses = {address("10.10.0.2/24")};
  config.interface.table = table;
  config::PeerConfig peer;
  peer.allowedIps = std::move(allowedIps);
  config.peers.push_back(peer);
  return config;
}

struct Fixture {
  FakeRouting routing;
  FakeFirewall firewall;
  FakePrivileged privileged;
  UndoRecord undo;
  Reconciler reconciler{routing, firewall, privileged, undo, [] {}};

  NetworkFacts facts(const config::Config& config) {
    return reconciler.gatherFacts(config, "adit0", {}, 51820);
  }
  ReconcileReport apply(const config::Config& config) {
    const NetworkFacts known = facts(config);
    DesiredNetwork desired = desiredNetwork(config, known);
    desired.sysctls.clear();  // those of this machine are not the test's
    return reconciler.apply(desired, known.interfaceIndex).value();
  }
  [[nodiscard]] bool hasRoute(const char* to, std::uint32_t table) const {
    return std::ranges::any_of(routing.routeList, [&](const netlink::Route& route) {
      return route.destination == prefix(to) && route.table == table && route.interface == 7;
    });
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "running twice changes nothing") {
  const config::Config config =
      GENERATE(configWith(config::TableAuto{}, {prefix("10.20.0.0/16"), prefix("fd00::/64")}),
               configWith(config::TableAuto{}, {prefix("0.0.0.0/0"), prefix("::/0")}),
               configWith(config::TableReply{}, {prefix("0.0.0.0/0"), prefix("10.20.0.0/16")}),
               configWith(config::TableOff{}, {prefix("0.0.0.0/0")}),
               configWith(std::uint32_t{77}, {prefix("0.0.0.0/0"), prefix("10.20.0.0/16")}));
  CHECK_FALSE(apply(config).changes.empty());
  const unsigned changes = routing.changes;
  CHECK(apply(config).changes.empty());
  CHECK(routing.changes == changes);
}

TEST_CASE_METHOD(Fixture,
                 "UDP answers go by the source address that the machine's own routes give") {
  const config::Config config =
      configWith(config::TableReply{}, {prefix("0.0.0.0/0"), prefix("10.20.0.0/16")});
  const IpAddress home = IpAddress::parse("192.168.50.2").value();
  netlink::RouteAnswer& answer = routing.answers[IpAddress::parse("192.0.2.1").value()];
  answer.interface = 2;
  answer.preferredSource = home;
  const auto wanted = desiredNetwork(config, facts(config)).ruleset.answers;
  REQUIRE(wanted);
  CHECK(wanted->homeAddresses == std::vector{home});
  CHECK(wanted->tunnelNetworks == std::vector{prefix("10.10.0.0/24"), prefix("10.20.0.0/16")});
  // A default route into the tunnel is not home.
  answer.interface = 7;
  CHECK(facts(config).homeAddresses.empty());
  CHECK_FALSE(
      desiredNetwork(configWith(config::TableAuto{}, {prefix("0.0.0.0/0")}), {}).ruleset.answers);
}

config::MapConfig mapTo(const char* target) {
  config::MapConfig map;
  map.firstPort = map.lastPort = map.targetPort = 80;
  map.targets = {IpAddress::parse(target).value()};
  map.targetHost = target;
  return map;
}

TEST_CASE_METHOD(Fixture, "a mapping whose target no peer stands for is the other end's") {
  config::Config server = configWith(config::TableAuto{}, {prefix("10.10.0.9/32")});
  server.maps = {mapTo("10.10.0.9"), mapTo("10.10.0.2"), mapTo("192.168.50.20")};
  // Nobody is behind a server that nobody has to be called from: its AllowedIPs lack the host.
  CHECK(mappingsBySide(server).translated.size() == 2);
  CHECK(mappingsBySide(server).declared.size() == 1);
  server.peers.front().endpoint =
      config::EndpointName{.host = "vps.example.net", .port = 51820, .zone = {}, .literal = {}};
  CHECK(mappingsBySide(server).declared.size() == 2);
  // Clients' addresses are behind the server; with Table = reply hosts at home are not.
  config::Config nas = configWith(config::TableReply{}, {prefix("0.0.0.0/0")});
  nas.peers.front().endpoint = server.peers.front().endpoint;
  nas.maps = {mapTo("192.168.50.20")};
  CHECK(mappingsBySide(nas).declared.size() == 1);
  nas.interface.table = config::TableAuto{};
  CHECK(mappingsBySide(nas).translated.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a NAS forwards only where a mapping leads past it") {
  config::Config nas = configWith(config::TableReply{}, {prefix("0.0.0.0/0")});
  nas.peers.front().endpoint =
      config::EndpointName{.host = "vps.example.net", .port = 51820, .zone = {}, .literal = {}};
  NetworkFacts facts;
  facts.homeAddresses = {IpAddress::parse("192.168.50.2").value()};
  CHECK_FALSE(desiredNetwork(nas, facts).ruleset.forwards);
  nas.maps = {mapTo("10.10.0.2"), mapTo("192.168.50.2")};
  CHECK_FALSE(desiredNetwork(nas, facts).ruleset.forwards);
  nas.maps.push_back(mapTo("192.168.50.20"));
  CHECK(desiredNetwork(nas, facts).ruleset.forwards);
}

TEST_CASE_METHOD(Fixture, "Expose = maps that cannot be enforced is an error, not a warning") {
  config::Config nas = configWith(config::TableReply{}, {prefix("0.0.0.0/0")});
  nas.interface.expose = config::Expose::Maps;
  nas.maps = {mapTo("10.10.0.2")};
  const DesiredNetwork desired = desiredNetwork(nas, facts(nas));
  REQUIRE(desired.ruleset.exposure);
  CHECK(desired.ruleset.exposure->declared.size() == 1);
  CHECK(desired.ruleset.exposure->tunnelNetworks == std::vector{prefix("10.10.0.0/24")});
  firewall.refusal = Error{"nftables: no", 0};
  const auto report = reconciler.apply({.mtu = 1420,
                                        .addresses = {},
                                        .routes = {},
                                        .rules = {},
                                        .firewallMark = 0,
                                        .ruleset = desired.ruleset,
                                        .maps = {},
                                        .mapsInactive = {},
                                        .sysctls = {}},
                                       7);
  REQUIRE_FALSE(report);
  CHECK(report.error().message == "Expose = maps cannot be enforced: nftables: no");
}

TEST_CASE_METHOD(Fixture, "a public interface that does not exist is why mappings do not work") {
  config::Config config = configWith(config::TableAuto{}, {prefix("10.10.0.9/32")});
  config.maps = {mapTo("10.10.0.9")};
  CHECK(desiredNetwork(config, facts(config)).mapsInactive ==
        "there is no default route; name the public NIC with Public = NIC");
  CHECK(desiredNetwork(config, facts(config)).ruleset.mappings.empty());
  config.interface.publicInterface = "eth9";
  const DesiredNetwork desired = desiredNetwork(config, facts(config));
  CHECK(desired.mapsInactive == "there is no interface eth9 (Public = eth9)");
  CHECK(desired.ruleset.mappings.size() == 1);
  for (const nat::SysctlNeed& need : desired.sysctls) {
    CHECK(need.path.find("eth9") == std::string::npos);
  }
  config.interface.publicInterface = "eth0";
  CHECK(desiredNetwork(config, facts(config)).mapsInactive.empty());
}

TEST_CASE_METHOD(Fixture, "the link gets its MTU and address and comes up") {
  apply(configWith(config::TableAuto{}, {}));
  CHECK(routing.linkList[1].up);
  CHECK(routing.linkList[1].mtu == 1420);
  CHECK(routing.silencedDown);
  CHECK(routing.addressList == std::vector{address("10.10.0.2/24")});
}

TEST_CASE_METHOD(Fixture,
                 "MTU = auto is that of the smallest path less 80, and never below the minimum") {
  const config::Config config = configWith(config::TableAuto{}, {});
  const Endpoint far = Endpoint::parse("192.0.2.1:51820").value();
  routing.answers[far.address] = {.interface = 2,
                                  .gateway = {},
                                  .preferredSource = {},
                                  .mtu = 1492,
                                  .local = false,
                                  .table = 254};
  CHECK(desiredNetwork(config, reconciler.gatherFacts(config, "adit0", {far}, 0)).mtu == 1412);
  routing.answers[far.address].mtu = 500;
  CHECK(desiredNetwork(config, reconciler.gatherFacts(config, "adit0", {far}, 0)).mtu == 576);
  config::Config v6 = config;
  v6.interface.addresses.push_back(address("fd10::2/64"));
  CHECK(desiredNetwork(v6, reconciler.gatherFacts(v6, "adit0", {far}, 0)).mtu == 1280);
}

TEST_CASE_METHOD(Fixture, "Table = auto routes the allowed IPs, but for what the address covers") {
  apply(configWith(config::TableAuto{}, {prefix("10.10.0.0/24"), prefix("192.168.50.0/24")}));
  CHECK(hasRoute("192.168.50.0/24", netlink::kMainTable));
  CHECK_FALSE(hasRoute("10.10.0.0/24", netlink::kMainTable));
  CHECK(routing.ruleList.empty());
}

TEST_CASE_METHOD(Fixture, "Table = auto with a default route is wg-quick's") {
  const config::Config config = configWith(config::TableAuto{}, {prefix("0.0.0.0/0")});
  const DesiredNetwork desired = desiredNetwork(config, facts(config));
  CHECK(desired.firewallMark == 51820);
  CHECK(desired.ruleset.guard == nat::DefaultRouteGuard{51820});
  apply(config);
  CHECK(hasRoute("0.0.0.0/0", 51820));
  CHECK_FALSE(hasRoute("0.0.0.0/0", netlink::kMainTable));
  REQUIRE(routing.ruleList.size() == 2);
  CHECK(routing.ruleList[0].suppressPrefixLength == 0U);
  CHECK(routing.ruleList[1].invert);
  CHECK(routing.ruleList[1].mark == 51820U);
}

TEST_CASE_METHOD(Fixture, "a table that somebody else uses is not taken") {
  netlink::Route foreign;
  foreign.destination = prefix("0.0.0.0/0");
  foreign.interface = 2;
  foreign.table = 51820;
  foreign.protocol = 3;
  routing.routeList.push_back(foreign);
  apply(configWith(config::TableAuto{}, {prefix("0.0.0.0/0")}));
  CHECK(hasRoute("0.0.0.0/0", 51821));
}

TEST_CASE_METHOD(Fixture, "a configured FwMark is also the table, and stays") {
  config::Config config = configWith(config::TableAuto{}, {prefix("::/0")});
  config.interface.firewallMark = 4711;
  CHECK(desiredNetwork(config, facts(config)).firewallMark == 4711);
  apply(config);
  CHECK(hasRoute("::/0", 4711));
}

TEST_CASE_METHOD(Fixture, "case 34: Table = reply leaves the default route alone") {
  apply(configWith(config::TableReply{}, {prefix("0.0.0.0/0")}));
  CHECK(hasRoute("0.0.0.0/0", 51820));
  CHECK_FALSE(hasRoute("0.0.0.0/0", netlink::kMainTable));
  REQUIRE(routing.ruleList.size() == 2);
  CHECK(routing.ruleList[0].mark == nat::ReplyMarks{}.mark);
  CHECK(routing.ruleList[0].markMask == nat::ReplyMarks{}.mask);
  CHECK(routing.ruleList[0].table == 51820);
  CHECK(routing.ruleList[1].source == prefix("10.10.0.2/32"));
  CHECK(routing.ruleList[1].table == 51820);
  CHECK(firewall.installed->reply);
}

TEST_CASE_METHOD(Fixture, "case 23: a changed address, prefix and table are reconciled") {
  apply(configWith(config::TableAuto{}, {prefix("0.0.0.0/0"), prefix("10.20.0.0/16")}));
  config::Config changed = configWith(config::TableAuto{}, {prefix("192.168.50.0/24")});
  changed.interface.addresses = {address("10.10.0.12/32")};
  apply(changed);
  CHECK(routing.addressList == std::vector{address("10.10.0.12/32")});
  CHECK(hasRoute("192.168.50.0/24", netlink::kMainTable));
  CHECK(routing.routeList.size() == 1);
  CHECK(routing.ruleList.empty());
}

TEST_CASE_METHOD(Fixture, "a rule that somebody removed comes back in the right order") {
  const config::Config config = configWith(config::TableAuto{}, {prefix("0.0.0.0/0")});
  apply(config);
  const auto gone = GENERATE(0U, 1U);
  routing.ruleList.erase(routing.ruleList.begin() + gone);
  apply(config);
  REQUIRE(routing.ruleList.size() == 2);
  CHECK(routing.ruleList[0].suppressPrefixLength == 0U);
}

TEST_CASE_METHOD(Fixture, "what is not ours is never touched") {
  netlink::Route foreign;
  foreign.destination = prefix("10.99.0.0/16");
  foreign.interface = 7;
  foreign.protocol = 4;  // RTPROT_STATIC: an administrator's own
  routing.routeList.push_back(foreign);
  netlink::Rule rule;
  rule.table = 51820;
  rule.protocol = 0;
  routing.ruleList.push_back(rule);
  routing.addressList.push_back(address("fe80::1/64"));
  apply(configWith(config::TableReply{}, {prefix("0.0.0.0/0")}));
  apply(configWith(config::TableOff{}, {}));
  reconciler.remove("adit0");
  CHECK(routing.routeList == std::vector{foreign});
  CHECK(routing.ruleList == std::vector{rule});
  CHECK(routing.addressList.front() == address("fe80::1/64"));
}

TEST_CASE_METHOD(Fixture, "disabled IPv6 degrades to a warning") {
  routing.refuseV6 = true;
  config::Config config = configWith(config::TableAuto{}, {prefix("10.20.0.0/16")});
  config.interface.addresses.push_back(address("fd10::2/64"));
  const ReconcileReport report = apply(config);
  CHECK(report.warnings == std::vector<std::string>{"IPv6 is disabled on adit0"});
  CHECK(hasRoute("10.20.0.0/16", netlink::kMainTable));
}

TEST_CASE_METHOD(Fixture, "a refused ruleset is a warning, and the rest stands") {
  firewall.refusal = Error{"nas.conf:9:1: no such chain", 0};
  const ReconcileReport report = apply(configWith(config::TableReply{}, {prefix("0.0.0.0/0")}));
  CHECK(report.warnings == std::vector<std::string>{"nas.conf:9:1: no such chain"});
  CHECK(hasRoute("0.0.0.0/0", 51820));
}

TEST_CASE_METHOD(Fixture, "a vanished interface is an error") {
  const config::Config config = configWith(config::TableAuto{}, {});
  const DesiredNetwork desired = desiredNetwork(config, facts(config));
  routing.linkList.pop_back();
  CHECK_FALSE(reconciler.apply(desired, 7));
}

TEST_CASE_METHOD(Fixture,
                 "remove takes routes, rules and ruleset away, and another tunnel keeps its own") {
  apply(configWith(config::TableAuto{}, {prefix("0.0.0.0/0")}));
  netlink::Rule other;
  other.mark = 99;
  other.invert = true;
  other.table = 99;
  routing.ruleList.insert(routing.ruleList.begin(), other);
  CHECK(reconciler.remove("adit0").empty());
  CHECK(routing.routeList.empty());
  CHECK_FALSE(firewall.installed);
  // The suppressing rule still serves the other one.
  CHECK(routing.ruleList.size() == 2);
  std::erase_if(routing.ruleList, [&](const auto& rule) { return rule.sameAs(other); });
  apply(configWith(config::TableAuto{}, {prefix("0.0.0.0/0")}));
  reconciler.remove("adit0");
  CHECK(routing.ruleList.empty());
}

TEST_CASE("both protocols make two mappings, with one target of each family") {
  config::MapConfig map;
  map.protocol = config::MapConfig::Protocol::Both;
  map.firstPort = 8000;
  map.lastPort = 8009;
  map.targetPort = 8000;
  map.targets = {IpAddress::parse("10.10.0.2").value(), IpAddress::parse("fd10::2").value(),
                 IpAddress::parse("10.10.0.9").value()};
  config::Config config;
  config.maps = {map};
  const auto mappings = mappingsBySide(config).translated;
  REQUIRE(mappings.size() == 2);
  CHECK(mappings[0].protocol == nat::Protocol::Tcp);
  CHECK(mappings[1].protocol == nat::Protocol::Udp);
  CHECK(mappings[0].targetV4 == map.targets[0]);
  CHECK(mappings[0].targetV6 == map.targets[1]);
}

}  // namespace adit::control
