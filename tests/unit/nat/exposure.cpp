// `Expose = maps`: what the other end of the tunnel, which counts as hostile, may reach.
#include <netinet/in.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>

#include "nat/addresses.hpp"
#include "nat/firewall.hpp"
#include "nat/topology.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::Client;
using adit::test::Contact;
using adit::test::endpoint;
using adit::test::ip;
using adit::test::kImpatience;
using adit::test::kPatience;
using adit::test::Service;
using adit::test::Topology;

namespace {

Mapping declared(Protocol protocol, std::uint16_t first, std::uint16_t last, const char* v4,
                 const char* v6) {
  Mapping mapping;
  mapping.protocol = protocol;
  mapping.firstPort = 10000;
  mapping.lastPort = static_cast<std::uint16_t>(10000 + (last - first));
  mapping.targetPort = first;
  mapping.targetV4 = ip(v4);
  mapping.targetV6 = ip(v6);
  return mapping;
}

RulesetSpec nasSpec() {
  RulesetSpec spec = Topology::nasSpec();
  spec.tunnelAddresses = {ip("10.9.0.2"), ip("fd09::2")};
  spec.exposure = Exposure{{declared(Protocol::Tcp, 80, 89, "10.9.0.2", "fd09::2"),
                            declared(Protocol::Tcp, 85, 95, "10.9.0.2", "fd09::2"),
                            declared(Protocol::Udp, 53, 53, "10.9.0.2", "fd09::2"),
                            declared(Protocol::Tcp, 443, 443, "192.168.50.20", "fd50::20")},
                           {*Prefix::parse("10.9.0.0/24"), *Prefix::parse("fd09::/64")}};
  return spec;
}

struct Aim {
  const char* what;
  bool v6;
  bool lan;
  Protocol protocol;
  const char* target;
  bool reached;
};

}  // namespace

TEST_CASE("from the tunnel nothing but declared targets is reached", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, nasSpec());
  constexpr auto kTcp = Protocol::Tcp;
  constexpr auto kUdp = Protocol::Udp;
  const Aim aim = GENERATE_COPY(
      Aim{"declared", false, false, kTcp, "10.9.0.2:80", true},
      Aim{"the end of a merged range", true, false, kTcp, "[fd09::2]:95", true},
      Aim{"declared, UDP", false, false, kUdp, "10.9.0.2:53", true},
      Aim{"declared on the LAN", false, true, kTcp, "192.168.50.20:443", true},
      Aim{"declared on the LAN", true, true, kTcp, "[fd50::20]:443", true},
      Aim{"another port", false, false, kTcp, "10.9.0.2:96", false},
      Aim{"another port", true, false, kTcp, "[fd09::2]:79", false},
      Aim{"another protocol", false, false, kUdp, "10.9.0.2:80", false},
      Aim{"the home address", false, false, kTcp, "192.168.50.1:80", false},
      Aim{"another port of the LAN host", false, true, kTcp, "192.168.50.20:80", false},
      Aim{"another protocol of the LAN host", true, true, kUdp, "[fd50::20]:443", false});
  CAPTURE(aim.what, aim.target);
  const auto contact =
      net.contact(net.server, endpoint(aim.v6 ? "[fd09::1]:40000" : "10.9.0.1:40000"), aim.protocol,
                  endpoint(aim.target), aim.lan ? net.lanHost : net.nas, endpoint(aim.target),
                  aim.reached ? kPatience : kImpatience);
  REQUIRE(contact.seenSource.port == (aim.reached ? 40000 : 0));
  REQUIRE(contact.answered == aim.reached);
  // Traffic does not make the table look like somebody else's.
  REQUIRE(Topology::install(net.nas, nasSpec()).kind == FirewallChange::Kind::None);
}

TEST_CASE("what was opened on this side is answered, and that opens nothing else", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, nasSpec());
  const Endpoint far = endpoint("10.9.0.1:7000");
  REQUIRE(net.contact(net.nas, endpoint("10.9.0.2:41000"), Protocol::Tcp, far, net.server, far)
              .answered);
  // A connection of the LAN, as the server would forge its packets.
  const Endpoint service = endpoint("192.168.50.1:9000");
  Service local(net.nas, Protocol::Udp, service);
  const Client client(net.lanHost, Protocol::Udp, endpoint("192.168.50.20:42000"), service);
  REQUIRE(local.serve(kPatience));
  net.server.shell("ip address add 192.168.50.20/32 dev lo");
  net.server.shell("ip route replace 192.168.50.1/32 via 10.9.0.2");
  const Client forger(net.server, Protocol::Udp, endpoint("192.168.50.20:42000"), service);
  REQUIRE_FALSE(local.serve(kImpatience));
}

TEST_CASE("a target that is not declared any more is closed for open connections too", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, nasSpec());
  Service service(net.nas, Protocol::Udp, endpoint("10.9.0.2:53"));
  const Client client(net.server, Protocol::Udp, endpoint("10.9.0.1:43000"),
                      endpoint("10.9.0.2:53"));
  REQUIRE(service.serve(kPatience));
  REQUIRE(client.answered(kPatience));
  auto spec = nasSpec();
  std::erase_if(spec.exposure->declared,
                [](const Mapping& mapping) { return mapping.protocol == Protocol::Udp; });
  REQUIRE(Topology::apply(net.nas, spec).kind == FirewallChange::Kind::Updated);
  client.send();
  REQUIRE_FALSE(service.serve(kImpatience));
}

TEST_CASE("a small path MTU is still learned through the tunnel", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, nasSpec());
  net.server.shell("ip link set pub mtu 1280; echo 1 > /proc/sys/net/ipv4/ip_forward");
  net.client.shell("ip route add 10.9.0.0/24 via 198.51.100.1");
  UniqueFd service;
  net.nas.run([&] {
    service = Service::open(Protocol::Udp, endpoint("10.9.0.2:53"));
    const int always = IP_PMTUDISC_DO;
    REQUIRE(::setsockopt(service.get(), IPPROTO_IP, IP_MTU_DISCOVER, &always, sizeof(always)) == 0);
  });
  const Client client(net.client, Protocol::Udp, endpoint("198.51.100.2:44000"),
                      endpoint("10.9.0.2:53"));
  REQUIRE(adit::test::readable(service.get(), kPatience));
  sockaddr_storage source{};
  socklen_t length = sizeof(source);
  auto* address = static_cast<sockaddr*>(static_cast<void*>(&source));
  std::array<char, 1400> bytes{};
  REQUIRE(::recvfrom(service.get(), bytes.data(), bytes.size(), 0, address, &length) == 1);
  const auto answer = [&] {
    return ::sendto(service.get(), bytes.data(), bytes.size(), 0, address, length);
  };
  REQUIRE(answer() == static_cast<ssize_t>(bytes.size()));
  // The router's complaint arrives while sendto() returns; the next answer is too large by then.
  REQUIRE(answer() == -1);
  REQUIRE(errno == EMSGSIZE);
}
