// Who may ask for what, whom to ask, and leases as mappings and over a restart.
#include "control/device_pcp_model.hpp"

#include <catch2/catch.hpp>

#include "control/desired.hpp"
#include "control/device_pcp_state.hpp"

namespace adit::control {
namespace {

using namespace std::chrono_literals;

IpAddress address(const char* text) {
  return *IpAddress::parse(text);
}

/// A NAS with addresses of both families that dials one server.
config::Config nas(const std::vector<const char*>& allowed) {
  config::Config config;
  config.interface.addresses = {*InterfaceAddress::parse("10.10.0.2/24"),
                                *InterfaceAddress::parse("fd10::2/64")};
  config::PeerConfig& server = config.peers.emplace_back();
  server.endpoint =
      config::EndpointName{.host = "203.0.113.9", .port = 51820, .zone = "", .literal = {}};
  for (const char* prefix : allowed) {
    server.allowedIps.push_back(*Prefix::parse(prefix));
  }
  return config;
}

TEST_CASE("ports: the server's address in the tunnel") {
  using Paths = std::vector<pcp::Path>;
  const pcp::Path v4{address("10.10.0.2"), address("10.10.0.1")};
  const pcp::Path v6{address("fd10::2"), address("fd10::1")};
  CHECK(portPaths(nas({"0.0.0.0/0", "::/0"})) == Paths{v4, v6});
  CHECK(portPaths(nas({"10.10.0.0/24"})) == Paths{v4});
  CHECK(portPaths(nas({"10.10.0.9/32"})) == Paths{{v4.self, address("10.10.0.9")}});
  CHECK(portPaths(nas({"0.0.0.0/0", "10.10.0.9/32"})) == Paths{{v4.self, address("10.10.0.9")}});
  CHECK(portPaths(nas({"172.16.0.1/32"})) == Paths{{v4.self, address("172.16.0.1")}});
  CHECK(portPaths(nas({"192.168.9.0/24"})).empty());
  config::Config first = nas({"0.0.0.0/0"});
  first.interface.addresses = {*InterfaceAddress::parse("10.10.0.1/24")};
  CHECK(portPaths(first).empty());
  first.interface.addresses = {*InterfaceAddress::parse("10.10.0.2/32")};
  CHECK(portPaths(first).empty());
  config::Config waiting = nas({"0.0.0.0/0"});
  waiting.peers[0].endpoint.reset();
  CHECK(portPaths(waiting).empty());
}

TEST_CASE("ports: AllowMaps as grants") {
  using Protocol = config::PortGrant::Protocol;
  config::Config config = nas({"10.10.0.2/32"});
  CHECK_FALSE(servesPorts(config));
  config.peers[0].name = "box";
  config.peers[0].allowMaps = {{Protocol::Tcp, 8000, 9000}, {Protocol::Both, 53, 53}};
  config.peers[0].allowThirdParty = true;
  CHECK(servesPorts(config));
  const auto peers = portPeers(config);
  REQUIRE(peers.size() == 1);
  CHECK(peers[0].policy.name == "box");
  CHECK(peers[0].policy.thirdParty);
  CHECK(peers[0].policy.grants == std::vector<pcp::PortRange>{{pcp::kTcp, 8000, 9000},
                                                              {pcp::kTcp, 53, 53},
                                                              {pcp::kUdp, 53, 53}});
}

TEST_CASE("ports: what a mapping of the NAS's file asks for") {
  nat::Mapping mapping;
  mapping.label = "udp/5000-5009";
  mapping.protocol = nat::Protocol::Udp;
  mapping.firstPort = 5000;
  mapping.lastPort = 5009;
  mapping.targetPort = 6000;
  mapping.targetV4 = address("10.10.0.2");
  mapping.targetV6 = address("fd10::2");
  mapping.source = nat::SourceMode::Masquerade;
  mapping.rate = 1000;
  const pcp::Path v4{address("10.10.0.2"), address("10.10.0.1")};
  const pcp::Path v6{address("fd10::2"), address("fd10::1")};
  const auto wanted = wantedPorts({mapping}, {v4, v6});
  REQUIRE(wanted.size() == 2);
  CHECK(wanted[0].external() == pcp::PortRange{pcp::kUdp, 5000, 5009});
  CHECK(wanted[0].firstInternal == 6000);
  CHECK(wanted[0].masquerade);
  CHECK(wanted[0].rate == 1000);
  CHECK(wanted[1].target == address("fd10::2"));
  CHECK(wantedPorts({mapping}, {v4}).size() == 1);
  CHECK(wantedPorts({mapping}, {}).empty());
}

pcp::Lease lease(const char* target) {
  pcp::Lease made;
  made.peer = "key";
  made.client = {address(target), 40000, 0};
  made.target = address(target);
  made.protocol = pcp::kTcp;
  made.firstInternal = 80;
  made.firstExternal = 8080;
  made.size = 2;
  made.nonce = {1, 2, 3};
  made.allow = {*Prefix::parse("198.51.100.0/24")};
  made.rate = 5;
  made.expires = 5000s;
  return made;
}

TEST_CASE("ports: leases as mappings, the two families as one") {
  const PortPeer peer{{.id = "key", .name = "nas", .grants = {}, .thirdParty = false}, {}};
  auto newer = lease("fd10::2");
  newer.updated = 1s;
  newer.hairpin = true;
  auto other = lease("10.10.0.2");
  other.firstExternal = 9000;
  const auto mappings = leaseMappings({lease("10.10.0.2"), newer, other}, {peer});
  REQUIRE(mappings.size() == 2);
  CHECK(mappings[0].targetV4 == address("10.10.0.2"));
  CHECK(mappings[0].targetV6 == address("fd10::2"));
  CHECK(mappings[0].listenText() == "tcp/8080-8081");
  CHECK(mappings[0].targetPort == 80);
  CHECK(mappings[0].targetHost == "nas");
  CHECK(mappings[0].hairpin);
  CHECK(mappings[0].rate == 5U);
  CHECK(mappings[1].firstPort == 9000);
  nat::RulesetSpec spec;
  spec.publicInterfaces = {"eth0"};
  spec.mappings = mappings;
  CHECK(nat::validate(spec).empty());
}

TEST_CASE("ports: leases stand beside the file's mappings, and need a public side") {
  config::Config config = nas({"10.10.0.2/32"});
  const PortPeer peer{{.id = "key", .name = "nas", .grants = {}, .thirdParty = false}, {}};
  const auto leases = leaseMappings({lease("10.10.0.2")}, {peer});
  NetworkFacts facts;
  facts.interface = "adit0";
  CHECK(desiredNetwork(config, facts, leases).ruleset.mappings.empty());
  facts.defaultInterface = "eth0";
  const auto desired = desiredNetwork(config, facts, leases);
  CHECK(desired.ruleset.publicInterfaces == std::vector<std::string>{"eth0"});
  CHECK(desired.ruleset.mappings == leases);
  CHECK_FALSE(desired.sysctls.empty());
  CHECK(desiredNetwork(config, facts).ruleset.empty());
}

TEST_CASE("ports: Expose = maps leaves our own sockets open, where there are any") {
  config::Config config = nas({"0.0.0.0/0"});
  config.interface.expose = config::Expose::Maps;
  NetworkFacts facts;
  facts.interface = "adit0";
  CHECK(desiredNetwork(config, facts).ruleset.exposure->declared.empty());
  config.peers[0].allowMaps = {{config::PortGrant::Protocol::Tcp, 1, 2}};
  const auto declared = desiredNetwork(config, facts).ruleset.exposure->declared;
  REQUIRE(declared.size() == 1);
  CHECK(declared[0].firstPort == pcp::kServerPort);
  CHECK(declared[0].protocol == nat::Protocol::Udp);
  CHECK(declared[0].targetV4 == address("10.10.0.2"));
}

class FakeClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return boot; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return real; }
  BootTime boot{1000s};
  std::chrono::nanoseconds real{1'800'000'000s};
};

TEST_CASE("ports: leases over a restart of the daemon, and of the machine") {
  FakeClock clock;
  const std::vector<pcp::Lease> leases{lease("10.10.0.2"), lease("fd10::2")};
  const std::string text = leasesToText(leases, BootTime{700s}, clock);
  clock.boot += 10s;
  // Somebody sets the wall clock meanwhile, which is no reason to end a lease.
  clock.real -= 86400s;
  const auto again = leasesFromText(text, clock);
  REQUIRE(again);
  CHECK(again->leases == leases);
  CHECK(again->epochStart == BootTime{700s});
  SECTION("after a boot the wall clock counts") {
    clock.boot = 50s;
    clock.real += 86400s + 990s;
    const auto later = leasesFromText(text, clock);
    REQUIRE(later);
    CHECK_FALSE(later->epochStart);
    CHECK(later->leases[0].expires == clock.boot + 3010s);
  }
  SECTION("a text that is not of this boot has no epoch") {
    const auto durable = leasesFromText(leasesToText(leases, std::nullopt, clock), clock);
    REQUIRE(durable);
    CHECK_FALSE(durable->epochStart);
    CHECK(durable->leases[0].firstExternal == 8080);
  }
  SECTION("damage") {
    CHECK_FALSE(leasesFromText("", clock));
    CHECK_FALSE(leasesFromText("{}", clock));
    CHECK_FALSE(leasesFromText(text.substr(0, text.size() / 2), clock));
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"\"size\": 2", "\"size\": 0"},
             {"\"external\": 8080", "\"external\": 65535"},
             {"\"protocol\": 6", "\"protocol\": 1"},
             {"010203", "01020"},
             {"10.10.0.2:40000", "nowhere"},
             {"198.51.100.0/24", "198.51.100.0/240"}}) {
      CAPTURE(from);
      std::string damaged = text;
      damaged.replace(damaged.find(from), from.size(), to);
      CHECK_FALSE(leasesFromText(damaged, clock));
    }
  }
}

}  // namespace
}  // namespace adit::control
