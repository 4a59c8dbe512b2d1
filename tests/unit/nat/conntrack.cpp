// Which tracked connections a changed mapping cuts (case 41).
#include "nat/conntrack.hpp"

#include <catch2/catch.hpp>

#include "nat/addresses.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::ip;

namespace {

Endpoint at(const char* text) {
  return *Endpoint::parse(text);
}

const HostAddresses kHost = {{ip("127.0.0.1"), ip("203.0.113.9"), ip("10.9.0.1")},
                             {ip("203.0.113.9")}};
const std::vector<TouchedPorts> kTouched = {{IPPROTO_UDP, 7000, 7009}};

RulesetSpec spec() {
  Mapping mapping;
  mapping.protocol = Protocol::Udp;
  mapping.firstPort = 7000;
  mapping.lastPort = 7009;
  mapping.targetPort = 8000;
  mapping.targetV4 = ip("10.9.0.2");
  RulesetSpec result;
  result.interface = "tun";
  result.publicInterfaces = {"eth0"};
  result.ownPort = 51820;
  result.mappings = {mapping};
  return result;
}

/// A client's flow to port 7003 as the mapping of spec() makes it.
Flow right() {
  return {Protocol::Udp, at("198.51.100.2:40000"), at("203.0.113.9:7003"), at("10.9.0.2:8003"),
          at("198.51.100.2:40000")};
}

bool cut(const Flow& flow, const RulesetSpec& wanted) {
  return disagrees(flow, wanted, kTouched, kHost);
}

}  // namespace

TEST_CASE("a flow that is as the mapping makes it stays") {
  REQUIRE_FALSE(cut(right(), spec()));
}

TEST_CASE("a flow to another target, or another port of it, is cut") {
  auto flow = right();
  flow.replySource = at("10.9.0.3:8003");
  REQUIRE(cut(flow, spec()));
  flow.replySource = at("10.9.0.2:7003");
  REQUIRE(cut(flow, spec()));
}

TEST_CASE("a flow from before the mapping is cut, one after its removal too") {
  auto untranslated = right();
  untranslated.replySource = untranslated.originalDestination;
  REQUIRE(cut(untranslated, spec()));
  auto none = spec();
  none.mappings.clear();
  REQUIRE(cut(right(), none));
  REQUIRE_FALSE(cut(untranslated, none));
}

TEST_CASE("a flow whose source is hidden or shown against the mapping is cut") {
  auto hidden = right();
  hidden.replyDestination = at("10.9.0.1:40000");
  REQUIRE(cut(hidden, spec()));
  auto masquerading = spec();
  masquerading.mappings.front().source = SourceMode::Masquerade;
  REQUIRE_FALSE(cut(hidden, masquerading));
  REQUIRE(cut(right(), masquerading));
}

TEST_CASE("a client that an Allow list no longer names is cut") {
  auto restricted = spec();
  restricted.mappings.front().allow = {*Prefix::parse("192.0.2.0/24")};
  REQUIRE(cut(right(), restricted));
  restricted.mappings.front().allow.push_back(*Prefix::parse("198.51.100.0/24"));
  REQUIRE_FALSE(cut(right(), restricted));
}

TEST_CASE("what a change is not about stays, however it looks") {
  auto wrong = right();
  wrong.replySource = at("10.9.0.3:8003");
  SECTION("another protocol") {
    wrong.protocol = Protocol::Tcp;
    REQUIRE_FALSE(cut(wrong, spec()));
  }
  SECTION("another port") {
    wrong.originalDestination.port = 7010;
    REQUIRE_FALSE(cut(wrong, spec()));
  }
  SECTION("forwarded to the same port elsewhere") {
    wrong.originalDestination.address = ip("192.0.2.80");
    REQUIRE_FALSE(cut(wrong, spec()));
  }
  SECTION("to the tunnel's address") {
    wrong.originalDestination.address = ip("10.9.0.1");
    REQUIRE_FALSE(cut(wrong, spec()));
  }
  SECTION("the tunnel's own datagrams under a catch-all") {
    auto all = spec();
    all.mappings.front().firstPort = 1;
    all.mappings.front().lastPort = 65535;
    wrong.originalDestination.port = 51820;
    REQUIRE_FALSE(disagrees(wrong, all, {{IPPROTO_UDP, 1, 65535}}, kHost));
  }
  SECTION("the host itself, where the mapping has no hairpin") {
    wrong.originalSource = at("203.0.113.9:40000");
    wrong.replySource = wrong.originalDestination;
    REQUIRE_FALSE(cut(wrong, spec()));
  }
}
