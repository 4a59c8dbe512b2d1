// Mappings on the real kernel: what a client reaches, and what the target sees.
#include "nat/firewall.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>

#include "nat/addresses.hpp"
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

Mapping mapping(Protocol protocol, std::uint16_t first, std::uint16_t last, std::uint16_t target) {
  Mapping result;
  result.label = "test";
  result.protocol = protocol;
  result.firstPort = first;
  result.lastPort = last;
  result.targetV4 = ip("10.9.0.2");
  result.targetV6 = ip("fd09::2");
  result.targetPort = target;
  return result;
}

RulesetSpec serverSpec(std::vector<Mapping> mappings) {
  RulesetSpec spec = Topology::serverSpec();
  spec.mappings = std::move(mappings);
  return spec;
}

RulesetSpec nothing() {
  RulesetSpec spec;
  spec.interface = "tun";
  return spec;
}

/// The client's side, the server's public side, the service on the NAS.
struct Ends {
  Endpoint local, dialled, service;
};
Ends ends(bool v6, std::uint16_t dialled, std::uint16_t service) {
  Ends result{endpoint(v6 ? "[2001:db8:1::2]:40000" : "198.51.100.2:40000"),
              endpoint(v6 ? "[2001:db8:1::1]:1" : "198.51.100.1:1"),
              endpoint(v6 ? "[fd09::2]:1" : "10.9.0.2:1")};
  result.dialled.port = dialled;
  result.service.port = service;
  return result;
}

bool tableExists(const test::Namespace& host) {
  bool exists = false;
  host.run([&] { exists = std::system("nft list table inet adit_tun >/dev/null 2>&1") == 0; });
  return exists;
}

}  // namespace

TEST_CASE("a mapping carries a client to the NAS", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  struct Ports {
    std::uint16_t first, last, target, dialled, arrives;
  };
  // Single with another port, equal range, shifted range (case 39).
  constexpr std::array kPorts = {Ports{18080, 18080, 80, 18080, 80},
                                 Ports{8000, 8100, 8000, 8042, 8042},
                                 Ports{5000, 5009, 6000, 5003, 6003}};
  const Topology net;
  Topology::apply(net.nas, Topology::nasSpec());
  std::uint16_t localPort = 40000;
  for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
    for (const SourceMode source : {SourceMode::Preserve, SourceMode::Masquerade}) {
      for (const Ports& ports : kPorts) {
        auto wanted = mapping(protocol, ports.first, ports.last, ports.target);
        wanted.source = source;
        Topology::apply(net.server, serverSpec({wanted}));
        for (const bool v6 : {false, true}) {
          CAPTURE(protocolName(protocol), v6, source == SourceMode::Masquerade, ports.dialled);
          Ends at = ends(v6, ports.dialled, ports.arrives);
          at.local.port = localPort++;
          const auto contact =
              net.contact(net.client, at.local, protocol, at.dialled, net.nas, at.service);
          REQUIRE(contact.answered);
          if (source == SourceMode::Preserve) {
            REQUIRE(contact.seenSource == at.local);
          } else {
            REQUIRE(contact.seenSource.address == ip(v6 ? "fd09::1" : "10.9.0.1"));
          }
        }
      }
    }
  }
}

TEST_CASE("case 35: a service on another host of the LAN sees the client and answers", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const auto protocol = GENERATE(Protocol::Tcp, Protocol::Udp);
  const bool v6 = GENERATE(false, true);
  auto wanted = mapping(protocol, 8443, 8443, 443);
  wanted.targetV4 = ip("192.168.50.20");
  wanted.targetV6 = ip("fd50::20");
  Topology::apply(net.server, serverSpec({wanted}));
  Topology::apply(net.nas, Topology::nasSpec());
  Ends at = ends(v6, 8443, 443);
  at.service.address = v6 ? *wanted.targetV6 : *wanted.targetV4;
  const auto contact =
      net.contact(net.client, at.local, protocol, at.dialled, net.lanHost, at.service);
  REQUIRE(contact.answered);
  REQUIRE(contact.seenSource == at.local);
}

TEST_CASE("case 34: without the NAS's marks a preserved address gets no answer", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.server, serverSpec({mapping(Protocol::Udp, 7000, 7000, 7000)}));
  net.nas.shell("echo 2 > /proc/sys/net/ipv4/conf/tun/rp_filter");
  const Ends at = ends(false, 7000, 7000);
  const auto contact = net.contact(net.client, at.local, Protocol::Udp, at.dialled, net.nas,
                                   at.service, kImpatience);
  REQUIRE(contact.seenSource == at.local);
  REQUIRE_FALSE(contact.answered);
}

TEST_CASE("a mapping on one address leaves the others alone", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  auto shifted = mapping(Protocol::Tcp, 7000, 7001, 9000);
  shifted.listenAddress = ip("198.51.100.9");
  auto equal = mapping(Protocol::Tcp, 7100, 7101, 7100);
  equal.listenAddress = ip("198.51.100.9");
  Topology::apply(net.server, serverSpec({shifted, equal}));
  Topology::apply(net.nas, Topology::nasSpec());
  for (const auto& [dialled, arrives] : {std::pair{7001, 9001}, std::pair{7100, 7100}}) {
    Ends at = ends(false, static_cast<std::uint16_t>(dialled), static_cast<std::uint16_t>(arrives));
    const auto other = net.contact(net.client, at.local, Protocol::Tcp, at.dialled, net.nas,
                                   at.service, kImpatience);
    REQUIRE_FALSE(other.answered);
    at.dialled.address = ip("198.51.100.9");
    at.local.port = 40001;
    REQUIRE(
        net.contact(net.client, at.local, Protocol::Tcp, at.dialled, net.nas, at.service).answered);
  }
}

TEST_CASE("only the networks of an Allow list are let in", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const bool v6 = GENERATE(false, true);
  const Ends at = ends(v6, 7000, 7000);
  Topology::apply(net.nas, Topology::nasSpec());
  auto wanted = mapping(Protocol::Udp, 7000, 7000, 7000);
  wanted.allow = {*Prefix::parse("203.0.113.0/24"), *Prefix::parse("2001:db8:2::/64")};
  Topology::apply(net.server, serverSpec({wanted}));
  REQUIRE_FALSE(
      net.contact(net.client, at.local, Protocol::Udp, at.dialled, net.nas, at.service, kImpatience)
          .answered);
  wanted.allow.push_back(*Prefix::parse("198.51.100.0/24"));
  wanted.allow.push_back(*Prefix::parse("198.51.100.2/32"));
  wanted.allow.push_back(*Prefix::parse("2001:db8:1::/64"));
  REQUIRE(Topology::apply(net.server, serverSpec({wanted})).kind == FirewallChange::Kind::Updated);
  REQUIRE(
      net.contact(net.client, at.local, Protocol::Udp, at.dialled, net.nas, at.service).answered);
}

TEST_CASE("case 37: a catch-all leaves the tunnel's own port", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const bool v6 = GENERATE(false, true);
  Topology::apply(net.server, serverSpec({mapping(Protocol::Udp, 1, 65535, 1)}));
  Topology::apply(net.nas, Topology::nasSpec());
  Ends at = ends(v6, 51820, 51820);
  at.service.address = at.dialled.address;
  REQUIRE(net.contact(net.client, at.local, Protocol::Udp, at.dialled, net.server, at.service)
              .answered);
  // The port next to it is mapped.
  const Ends next = ends(v6, 51821, 51821);
  REQUIRE(net.contact(net.client, next.local, Protocol::Udp, next.dialled, net.nas, next.service)
              .answered);
}

TEST_CASE("case 42: the public address from inside", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const auto protocol = GENERATE(Protocol::Tcp, Protocol::Udp);
  const bool v6 = GENERATE(false, true);
  auto wanted = mapping(protocol, 7000, 7000, 7070);
  wanted.hairpin = true;
  Topology::apply(net.server, serverSpec({wanted}));
  Topology::apply(net.nas, Topology::nasSpec());
  const char* gateway = v6 ? "ip route replace 2001:db8:1::/64 via fd09::1"
                           : "ip route replace 198.51.100.0/24 via 10.9.0.1";
  net.nas.shell(gateway);
  Ends at = ends(v6, 7000, 7070);

  SECTION("the server itself") {
    at.local = endpoint(v6 ? "[2001:db8:1::1]:40000" : "198.51.100.1:40000");
    REQUIRE(net.contact(net.server, at.local, protocol, at.dialled, net.nas, at.service).answered);
  }
  SECTION("a peer of the tunnel") {
    at.local = endpoint(v6 ? "[fd09::2]:40000" : "10.9.0.2:40000");
    REQUIRE(net.contact(net.nas, at.local, protocol, at.dialled, net.nas, at.service).answered);
  }
  SECTION("a client outside keeps its address") {
    const auto contact =
        net.contact(net.client, at.local, protocol, at.dialled, net.nas, at.service);
    REQUIRE(contact.answered);
    REQUIRE(contact.seenSource == at.local);
  }
  SECTION("not where the mapping does not say so") {
    wanted.hairpin = false;
    Topology::apply(net.server, serverSpec({wanted}));
    at.local = endpoint(v6 ? "[2001:db8:1::1]:40000" : "198.51.100.1:40000");
    REQUIRE_FALSE(
        net.contact(net.server, at.local, protocol, at.dialled, net.nas, at.service, kImpatience)
            .answered);
  }
}

TEST_CASE("case 41: after a change the very next datagram of a steady sender obeys", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const bool v6 = GENERATE(false, true);
  Topology::apply(net.nas, Topology::nasSpec());
  Topology::apply(net.server, serverSpec({mapping(Protocol::Udp, 9999, 9999, 9999)}));
  Ends at = ends(v6, 7000, 7000);
  Service first(net.nas, Protocol::Udp, at.service);
  at.service.port = 7001;
  Service second(net.nas, Protocol::Udp, at.service);
  // The first datagram comes before there is a mapping.
  const Client sender(net.client, Protocol::Udp, at.local, at.dialled);
  REQUIRE_FALSE(first.serve(kImpatience));

  auto change = Topology::apply(net.server, serverSpec({mapping(Protocol::Udp, 7000, 7000, 7000)}));
  REQUIRE(change.connectionsCut == 1);
  sender.send();
  REQUIRE(first.serve(kPatience));
  REQUIRE(sender.answered(kPatience));

  change = Topology::apply(net.server, serverSpec({mapping(Protocol::Udp, 7000, 7000, 7001)}));
  REQUIRE(change.connectionsCut == 1);
  sender.send();
  REQUIRE(second.serve(kPatience));

  change = Topology::apply(net.server, serverSpec({mapping(Protocol::Udp, 9999, 9999, 9999)}));
  REQUIRE(change.connectionsCut == 1);
  sender.send();
  REQUIRE_FALSE(second.serve(kImpatience));
  REQUIRE_FALSE(first.serve(0));
}

TEST_CASE("case 41: flows that a change is not about stay", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, Topology::nasSpec());
  const auto kept = mapping(Protocol::Udp, 7000, 7000, 7000);
  auto masqueraded = mapping(Protocol::Tcp, 7000, 7000, 7000);
  masqueraded.source = SourceMode::Masquerade;
  Topology::apply(net.server, serverSpec({kept, masqueraded}));
  Ends at = ends(false, 7000, 7000);
  Service service(net.nas, Protocol::Udp, at.service);
  const Client sender(net.client, Protocol::Udp, at.local, at.dialled);
  REQUIRE(service.serve(kPatience));
  Service tcpService(net.nas, Protocol::Tcp, at.service);
  const Client tcpClient(net.client, Protocol::Tcp, at.local, at.dialled);
  REQUIRE(tcpService.serve(kPatience));
  Ends tunnel = ends(false, 51820, 51820);
  tunnel.service.address = tunnel.dialled.address;
  Service tunnelPort(net.server, Protocol::Udp, tunnel.service);
  const Client tunnelPeer(net.client, Protocol::Udp, tunnel.local, tunnel.dialled);
  REQUIRE(tunnelPort.serve(kPatience));

  const auto more = mapping(Protocol::Udp, 7100, 65535, 7100);
  REQUIRE(Topology::apply(net.server, serverSpec({kept, masqueraded, more})).connectionsCut == 0);
  REQUIRE(Topology::apply(net.server, serverSpec({kept, masqueraded})).connectionsCut == 0);
  // A flush and its repair: the entries are as the mappings would make them.
  net.server.shell("nft flush ruleset");
  const auto healed = Topology::apply(net.server, serverSpec({kept, masqueraded}));
  REQUIRE(healed.kind == FirewallChange::Kind::Installed);
  REQUIRE(healed.connectionsCut == 0);
}

TEST_CASE("applying twice changes nothing; a change touches only its elements", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  RulesetSpec spec = serverSpec({mapping(Protocol::Tcp, 80, 80, 8080)});
  spec.reply = ReplyMarks{};
  spec.guard = DefaultRouteGuard{51820};
  REQUIRE(Topology::install(host, nothing()).kind == FirewallChange::Kind::None);
  REQUIRE(Topology::install(host, spec).kind == FirewallChange::Kind::Installed);
  REQUIRE(Topology::install(host, spec).kind == FirewallChange::Kind::None);
  spec.mappings.push_back(mapping(Protocol::Udp, 5000, 5009, 6000));
  auto change = Topology::install(host, spec);
  REQUIRE(change.kind == FirewallChange::Kind::Updated);
  REQUIRE(change.elementsAdded == 12);
  REQUIRE(change.elementsRemoved == 0);
  REQUIRE(Topology::install(host, spec).kind == FirewallChange::Kind::None);
  spec.mappings.front().label = "another name";
  change = Topology::install(host, spec);
  REQUIRE(change.kind == FirewallChange::Kind::Updated);
  REQUIRE(change.elementsAdded == 2);
  REQUIRE(change.elementsRemoved == 2);
  spec.ownPort = 4500;
  REQUIRE(Topology::install(host, spec).kind == FirewallChange::Kind::Replaced);
  REQUIRE(Topology::install(host, nothing()).kind == FirewallChange::Kind::Removed);
  REQUIRE_FALSE(tableExists(host));
}

TEST_CASE("what somebody else does to the table is found and mended", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  const RulesetSpec spec = serverSpec({mapping(Protocol::Tcp, 80, 80, 8080)});
  const auto [damage, repair] = GENERATE(table<std::string, FirewallChange::Kind>({
      {"nft flush ruleset", FirewallChange::Kind::Installed},
      {"nft flush chain inet adit_tun forward", FirewallChange::Kind::Replaced},
      {"nft delete chain inet adit_tun segment_size", FirewallChange::Kind::Replaced},
      {"nft add rule inet adit_tun forward drop", FirewallChange::Kind::Replaced},
      {"nft replace rule inet adit_tun forward handle $(nft -a list chain inet adit_tun forward | "
       "sed -n 's/.*dnat accept # handle //p' | head -n 1) drop",
       FirewallChange::Kind::Replaced},
      {"nft flush set inet adit_tun state", FirewallChange::Kind::Replaced},
      {"nft flush map inet adit_tun target4", FirewallChange::Kind::Updated},
      {"nft 'add element inet adit_tun target4 { 22 . tcp . 0.0.0.0/0 : 10.9.0.2 }'",
       FirewallChange::Kind::Updated},
  }));
  CAPTURE(damage);
  Topology::install(host, spec);
  host.shell(damage);
  host.run([&] {
    auto firewall = KernelFirewall::open();
    REQUIRE_OK(firewall);
    REQUIRE_FALSE(*(*firewall)->isApplied(spec));
  });
  REQUIRE(Topology::install(host, spec).kind == repair);
  host.run([&] {
    auto firewall = KernelFirewall::open();
    REQUIRE_OK(firewall);
    REQUIRE(*(*firewall)->isApplied(spec));
  });
}

TEST_CASE("a refused ruleset leaves the old one", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  const RulesetSpec good = serverSpec({mapping(Protocol::Tcp, 80, 80, 8080)});
  Topology::install(host, good);
  // What validate() cannot know: an interface name that nft refuses stands for it.
  RulesetSpec bad = good;
  bad.publicInterfaces = {"a-name-that-is-much-too-long"};
  host.run([&] {
    auto firewall = KernelFirewall::open();
    REQUIRE_OK(firewall);
    const auto refused = (*firewall)->apply(bad);
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().message.find("nftables: ") == 0);
    REQUIRE(*(*firewall)->isApplied(good));

    auto overlapping = good;
    overlapping.mappings.push_back(mapping(Protocol::Tcp, 79, 81, 79));
    overlapping.mappings.back().location = "x.conf:12:1";
    const auto invalid = (*firewall)->apply(overlapping);
    REQUIRE_FALSE(invalid);
    REQUIRE(invalid.error().message == "mapping tcp/80: it overlaps tcp/79-81 of x.conf:12:1");
    REQUIRE(*(*firewall)->isApplied(good));
  });
}

TEST_CASE("case 43: the table needs neither the NIC nor the tunnel to exist", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  auto spec = serverSpec({mapping(Protocol::Tcp, 80, 80, 8080)});
  spec.mappings.front().label = std::string(300, 'x') + "\xff";
  host.run([&] {
    auto firewall = KernelFirewall::open();
    REQUIRE_OK(firewall);
    REQUIRE_OK((*firewall)->apply(spec));
    REQUIRE((*firewall)->apply(spec)->kind == FirewallChange::Kind::None);
    REQUIRE_OK((*firewall)->remove("tun"));
    REQUIRE((*firewall)->remove("tun")->kind == FirewallChange::Kind::None);
  });
}

TEST_CASE("missing rights name the remedy", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  host.run([] {
    // By the raw call it is this thread alone that loses its privileges, and it ends with the body.
    REQUIRE(::syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
    auto firewall = KernelFirewall::open();
    REQUIRE_OK(firewall);
    const auto refused = (*firewall)->apply(serverSpec({mapping(Protocol::Tcp, 80, 80, 80)}));
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().code == EPERM);
    REQUIRE(refused.error().message ==
            "nftables: permission denied; run as root or with CAP_NET_ADMIN");
  });
}

TEST_CASE("a changed rate is a changed element, and the kernel takes it", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  const auto rated = [](std::optional<std::uint64_t> rate) {
    auto wanted = mapping(Protocol::Tcp, 80, 90, 80);
    wanted.rate = rate;
    auto other = mapping(Protocol::Udp, 53, 53, 53);
    other.listenAddress = ip("2001:db8::1");
    other.rate = 1000;
    return serverSpec({wanted, other});
  };
  using Kind = FirewallChange::Kind;
  REQUIRE(Topology::install(host, rated(8'000'000)).kind == Kind::Installed);
  REQUIRE(Topology::install(host, rated(8'000'000)).kind == Kind::None);
  REQUIRE(Topology::install(host, rated(1'000'000'000'000)).kind == Kind::Updated);
  REQUIRE(Topology::install(host, rated(std::nullopt)).kind == Kind::Updated);
  REQUIRE(Topology::install(host, rated(std::nullopt)).kind == Kind::None);
}

TEST_CASE("case 50: segment sizes are clamped in both directions", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  const bool v6 = GENERATE(false, true);
  net.server.shell("ip link set tun mtu 1420");
  Topology::apply(net.server, serverSpec({mapping(Protocol::Tcp, 7000, 7000, 7000)}));
  Topology::apply(net.nas, Topology::nasSpec());
  const Ends at = ends(v6, 7000, 7000);
  Service service(net.nas, Protocol::Tcp, at.service);
  const Client client(net.client, Protocol::Tcp, at.local, at.dialled);
  REQUIRE(service.serve(kPatience));
  const int expected = 1420 - (v6 ? 60 : 40) - 12;  // less the time stamp option
  REQUIRE(client.segmentSize() == expected);
  REQUIRE(service.segmentSize() == expected);
}
