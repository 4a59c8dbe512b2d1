// Two tunnels that want the same port.
#include "nat/claims.hpp"

#include <catch2/catch.hpp>

#include "nat/addresses.hpp"
#include "nat/topology.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::ip;

namespace {

Mapping mapping(Protocol protocol, std::uint16_t first, std::uint16_t last) {
  Mapping result;
  result.location = "x.conf:7:1";
  result.protocol = protocol;
  result.firstPort = first;
  result.lastPort = last;
  result.targetPort = first;
  result.targetV4 = ip("10.9.0.2");
  return result;
}

RulesetSpec specOf(const char* interface, Mapping wanted) {
  RulesetSpec spec;
  spec.interface = interface;
  spec.publicInterfaces = {"eth0"};
  spec.mappings = {std::move(wanted)};
  return spec;
}

}  // namespace

TEST_CASE("the mappings of other tunnels are read from the kernel", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  auto one = specOf("one", mapping(Protocol::Tcp, 8000, 8010));
  one.publicInterfaces =
      GENERATE(std::vector<std::string>{"eth0"}, std::vector<std::string>{"eth0", "eth1"});
  auto other = mapping(Protocol::Udp, 53, 53);
  other.listenAddress = ip("203.0.113.9");
  one.mappings.push_back(other);
  test::Topology::install(host, one);
  host.run([&] {
    const auto own = claimsOfOthers("one");
    REQUIRE_OK(own);
    REQUIRE(own->empty());
    const auto claims = claimsOfOthers("two");
    REQUIRE_OK(claims);
    REQUIRE(claims->size() == 2);
    for (const Claim& claim : *claims) {
      REQUIRE(claim.tunnel == "one");
      REQUIRE_FALSE(claim.v6);
      REQUIRE(claim.publicInterfaces == one.publicInterfaces);
      const bool tcp = claim.protocol == Protocol::Tcp;
      REQUIRE(claim.firstPort == (tcp ? 8000 : 53));
      REQUIRE(claim.lastPort == (tcp ? 8010 : 53));
      REQUIRE(claim.listenAddress == (tcp ? std::nullopt : std::optional(ip("203.0.113.9"))));
    }
    REQUIRE(claimConflicts(specOf("two", mapping(Protocol::Tcp, 8005, 9000)), *claims)
                .front()
                .message ==
            "x.conf:7:1: mapping tcp/8005-9000 would take the port away from the tunnel one, which "
            "maps it already; choose another port, or write Override = yes if that is meant");
  });
}

TEST_CASE("what two tunnels may map") {
  const Claim claim{.tunnel = "one",
                    .protocol = Protocol::Tcp,
                    .listenAddress = ip("203.0.113.9"),
                    .v6 = false,
                    .firstPort = 80,
                    .lastPort = 81,
                    .publicInterfaces = {"eth0"}};
  const auto conflicts = [&](const Mapping& wanted) {
    return claimConflicts(specOf("two", wanted), {claim}).size();
  };
  Mapping wanted = mapping(Protocol::Tcp, 81, 90);
  REQUIRE(conflicts(wanted) == 1);
  wanted.listenAddress = ip("203.0.113.9");
  REQUIRE(conflicts(wanted) == 1);
  SECTION("another address") {
    wanted.listenAddress = ip("203.0.113.10");
  }
  SECTION("another port") {
    wanted.firstPort = 82;
  }
  SECTION("another protocol") {
    wanted.protocol = Protocol::Udp;
  }
  SECTION("on purpose") {
    wanted.overrideListener = true;
  }
  SECTION("another family") {
    wanted.listenAddress.reset();
    wanted.targetV6 = ip("fd09::2");
    wanted.targetV4.reset();
  }
  REQUIRE(conflicts(wanted) == 0);
  auto elsewhere = specOf("two", mapping(Protocol::Tcp, 80, 80));
  elsewhere.publicInterfaces = {"eth1"};
  REQUIRE(claimConflicts(elsewhere, {claim}).empty());
  elsewhere.publicInterfaces.clear();
  REQUIRE(claimConflicts(elsewhere, {claim}).size() == 1);
}
