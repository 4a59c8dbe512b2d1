// The server's decisions: what it grants, to whom, and every guard.
#include "pcp/server.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace adit::pcp {
namespace {

TEST_CASE_METHOD(ServerFixture, "a MAP request becomes a lease") {
  clock.time += 5s;
  const auto map = mapOf(80, 8080);
  const Response response = ask(map);
  CHECK(response.result == ResultCode::Success);
  CHECK(response.lifetime == 3600);
  CHECK(response.epoch == 5);
  CHECK(response.map->externalPort == 8080);
  CHECK(response.map->externalAddress == address("203.0.113.9"));
  CHECK(response.map->nonce == map.nonce);
  REQUIRE(server.leases().size() == 1);
  const Lease& lease = server.leases().front();
  CHECK(lease.peer == "nas-key");
  CHECK(lease.target == address("10.10.0.2"));
  CHECK(lease.firstInternal == 80);
  CHECK(lease.external() == PortRange{kTcp, 8080, 8080});
  CHECK(lease.expires == clock.time + 3600s);
}

TEST_CASE_METHOD(ServerFixture, "lifetimes are clamped") {
  CHECK(ask(mapOf(80, 8080), 1).lifetime == 120);
  CHECK(ask(mapOf(81, 8081), 0xffffffff).lifetime == 86400);
}

TEST_CASE_METHOD(ServerFixture, "a lease that is not renewed disappears") {
  ask(mapOf(80, 8080), 600);
  ask(mapOf(81, 8081), 1200);
  CHECK(server.nextExpiry() == clock.time + 600s);
  const auto revision = server.revision();
  clock.time += 599s;
  CHECK_FALSE(server.expire());
  clock.time += 1s;
  CHECK(server.expire());
  REQUIRE(server.leases().size() == 1);
  CHECK(server.leases().front().firstExternal == 8081);
  CHECK(server.revision() == revision + 1);
  CHECK(server.nextExpiry() == clock.time + 600s);
}

TEST_CASE_METHOD(ServerFixture, "a renewal keeps the port and changes no rule") {
  ask(mapOf(80, 8080));
  const auto revision = server.revision();
  clock.time += 1800s;
  const Response again = ask(mapOf(80, 0));
  CHECK(again.map->externalPort == 8080);
  CHECK(server.leases().front().expires == clock.time + 3600s);
  CHECK(server.revision() == revision);
}

TEST_CASE_METHOD(ServerFixture, "only who knows the nonce renews and deletes") {
  ask(mapOf(80, 8080));
  clock.time += 600s;
  auto stranger = mapOf(80, 8080);
  stranger.nonce[5] = 99;
  for (const std::uint32_t lifetime : {3600U, 0U}) {
    const Response refused = ask(stranger, lifetime);
    CHECK(refused.result == ResultCode::NotAuthorized);
    CHECK(refused.lifetime == 3000);
  }
  // All mappings: those of other nonces stay.
  auto all = mapOf(0, 0, 0);
  all.nonce = stranger.nonce;
  CHECK(ask(all, 0).result == ResultCode::Success);
  REQUIRE(server.leases().size() == 1);
  CHECK(server.leases().front().expires == clock.time + 3000s);
  CHECK(ask(mapOf(80, 8080), 0).lifetime == 0);
  CHECK(server.leases().empty());
}

TEST_CASE_METHOD(ServerFixture, "deleting") {
  CHECK(ask(mapOf(80, 0), 0).result == ResultCode::Success);
  ask(mapOf(80, 8080));
  ask(mapOf(81, 8081));
  ask(mapOf(51413, 51413, kUdp));
  CHECK(ask(mapOf(0, 0, kTcp), 0).result == ResultCode::Success);
  REQUIRE(server.leases().size() == 1);
  CHECK(server.leases().front().protocol == kUdp);
  CHECK(ask(mapOf(0, 0, 0), 0).result == ResultCode::Success);
  CHECK(server.leases().empty());
}

TEST_CASE_METHOD(ServerFixture, "nobody but a peer is heard, and its header must say who it is") {
  const Request request{
      .opcode = Opcode::Map, .lifetime = 60, .client = nas.address, .map = mapOf(80, 8080)};
  CHECK_FALSE(server.receive(build(request), {address("203.0.113.50"), 40000, 0}));
  CHECK(server.counts().ignored == 1);
  const Response mismatch = exchange(build(request), other);
  CHECK(mismatch.result == ResultCode::AddressMismatch);
  CHECK(mismatch.lifetime == 1800);
  CHECK(server.leases().empty());
}

TEST_CASE_METHOD(ServerFixture, "AllowMaps bounds protocol and ports") {
  auto exactly = [](MapMessage map) {
    map.preferFailure = true;
    return map;
  };
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{22, 443, 7999, 9001}) {
    CAPTURE(port);
    const Response refused = ask(exactly(mapOf(port, port)));
    CHECK(refused.result == ResultCode::NotAuthorized);
    CHECK(refused.lifetime == 1800);
  }
  CHECK(ask(exactly(mapOf(8000, 8000, kUdp))).result == ResultCode::NotAuthorized);
  CHECK(ask(exactly(mapOf(8000, 8000))).result == ResultCode::Success);
  CHECK(ask(exactly(mapOf(9000, 9000))).result == ResultCode::Success);
  host.peers[1].policy.grants.clear();
  CHECK(ask(mapOf(8100, 8100), other).result == ResultCode::NotAuthorized);
  const auto refusals = server.refusals();
  REQUIRE(refusals.size() == 6);
  CHECK(refusals.front().reason ==
        "tcp/22 is not within AllowMaps of nas (tcp/8000-9000, udp/51413, udp/6000-6009)");
  CHECK(refusals.back().peerName == "other");
  clock.time += 2h;
  CHECK(server.refusals().empty());
}

TEST_CASE_METHOD(ServerFixture, "without PREFER_FAILURE another port is offered") {
  CHECK(ask(mapOf(80, 443)).map->externalPort == 8000);
  CHECK(ask(mapOf(81, 443)).map->externalPort == 8001);
  CHECK(ask(mapOf(8500, 0)).map->externalPort == 8500);
  // Nothing is granted for the protocol at all.
  host.peers[0].policy.grants = {{kTcp, 8000, 9000}};
  CHECK(ask(mapOf(53, 53, kUdp)).result == ResultCode::NotAuthorized);
  // All is taken.
  host.peers[0].policy.grants = {{kTcp, 8000, 8001}};
  CHECK(ask(mapOf(82, 8000)).result == ResultCode::CannotProvideExternal);
}

TEST_CASE_METHOD(ServerFixture, "ports that others have") {
  ask(mapOf(80, 8080), other);
  auto map = mapOf(80, 8080);
  map.preferFailure = true;
  CHECK(ask(map).result == ResultCode::CannotProvideExternal);
  map.preferFailure = false;
  CHECK(ask(map).map->externalPort != 8080);
  host.holders[{kTcp, 8200}] = "sshd listens there";
  map = mapOf(82, 8200);
  map.preferFailure = true;
  CHECK(ask(map).result == ResultCode::CannotProvideExternal);
  CHECK(ask(map).lifetime == 30);
  CHECK(server.refusals().back().reason == "sshd listens there");
  CHECK(server.refusals().back().count == 2);
}

TEST_CASE_METHOD(ServerFixture, "an external address that is not the server's") {
  auto map = mapOf(80, 8080);
  map.externalAddress = address("198.51.100.1");
  CHECK(ask(map).map->externalAddress == address("203.0.113.9"));
  map = mapOf(81, 8081);
  map.externalAddress = address("198.51.100.1");
  map.preferFailure = true;
  CHECK(ask(map).result == ResultCode::CannotProvideExternal);
  map.externalAddress = address("203.0.113.9");
  CHECK(ask(map).result == ResultCode::Success);
  host.external.erase(AF_INET);
  CHECK(ask(mapOf(82, 8082)).result == ResultCode::NetworkFailure);
}

TEST_CASE_METHOD(ServerFixture, "third parties") {
  auto map = mapOf(443, 8443);
  map.thirdParty = address("192.168.50.20");
  const Response granted = ask(map);
  CHECK(granted.result == ResultCode::Success);
  CHECK(granted.map->thirdParty == address("192.168.50.20"));
  CHECK(server.leases().front().target == address("192.168.50.20"));
  SECTION("only where AllowMaps says so") {
    map.thirdParty = address("192.168.60.5");
    CHECK(ask(map, other).result == ResultCode::NotAuthorized);
    CHECK(ask(map, other, 0).result == ResultCode::NotAuthorized);
  }
  SECTION("only addresses of the peer's own") {
    for (const char* target : {"10.10.0.3", "192.168.60.5", "203.0.113.9", "127.0.0.1", "0.0.0.0",
                               "10.10.0.1", "8.8.8.8"}) {
      CAPTURE(target);
      map = mapOf(444, 8444);
      map.thirdParty = address(target);
      CHECK(ask(map).result == ResultCode::NotAuthorized);
    }
    // Not even where the peer's prefixes are wide: a longer one of another peer wins.
    host.peers[0].allowed.push_back(network("0.0.0.0/0"));
    for (const char* target : {"10.10.0.3", "127.0.0.1", "10.10.0.1"}) {
      map.thirdParty = address(target);
      CHECK(ask(map).result == ResultCode::NotAuthorized);
    }
  }
  SECTION("another peer does not delete it") {
    map.thirdParty = address("192.168.50.20");
    host.peers[1].policy.thirdParty = true;
    CHECK(ask(map, other, 0).result == ResultCode::NotAuthorized);
    CHECK(server.leases().size() == 1);
  }
}

TEST_CASE_METHOD(ServerFixture, "a quota for each peer, and one for all") {
  ServerLimits small;
  small.leasesPerPeer = 2;
  small.leases = 3;
  restart(small);
  CHECK(ask(mapOf(80, 8080)).result == ResultCode::Success);
  CHECK(ask(mapOf(81, 8081)).result == ResultCode::Success);
  const Response over = ask(mapOf(82, 8082));
  CHECK(over.result == ResultCode::UserExceededQuota);
  CHECK(over.lifetime == 30);
  // What it has it may renew.
  CHECK(ask(mapOf(81, 8081)).result == ResultCode::Success);
  CHECK(ask(mapOf(80, 8180), other).result == ResultCode::Success);
  CHECK(ask(mapOf(81, 8181), other).result == ResultCode::NoResources);
}

TEST_CASE_METHOD(ServerFixture, "ports that lead to other numbers are dear, and bounded") {
  limits.shiftedPerPeer = 5;
  restart(limits);
  auto map = mapOf(100, 8000);
  map.portSet = PortSet{4, 100, false};
  CHECK(ask(map).map->portSet->size == 4);
  map = mapOf(200, 8100);
  map.portSet = PortSet{4, 200, false};
  CHECK_FALSE(ask(map).map->portSet);
  CHECK(ask(mapOf(300, 8200)).result == ResultCode::UserExceededQuota);
  // Equal numbers cost nothing, and others have their own.
  map = mapOf(8300, 8300);
  map.portSet = PortSet{100, 8300, false};
  CHECK(ask(map).map->portSet->size == 100);
  CHECK(ask(mapOf(300, 8200), other).result == ResultCode::Success);
  // What is given back counts no more.
  CHECK(ask(mapOf(100, 0), 0).result == ResultCode::Success);
  CHECK(ask(mapOf(300, 8200)).result == ResultCode::Success);
}

TEST_CASE_METHOD(ServerFixture, "a peer that asks too fast is not heard, and others are") {
  const Request request{
      .opcode = Opcode::Map, .lifetime = 600, .client = nas.address, .map = mapOf(80, 8080)};
  const Bytes bytes = build(request);
  for (unsigned i = 0; i < limits.burst; ++i) {
    REQUIRE(server.receive(bytes, nas));
  }
  CHECK_FALSE(server.receive(bytes, nas));
  CHECK(ask(mapOf(80, 8090), other).result == ResultCode::Success);
  clock.time += 1s;
  for (unsigned i = 0; i < limits.rate; ++i) {
    CHECK(server.receive(bytes, nas));
  }
  CHECK_FALSE(server.receive(bytes, nas));
}

TEST_CASE_METHOD(ServerFixture, "wildcards and other protocols") {
  CHECK(ask(mapOf(0, 0, 0)).result == ResultCode::UnsupportedProtocol);
  CHECK(ask(mapOf(0, 8080, kTcp)).result == ResultCode::UnsupportedProtocol);
  CHECK(ask(mapOf(80, 8080, 132)).result == ResultCode::UnsupportedProtocol);
}

TEST_CASE_METHOD(ServerFixture, "versions are negotiated") {
  Bytes bytes = build(
      Request{.opcode = Opcode::Map, .lifetime = 6, .client = nas.address, .map = mapOf(80, 80)});
  for (const std::uint8_t version : Bytes{1, 3, 200}) {
    bytes[0] = version;
    const Response response = exchange(bytes);
    CHECK(response.version == 2);
    CHECK(response.result == ResultCode::UnsupportedVersion);
  }
}

TEST_CASE_METHOD(ServerFixture, "PEER is unsupported, ANNOUNCE tells the epoch") {
  Bytes bytes(24 + 56);
  bytes[0] = 2;
  bytes[1] = 2;
  CHECK(exchange(bytes).result == ResultCode::UnsupportedOpcode);
  clock.time += 77s;
  const Response announced =
      exchange(build(Request{.opcode = Opcode::Announce, .lifetime = 0, .client = nas.address}));
  CHECK(announced.opcode == Opcode::Announce);
  CHECK(announced.result == ResultCode::Success);
  CHECK(announced.epoch == 77);
}

TEST_CASE_METHOD(ServerFixture, "port sets") {
  auto map = mapOf(6000, 6000, kUdp);
  map.portSet = PortSet{10, 6000, false};
  const Response whole = ask(map);
  CHECK(whole.result == ResultCode::Success);
  CHECK(whole.map->portSet == PortSet{10, 6000, false});
  CHECK(whole.map->externalPort == 6000);
  CHECK(server.leases().front().size == 10);
  // Renewed and deleted as one, whatever port of it is named.
  auto inside = mapOf(6003, 0, kUdp);
  inside.portSet = PortSet{2, 6003, false};
  const Response refreshed = ask(inside);
  CHECK(refreshed.map->portSet == PortSet{10, 6000, false});
  CHECK(refreshed.map->externalPort == 6000);
  CHECK(ask(mapOf(6003, 0, kUdp)).map->externalPort == 6003);
  CHECK(ask(inside, 0).result == ResultCode::Success);
  CHECK(server.leases().empty());
  SECTION("fewer where there are not as many") {
    host.holders[{kUdp, 6004}] = "taken";
    const Response part = ask(map);
    CHECK(part.map->portSet->size == 5);
    CHECK(part.map->externalPort == 6005);
  }
  SECTION("one alone is no set") {
    for (const int port : {6001, 6003, 6005, 6007, 6009}) {
      host.holders[{kUdp, port}] = "taken";
    }
    host.peers[0].policy.grants.erase(host.peers[0].policy.grants.begin() + 1);
    const Response one = ask(map);
    CHECK(one.result == ResultCode::Success);
    CHECK_FALSE(one.map->portSet);
    CHECK(server.leases().front().size == 1);
  }
  SECTION("parity") {
    map.portSet->parity = true;
    map.portSet->size = 4;
    host.holders[{kUdp, 6000}] = "taken";
    CHECK(ask(map).map->externalPort == 6002);
  }
  SECTION("one that spans several mappings renews them all, and nobody else's") {
    ask(mapOf(6000, 6000, kUdp));
    ask(mapOf(6002, 6002, kUdp));
    auto stranger = mapOf(6004, 6004, kUdp);
    stranger.nonce[0] ^= 1;
    ask(stranger);
    ask(mapOf(6007, 6007, kUdp));
    clock.time += 3500s;
    map.portSet->size = 6;
    CHECK(ask(map).result == ResultCode::Success);
    clock.time += 200s;
    server.expire();
    std::vector<int> left;
    for (const Lease& lease : server.leases()) {
      left.push_back(lease.firstInternal);
    }
    CHECK(left == std::vector{6000, 6002});
  }
  SECTION("past the last port") {
    map = mapOf(65530, 8000);
    map.portSet = PortSet{10, 65530, false};
    CHECK(ask(map).result == ResultCode::MalformedOption);
    map = mapOf(1, 65530);
    map.portSet = PortSet{10, 1, false};
    CHECK(ask(map).map->externalPort == 8000);
  }
}

TEST_CASE_METHOD(ServerFixture, "both families of a peer share a port; other peers do not") {
  const Endpoint nas6{address("fd10::2"), 40000, 0};
  CHECK(ask(mapOf(80, 8080)).result == ResultCode::Success);
  auto map = mapOf(80, 8080);
  map.preferFailure = true;
  const Response second = ask(map, nas6);
  CHECK(second.result == ResultCode::Success);
  CHECK(second.map->externalAddress == address("2001:db8:9::9"));
  auto shifted = mapOf(81, 8080);
  shifted.preferFailure = true;
  CHECK(ask(shifted, nas6).result == ResultCode::CannotProvideExternal);
}

TEST_CASE_METHOD(ServerFixture, "filters become the mapping's client networks") {
  auto map = mapOf(80, 8080);
  map.filters = {{network("198.51.100.0/24"), 0}, {network("192.0.2.1/32"), 0}};
  CHECK(ask(map).map->filters == map.filters);
  CHECK(server.leases().front().allow ==
        std::vector{network("198.51.100.0/24"), network("192.0.2.1/32")});
  const auto revision = server.revision();
  map.filters = {{}, {network("192.0.2.0/24"), 0}};
  ask(map);
  CHECK(server.leases().front().allow == std::vector{network("192.0.2.0/24")});
  CHECK(server.revision() == revision + 1);
  map.filters = {{network("192.0.2.0/24"), 443}};
  CHECK(ask(map).result == ResultCode::UnsupportedOption);
}

TEST_CASE_METHOD(ServerFixture, "what a [Map] says beyond PCP") {
  auto map = mapOf(80, 8080);
  map.extras = Extras{.masquerade = true, .hairpin = true, .rate = 1000, .reason = "echo me not"};
  const Response response = ask(map);
  REQUIRE(response.map->extras);
  CHECK(response.map->extras->reason.empty());
  CHECK(server.leases().front().masquerade);
  CHECK(server.leases().front().hairpin);
  CHECK(server.leases().front().rate == 1000);
  map = mapOf(22, 22);
  map.preferFailure = true;
  map.extras = Extras{};
  CHECK(ask(map).map->extras->reason.starts_with("tcp/22 is not within AllowMaps"));
}

TEST_CASE_METHOD(ServerFixture, "a mapping of the server's file answers for itself") {
  host.peers[0].policy.grants.clear();
  host.fixed[{kTcp, 80}] = {.firstExternal = 443, .firstInternal = 80, .size = 1, .allow = {}};
  auto map = mapOf(80, 443);
  map.preferFailure = true;
  map.extras = Extras{};
  const Response response = ask(map);
  CHECK(response.result == ResultCode::Success);
  CHECK(response.map->externalPort == 443);
  CHECK_FALSE(response.map->extras);
  CHECK(server.leases().empty());
  CHECK(ask(map, 0).result == ResultCode::NotAuthorized);
  map.externalPort = 444;
  CHECK(ask(map).result == ResultCode::NotAuthorized);
  map.externalPort = 443;
  map.filters = {{network("192.0.2.0/24"), 0}};
  CHECK(ask(map).result == ResultCode::NotAuthorized);
  host.fixed[{kTcp, 80}].allow = {network("192.0.2.0/24")};
  CHECK(ask(map).result == ResultCode::Success);
}

TEST_CASE_METHOD(ServerFixture, "leases that are no longer allowed go, and their holders hear it") {
  ask(mapOf(80, 8080));
  ask(mapOf(81, 8081));
  auto third = mapOf(443, 8443);
  third.thirdParty = address("192.168.50.20");
  ask(third);
  CHECK(server.revise().empty());
  SECTION("a port that the file has now") {
    host.reserved.insert({kTcp, 8081});
    const auto news = server.revise();
    REQUIRE(news.size() == 1);
    CHECK(news[0].destination == nas);
    const auto update = parseResponse(news[0].bytes);
    CHECK(update->lifetime == 0);
    CHECK(update->map->internalPort == 81);
    CHECK(update->map->nonce == third.nonce);
    CHECK(server.leases().size() == 2);
  }
  SECTION("not for a listener that came later, such as a resolver's socket") {
    host.holders[{kTcp, 8081}] = "a socket";
    CHECK(server.revise().empty());
  }
  SECTION("AllowMaps was narrowed") {
    host.peers[0].policy.grants = {{kTcp, 8080, 8080}};
    CHECK(server.revise().size() == 2);
  }
  SECTION("third-party was withdrawn") {
    host.peers[0].policy.thirdParty = false;
    CHECK(server.revise().size() == 1);
  }
  SECTION("the address is another peer's") {
    host.peers[1].allowed.push_back(network("192.168.50.20/32"));
    CHECK(server.revise().size() == 1);
  }
  SECTION("the peer is gone") {
    host.peers.erase(host.peers.begin());
    CHECK(server.revise().size() == 3);
    CHECK(server.leases().empty());
  }
}

TEST_CASE_METHOD(ServerFixture, "leases survive a restart, those that are still allowed") {
  ask(mapOf(80, 8080), 600);
  ask(mapOf(81, 8081), 6000);
  ask(mapOf(82, 8082), 6000);
  auto saved = server.leases();
  saved[2].expires += 1000h;
  clock.time += 700s;
  host.reserved.insert({kTcp, 8081});
  restart(limits);
  server.restore(saved);
  REQUIRE(server.leases().size() == 1);
  CHECK(server.leases().front().firstExternal == 8082);
  CHECK(server.leases().front().expires == clock.time + 86400s);
  CHECK(parseResponse(server.announcement())->epoch == 0);
}

TEST_CASE_METHOD(ServerFixture, "what could not be put into force is undone") {
  ask(mapOf(80, 8080));
  const LeaseTable before = server.table();
  const Bytes request = build(
      Request{.opcode = Opcode::Map, .lifetime = 6, .client = nas.address, .map = mapOf(81, 8081)});
  exchange(request);
  server.rollBack(before);
  CHECK(server.leases().size() == 1);
  CHECK(parseResponse(server.noResources(request))->result == ResultCode::NoResources);
}

TEST_CASE_METHOD(ServerFixture, "strangers and what is malformed leave nothing behind") {
  for (int i = 0; i < 1000; ++i) {
    const auto host4 = IpAddress::fromV4(std::array<std::uint8_t, 4>{
        192, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)});
    CHECK_FALSE(server.receive(Bytes{2, 1, 0, 0}, {host4, 1, 0}));
  }
  CHECK(host.questions == 0);
  CHECK(server.refusals().empty());
  CHECK(server.counts().ignored == 1000);
}

}  // namespace
}  // namespace adit::pcp
