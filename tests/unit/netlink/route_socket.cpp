// rtnetlink against the real kernel, in namespaces of the test's own.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>

#include "netlink/route.hpp"
#include "netlink/test_namespace.hpp"

using namespace adit;
using namespace adit::netlink;

namespace {

InterfaceAddress address(const char* text) {
  return *InterfaceAddress::parse(text);
}
Prefix prefix(const char* text) {
  return *Prefix::parse(text);
}
IpAddress ip(const char* text) {
  return *IpAddress::parse(text);
}

/// A veth pair, both ends up; the index of the named one.
std::uint32_t makeLink(RouteSocket& socket, const char* name) {
  REQUIRE_OK(socket.createLink(name, "veth"));
  const auto links = *socket.links();
  for (const Link& link : links) {
    REQUIRE_OK(socket.setLinkUp(link.index, true));
  }
  return (*socket.findLink(name))->index;
}

/// A namespace with loopback and a veth "d0" up (with its other end), and a socket in it.
class Host {
 public:
  void run(const std::function<void(RouteSocket&, std::uint32_t)>& body) {
    if (!test::haveNamespaces()) {
      return;
    }
    namespace_.run([&] {
      auto socket = RouteSocket::open();
      REQUIRE(socket);
      REQUIRE_OK((*socket)->setLinkUp(1, true));
      body(**socket, makeLink(**socket, "d0"));
    });
  }

 private:
  test::Namespace namespace_;
};

std::vector<Route> ourRoutes(RouteSocket& socket) {
  RouteFilter filter;
  filter.protocol = kRouteProtocol;
  auto routes = socket.routes(filter);
  REQUIRE(routes);
  return *routes;
}

Route route(const char* destination, std::uint32_t interface, std::uint32_t table = kMainTable) {
  Route result;
  result.destination = prefix(destination);
  result.interface = interface;
  result.table = table;
  return result;
}

}  // namespace

TEST_CASE("links are listed, found, changed and deleted", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    const auto links = socket.links();
    REQUIRE(links);
    REQUIRE(std::ranges::count(*links, std::string("d0"), &Link::name) == 1);
    REQUIRE(std::ranges::count(*links, std::string("lo"), &Link::name) == 1);

    auto link = *socket.findLink("d0");
    REQUIRE(link->kind == "veth");
    REQUIRE(link->mtu == 1500);
    REQUIRE(link->up);
    REQUIRE_OK(socket.setLinkMtu(index, 1420));
    REQUIRE_OK(socket.setLinkUp(index, false));
    link = *socket.findLink("d0");
    REQUIRE(link->mtu == 1420);
    REQUIRE_FALSE(link->up);

    const auto again = socket.createLink("d0", "veth");
    REQUIRE_FALSE(again);
    REQUIRE(again.error().code == EEXIST);
    REQUIRE(again.error().message.find("create interface d0 of type veth") == 0);

    REQUIRE_OK(socket.deleteLink(index));
    REQUIRE_OK(socket.deleteLink(index));
    REQUIRE_FALSE(socket.findLink("d0")->has_value());
    REQUIRE_FALSE(socket.findLink("a-name-that-is-too-long")->has_value());
    const auto gone = socket.setLinkUp(index, true);
    REQUIRE_FALSE(gone);
    REQUIRE(gone.error().code == ENODEV);
  });
}

TEST_CASE("a silent link gets no address of its own", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t) {
    REQUIRE_OK(socket.createLink("d8", "veth"));
    REQUIRE_OK(socket.createLink("d9", "veth"));
    const std::uint32_t silent = (*socket.findLink("d8"))->index;
    const std::uint32_t plain = (*socket.findLink("d9"))->index;
    REQUIRE_OK(socket.setLinkSilent(silent));
    // In this order, so that the silent one would have its address first.
    for (const char* name : {"d8", "d9"}) {
      REQUIRE_OK(socket.setLinkUp((*socket.findLink(name))->index, true));
    }
    const auto links = *socket.links();
    for (const Link& link : links) {
      REQUIRE_OK(socket.setLinkUp(link.index, true));
    }
    // The carrier, and with it the address, comes from a task of the kernel.
    constexpr int kTries = 300;
    for (int i = 0; i < kTries && socket.addresses(plain)->empty(); ++i) {
      ::usleep(10'000);
    }
    CHECK(socket.addresses(plain)->size() == 1);
    CHECK(socket.addresses(silent)->empty());
  });
}

TEST_CASE("an MTU that the link refuses names link and value", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    const auto result = socket.setLinkMtu(index, 0xffffffff);
    REQUIRE_FALSE(result);
    REQUIRE(result.error().message.find("set MTU 4294967295 on d0: ") == 0);
  });
}

TEST_CASE("addresses of both families, added and removed twice", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    for (const char* text : {"10.9.0.1/24", "fd09::1/64"}) {
      REQUIRE_OK(socket.addAddress(index, address(text)));
      REQUIRE_OK(socket.addAddress(index, address(text)));
      auto all = socket.addresses(index);
      REQUIRE(all);
      REQUIRE(std::ranges::count(*all, address(text)) == 1);
      // The on-link route comes with the address.
      REQUIRE_OK(socket.lookupRoute(ip(address(text).address.isV4() ? "10.9.0.2" : "fd09::2"), 0));

      REQUIRE_OK(socket.removeAddress(index, address(text)));
      REQUIRE_OK(socket.removeAddress(index, address(text)));
      all = socket.addresses(index);
      REQUIRE(std::ranges::count(*all, address(text)) == 0);
    }
    REQUIRE(socket.addresses(index + 100)->empty());
  });
}

TEST_CASE("an IPv6 address is usable at once", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    REQUIRE_OK(socket.addAddress(index, address("fd09::1/64")));
    const auto answer = socket.lookupRoute(ip("fd09::2"), 0);
    REQUIRE_OK(answer);
    REQUIRE(answer->preferredSource == ip("fd09::1"));
  });
}

TEST_CASE("address errors name address and interface", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t) {
    const auto result = socket.addAddress(4711, address("10.9.0.1/24"));
    REQUIRE_FALSE(result);
    REQUIRE(result.error().code == ENODEV);
    REQUIRE(result.error().message.find("add address 10.9.0.1/24 to interface 4711: ") == 0);
  });
}

TEST_CASE("missing rights name the remedy", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    // By the raw call it is this thread alone that loses its privileges, and it ends with the body.
    REQUIRE(::syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
    const auto result = socket.addAddress(index, address("10.9.0.1/24"));
    REQUIRE_FALSE(result);
    REQUIRE(result.error().message ==
            "add address 10.9.0.1/24 to d0: permission denied; run as root or with CAP_NET_ADMIN");
  });
}

TEST_CASE("routes are added once, tagged as ours, and removed", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    for (const char* text : {"192.168.50.0/24", "fd50::/64", "0.0.0.0/0", "::/0"}) {
      for (const std::uint32_t table :
           {kMainTable, std::uint32_t{51820}, std::uint32_t{0xfffffff0}}) {
        auto wanted = route(text, index, table);
        wanted.mtu = 1380;
        INFO(wanted.toString());
        REQUIRE_OK(socket.addRoute(wanted));
        REQUIRE_OK(socket.addRoute(wanted));
        const auto routes = ourRoutes(socket);
        REQUIRE(routes.size() == 1);
        REQUIRE(routes[0].destination == wanted.destination);
        REQUIRE(routes[0].table == table);
        REQUIRE(routes[0].interface == index);
        REQUIRE(routes[0].mtu == 1380U);
        REQUIRE(routes[0].protocol == kRouteProtocol);
        REQUIRE_OK(socket.removeRoute(wanted));
        REQUIRE_OK(socket.removeRoute(wanted));
        REQUIRE(ourRoutes(socket).empty());
      }
    }
  });
}

TEST_CASE("addRoute leaves somebody else's route alone, replaceRoute takes its place", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    for (const char* text : {"192.168.1.0/24", "fd01::/64"}) {
      const auto lan = makeLink(socket, "lan");
      auto theirs = route(text, lan);
      theirs.protocol = 4;  // RTPROT_STATIC
      REQUIRE_OK(socket.addRoute(theirs));

      const auto refused = socket.addRoute(route(text, index));
      REQUIRE_FALSE(refused);
      REQUIRE(refused.error().code == EEXIST);
      REQUIRE(refused.error().message.find("(lan)") != std::string::npos);
      REQUIRE(ourRoutes(socket).empty());

      // Removing ours, which is not there, must not remove theirs.
      REQUIRE_OK(socket.removeRoute(route(text, lan)));
      RouteFilter filter;
      filter.interface = lan;
      filter.protocol = std::uint8_t{4};
      REQUIRE(socket.routes(filter)->size() == 1);

      REQUIRE_OK(socket.replaceRoute(route(text, index)));
      REQUIRE(ourRoutes(socket).size() == 1);
      REQUIRE_OK(socket.deleteLink(lan));
      REQUIRE_OK(socket.removeRoute(route(text, index)));
    }
  });
}

TEST_CASE("an identical route of another protocol satisfies addRoute", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    auto theirs = route("192.168.1.0/24", index);
    theirs.protocol = 4;
    REQUIRE_OK(socket.addRoute(theirs));
    REQUIRE_OK(socket.addRoute(route("192.168.1.0/24", index)));
    REQUIRE(ourRoutes(socket).empty());
  });
}

TEST_CASE("routes by gateway, and what a lookup answers", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    REQUIRE_OK(socket.addAddress(index, address("10.9.0.1/24")));
    const auto none = socket.lookupRoute(ip("198.51.100.7"), 0);
    REQUIRE_FALSE(none);
    REQUIRE(none.error().code == ENETUNREACH);
    const auto none6 = socket.lookupRoute(ip("2001:db8::7"), 0);
    REQUIRE_FALSE(none6);
    REQUIRE(none6.error().code == ENETUNREACH);

    auto viaGateway = route("0.0.0.0/0", index);
    viaGateway.gateway = ip("10.9.0.254");
    REQUIRE_OK(socket.addRoute(viaGateway));
    auto answer = socket.lookupRoute(ip("198.51.100.7"), 0);
    REQUIRE(answer);
    REQUIRE(answer->gateway == ip("10.9.0.254"));
    REQUIRE(answer->interface == index);
    REQUIRE(answer->preferredSource == ip("10.9.0.1"));
    REQUIRE(answer->mtu == 1500);
    REQUIRE_FALSE(answer->local);
    REQUIRE(socket.lookupRoute(ip("10.9.0.1"), 0)->local);

    viaGateway.mtu = 1300;
    REQUIRE_OK(socket.replaceRoute(viaGateway));
    REQUIRE(socket.lookupRoute(ip("198.51.100.7"), 0)->mtu == 1300);
  });
}

TEST_CASE("wg-quick's rules for a default route", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    constexpr std::uint32_t kMark = 51820;
    const auto eth = makeLink(socket, "eth");
    for (const int family : {AF_INET, AF_INET6}) {
      const char* all = family == AF_INET ? "0.0.0.0/0" : "::/0";
      const IpAddress far = ip(family == AF_INET ? "198.51.100.7" : "2001:db8::7");
      REQUIRE_OK(
          socket.addAddress(eth, address(family == AF_INET ? "192.0.2.1/24" : "fd02::1/64")));
      auto existing = route(all, eth);
      existing.protocol = 4;
      REQUIRE_OK(socket.addRoute(existing));
      REQUIRE_OK(socket.addRoute(route(all, index, kMark)));

      const auto before = socket.rules(family)->size();
      Rule marked;
      marked.family = family;
      marked.mark = kMark;
      marked.invert = true;
      marked.table = kMark;
      Rule suppress;
      suppress.family = family;
      suppress.suppressPrefixLength = 0;
      for (int twice = 0; twice < 2; ++twice) {
        REQUIRE_OK(socket.addRule(marked));
        REQUIRE_OK(socket.addRule(suppress));
      }
      const auto rules = *socket.rules(family);
      REQUIRE(rules.size() == before + 2);
      REQUIRE(std::ranges::count_if(rules, [&](const Rule& r) { return r.sameAs(marked); }) == 1);
      REQUIRE(std::ranges::count_if(rules, [&](const Rule& r) { return r.sameAs(suppress); }) == 1);
      REQUIRE(std::ranges::count(rules, kRouteProtocol, &Rule::protocol) == 2);

      // The tunnel takes everything but its own datagrams; more specific routes keep their way.
      REQUIRE(socket.lookupRoute(far, 0)->interface == index);
      REQUIRE(socket.lookupRoute(far, kMark)->interface == eth);
      REQUIRE(socket.lookupRoute(ip(family == AF_INET ? "192.0.2.9" : "fd02::9"), 0)->interface ==
              eth);

      for (int twice = 0; twice < 2; ++twice) {
        REQUIRE_OK(socket.removeRule(marked));
        REQUIRE_OK(socket.removeRule(suppress));
      }
      REQUIRE(socket.rules(family)->size() == before);
      REQUIRE(socket.lookupRoute(far, 0)->interface == eth);
    }
  });
}

TEST_CASE("a masked mark sends replies by their own table", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    constexpr std::uint32_t kTable = 0x61646974;
    REQUIRE_OK(socket.addRoute(route("0.0.0.0/0", index, kTable)));
    Rule rule;
    rule.mark = 0x10000;
    rule.markMask = 0x10000;
    rule.table = kTable;
    rule.priority = 100;
    REQUIRE_OK(socket.addRule(rule));
    REQUIRE(std::ranges::count(*socket.rules(AF_INET), rule) == 1);
    REQUIRE(socket.lookupRoute(ip("198.51.100.7"), 0x10005)->table == kTable);
    REQUIRE_FALSE(socket.lookupRoute(ip("198.51.100.7"), 0x5));
  });
}

TEST_CASE("a rule by source address", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t) {
    for (const int family : {AF_INET, AF_INET6}) {
      Rule rule;
      rule.family = family;
      rule.source = prefix(family == AF_INET ? "10.9.0.2/32" : "fd09::2/128");
      rule.table = 1000;
      Rule wider = rule;
      wider.source = prefix(family == AF_INET ? "10.9.0.0/24" : "fd09::/64");
      REQUIRE_OK(socket.addRule(rule));
      REQUIRE_OK(socket.addRule(wider));
      REQUIRE_OK(socket.addRule(rule));
      const auto rules = *socket.rules(family);
      REQUIRE(std::ranges::count_if(rules, [&](const Rule& r) { return r.sameAs(rule); }) == 1);
      REQUIRE(std::ranges::count_if(rules, [&](const Rule& r) { return r.sameAs(wider); }) == 1);
      REQUIRE_OK(socket.removeRule(wider));
      const auto left = *socket.rules(family);
      REQUIRE(std::ranges::count_if(left, [&](const Rule& r) { return r.sameAs(rule); }) == 1);
      REQUIRE(std::ranges::count_if(left, [&](const Rule& r) { return r.sameAs(wider); }) == 0);
    }
  });
}

TEST_CASE("a rule with selectors of its own is not taken for ours", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t) {
    REQUIRE(std::system("ip rule add to 10.0.0.0/8 table main suppress_prefixlength 0") == 0);
    Rule suppress;
    suppress.suppressPrefixLength = 0;
    const auto rules = *socket.rules(AF_INET);
    REQUIRE(std::ranges::count_if(rules, [&](const Rule& r) { return r.sameAs(suppress); }) == 0);
    const auto foreign = std::ranges::find(rules, true, &Rule::foreign);
    REQUIRE(foreign != rules.end());
    // Two that differ in what is not known here may look alike.
    REQUIRE_FALSE(foreign->sameAs(*foreign));
  });
}

TEST_CASE("a big table is read whole", "[root]") {
  Host().run([](RouteSocket& socket, std::uint32_t index) {
    for (unsigned i = 0; i < 2000; ++i) {
      const std::array<std::uint8_t, 4> bytes = {10, static_cast<std::uint8_t>(i >> 8),
                                                 static_cast<std::uint8_t>(i), 0};
      Route wanted = route("0.0.0.0/0", index, 1000);
      wanted.destination = Prefix(IpAddress::fromV4(bytes), 24);
      REQUIRE_OK(socket.addRoute(wanted));
    }
    REQUIRE(ourRoutes(socket).size() == 2000);
  });
}
