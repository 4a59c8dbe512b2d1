// Answers of UDP services on the NAS that are bound to no address.
#include <algorithm>
#include <catch2/catch.hpp>

#include "nat/addresses.hpp"
#include "nat/firewall.hpp"
#include "nat/ruleset.hpp"
#include "nat/topology.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::Client;
using adit::test::endpoint;
using adit::test::ip;
using adit::test::kImpatience;
using adit::test::kPatience;
using adit::test::Service;
using adit::test::Topology;

namespace {

RulesetSpec serverSpec() {
  Mapping mapping;
  mapping.protocol = Protocol::Udp;
  mapping.firstPort = 5000;
  mapping.lastPort = 5009;
  mapping.targetPort = 6000;
  mapping.targetV4 = ip("10.9.0.2");
  mapping.targetV6 = ip("fd09::2");
  RulesetSpec spec = Topology::serverSpec();
  spec.mappings = {mapping};
  return spec;
}

/// The NAS's own default route leads into its LAN: these are its addresses there.
RulesetSpec nasSpec(std::vector<IpAddress> home = {ip("192.168.50.1"), ip("fd50::1")}) {
  RulesetSpec spec = Topology::nasSpec();
  spec.tunnelAddresses = {ip("10.9.0.2"), ip("fd09::2")};
  spec.answers =
      UdpAnswers{std::move(home), {*Prefix::parse("10.9.0.0/24"), *Prefix::parse("fd09::/64")}};
  return spec;
}

struct Case {
  const char* bound;
  bool v6;
};

bool answered(const Topology& net, const Case& at, std::uint16_t localPort = 40000) {
  Service service(net.nas, Protocol::Udp, endpoint(at.bound));
  Endpoint local = endpoint(at.v6 ? "[2001:db8:1::2]:1" : "198.51.100.2:1");
  local.port = localPort;
  const Client client(net.client, Protocol::Udp, local,
                      endpoint(at.v6 ? "[2001:db8:1::1]:5005" : "198.51.100.1:5005"));
  const auto seen = service.serve(kPatience);
  REQUIRE(seen);
  REQUIRE(seen->port == localPort);
  return client.answered(kImpatience);
}

}  // namespace

TEST_CASE("a UDP service answers by the tunnel, whatever it is bound to", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.server, serverSpec());
  Topology::apply(net.nas, nasSpec());
  const Case at =
      GENERATE(Case{"0.0.0.0:6005", false}, Case{"[::]:6005", false}, Case{"[::]:6005", true},
               Case{"10.9.0.2:6005", false}, Case{"[fd09::2]:6005", true});
  CAPTURE(at.bound, at.v6);
  REQUIRE(answered(net, at));
}

TEST_CASE("a client at home and a peer of the tunnel reach the same service as before", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, nasSpec());
  const bool v6 = GENERATE(false, true);
  const Endpoint bound = endpoint(v6 ? "[::]:6005" : "0.0.0.0:6005");
  const auto contact = net.contact(
      net.lanHost, endpoint(v6 ? "[fd50::20]:40000" : "192.168.50.20:40000"), Protocol::Udp,
      endpoint(v6 ? "[fd50::1]:6005" : "192.168.50.1:6005"), net.nas, bound);
  REQUIRE(contact.answered);
  const auto inside =
      net.contact(net.server, endpoint(v6 ? "[fd09::1]:40000" : "10.9.0.1:40000"), Protocol::Udp,
                  endpoint(v6 ? "[fd09::2]:6005" : "10.9.0.2:6005"), net.nas, bound);
  REQUIRE(inside.answered);
}

TEST_CASE("a flow from before the home address is known, or changes, is answered afterwards",
          "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const bool v6 = GENERATE(false, true);
  const Case at = v6 ? Case{"[::]:6005", true} : Case{"0.0.0.0:6005", false};
  Topology::apply(net.server, serverSpec());
  Topology::apply(net.nas, nasSpec({}));
  REQUIRE_FALSE(answered(net, at));
  // Both entries of the misled answer are in the way now.
  auto change = Topology::apply(net.nas, nasSpec());
  REQUIRE(change.kind == FirewallChange::Kind::Updated);
  REQUIRE(change.connectionsCut == 2);
  REQUIRE(answered(net, at));

  const std::string lan = v6 ? "fd50::77" : "192.168.50.77";
  net.nas.shell("ip address del " + std::string(v6 ? "fd50::1/64" : "192.168.50.1/24") +
                " dev lan; ip address add " + lan + (v6 ? "/64" : "/24") +
                " dev lan nodad; ip route replace default via " +
                (v6 ? "fd50::20 dev lan" : "192.168.50.20"));
  Topology::apply(net.nas, nasSpec({ip(lan.c_str())}));
  REQUIRE(answered(net, at));
}

TEST_CASE("without nft_socket all else works, and one warning says what does not", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.server, serverSpec());
  Topology::apply(net.nas, Topology::nasSpec());
  net.nas.run([] {
    auto firewall = KernelFirewall::open({.unboundSockets = false});
    REQUIRE_OK(firewall);
    const auto change = (*firewall)->apply(nasSpec());
    REQUIRE_OK(change);
    REQUIRE(change->warnings.size() == 1);
    REQUIRE(change->warnings.front().find("bind them to the tunnel's address") !=
            std::string::npos);
    REQUIRE(*(*firewall)->isApplied(nasSpec()));
  });
  REQUIRE(answered(net, {"10.9.0.2:6005", false}));
  REQUIRE_FALSE(answered(net, {"0.0.0.0:6005", false}, 40001));
}

TEST_CASE("a changed home address is a changed element") {
  const auto before = nasSpec();
  const auto after = nasSpec({ip("192.168.50.77")});
  REQUIRE(hashOfStatic(before) == hashOfStatic(after));
  const ElementDiff diff = difference(elementsOf(before), elementsOf(after));
  REQUIRE(diff.removed.size() == 2);
  REQUIRE(diff.added.size() == 1);
  REQUIRE(diff.added.begin()->first.first == "answer4");
}
