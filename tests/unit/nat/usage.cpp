// What mappings have carried, counted by the kernel.
#include "nat/usage.hpp"

#include <catch2/catch.hpp>

#include "nat/addresses.hpp"
#include "nat/topology.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::endpoint;
using adit::test::ip;
using adit::test::Topology;

namespace {

RulesetSpec specFor(const char* target) {
  RulesetSpec spec = Topology::serverSpec();
  for (const unsigned port : {7000U, 7100U}) {
    Mapping mapping;
    mapping.protocol = Protocol::Udp;
    mapping.firstPort = static_cast<std::uint16_t>(port);
    mapping.lastPort = static_cast<std::uint16_t>(port + 9);
    mapping.targetPort = mapping.firstPort;
    mapping.targetV4 = ip(target);
    spec.mappings.push_back(mapping);
  }
  return spec;
}

/// IP and UDP headers of an empty datagram.
constexpr std::uint64_t kHeaders = 28;

}  // namespace

TEST_CASE("what a mapping carries is counted, also after its connections have ended", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const Topology net;
  Topology::apply(net.nas, Topology::nasSpec());
  Topology::apply(net.server, specFor("10.9.0.2"));
  std::unique_ptr<KernelFirewall> firewall;
  net.server.run([&] {
    firewall = std::move(*KernelFirewall::open());
    REQUIRE(firewall->apply(specFor("10.9.0.2")));
  });
  for (const char* local : {"198.51.100.2:40000", "198.51.100.2:40001"}) {
    REQUIRE(net.contact(net.client, endpoint(local), Protocol::Udp, endpoint("198.51.100.1:7003"),
                        net.nas, endpoint("10.9.0.2:7003"))
                .answered);
  }
  UsageByMapping before;
  net.server.run([&] { before = *firewall->usage(); });
  REQUIRE(before.size() == 2);
  const MapUsage& used = before.at("udp/7000-7009");
  CHECK(used.connections == 2);
  CHECK(used.open == 2);
  CHECK(used.packetsIn == 2);
  CHECK(used.packetsOut == 2);
  CHECK(used.bytesIn > 2 * kHeaders);
  CHECK(used.bytesOut > 2 * kHeaders);
  CHECK(before.at("udp/7100-7109") == MapUsage{});

  // Another target cuts both connections; the mapping is the same one.
  net.server.run([&] {
    const auto change = firewall->apply(specFor("10.9.0.3"));
    REQUIRE(change);
    REQUIRE(change->connectionsCut == 2);
    MapUsage ended = used;
    ended.open = 0;
    CHECK(firewall->usage()->at("udp/7000-7009") == ended);
  });
}
