#include "netlink/monitor.hpp"

#include <poll.h>

#include <catch2/catch.hpp>
#include <set>

#include "netlink/route.hpp"
#include "netlink/test_namespace.hpp"

using namespace adit;
using namespace adit::netlink;

namespace {

/// Waits until `wanted` was reported, at most a second.
bool reports(Monitor& monitor, Change wanted) {
  std::set<Change> seen;
  pollfd poll{monitor.descriptor(), POLLIN, 0};
  while (!seen.contains(wanted) && ::poll(&poll, 1, 1000) == 1) {
    REQUIRE(monitor.dispatch([&](Change change) { seen.insert(change); }));
  }
  return seen.contains(wanted);
}

bool quiet(Monitor& monitor) {
  pollfd poll{monitor.descriptor(), POLLIN, 0};
  return ::poll(&poll, 1, 0) == 0;
}

}  // namespace

TEST_CASE("every kind of change is noticed", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  host.run([] {
    auto monitor = Monitor::open();
    REQUIRE(monitor);
    auto socket = RouteSocket::open();
    REQUIRE(socket);
    REQUIRE(quiet(**monitor));

    REQUIRE_OK((*socket)->createLink("d0", "veth"));
    REQUIRE(reports(**monitor, Change::Link));
    const auto index = (*(*socket)->findLink("d0"))->index;
    REQUIRE_OK((*socket)->setLinkUp(index, true));
    REQUIRE(reports(**monitor, Change::Link));

    for (const char* text : {"10.9.0.1/24", "fd09::1/64"}) {
      REQUIRE_OK((*socket)->addAddress(index, *InterfaceAddress::parse(text)));
      REQUIRE(reports(**monitor, Change::Address));
    }
    for (const char* text : {"192.168.1.0/24", "fd01::/64"}) {
      Route route;
      route.destination = *Prefix::parse(text);
      route.interface = index;
      REQUIRE_OK((*socket)->addRoute(route));
      REQUIRE(reports(**monitor, Change::Route));
    }
    for (const int family : {AF_INET, AF_INET6}) {
      Rule rule;
      rule.family = family;
      rule.mark = 1;
      REQUIRE_OK((*socket)->addRule(rule));
      REQUIRE(reports(**monitor, Change::Rule));
    }
  });
}

TEST_CASE("case 46: somebody's flush of the ruleset is noticed", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  host.run([] {
    REQUIRE(std::system("nft add table inet theirs") == 0);
    auto monitor = Monitor::open();
    REQUIRE(monitor);
    REQUIRE(quiet(**monitor));
    REQUIRE(std::system("nft flush ruleset") == 0);
    REQUIRE(reports(**monitor, Change::Firewall));
  });
}

TEST_CASE("a flood of notifications is drained, and what was lost is reported as everything",
          "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  host.run([] {
    auto monitor = Monitor::open();
    REQUIRE(monitor);
    auto socket = RouteSocket::open();
    REQUIRE(socket);
    REQUIRE_OK((*socket)->createLink("d0", "veth"));
    const auto index = (*(*socket)->findLink("d0"))->index;
    REQUIRE_OK((*socket)->setLinkUp(index, true));
    // Far more than the socket's receive buffer holds.
    for (unsigned i = 0; i < 4000; ++i) {
      Route route;
      const std::array<std::uint8_t, 4> bytes = {10, static_cast<std::uint8_t>(i >> 8),
                                                 static_cast<std::uint8_t>(i), 0};
      route.destination = Prefix(IpAddress::fromV4(bytes), 24);
      route.interface = index;
      REQUIRE_OK((*socket)->addRoute(route));
    }
    REQUIRE(reports(**monitor, Change::Firewall));
    REQUIRE(quiet(**monitor));
  });
}
