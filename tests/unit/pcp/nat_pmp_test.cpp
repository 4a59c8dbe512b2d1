// NAT-PMP by the figures of RFC 6886, section 3.
#include "pcp/nat_pmp.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace adit::pcp {
namespace {

/// Section 3.3: UDP, internal 51413, wanted 51413, one hour.
Bytes mapUdp() {
  return {0, 1, 0, 0, 0xc8, 0xd5, 0xc8, 0xd5, 0, 0, 0x0e, 0x10};
}

TEST_CASE_METHOD(ServerFixture, "the external address") {
  clock.time += 258s;
  CHECK(*server.receive(Bytes{0, 0}, nas) == Bytes{0, 128, 0, 0, 0, 0, 1, 2, 203, 0, 113, 9});
  host.external.erase(AF_INET);
  CHECK(*server.receive(Bytes{0, 0}, nas) == Bytes{0, 128, 0, 3, 0, 0, 1, 2, 0, 0, 0, 0});
}

TEST_CASE_METHOD(ServerFixture, "a mapping is made, renewed and deleted") {
  clock.time += 1s;
  CHECK(*server.receive(mapUdp(), nas) ==
        Bytes{0, 129, 0, 0, 0, 0, 0, 1, 0xc8, 0xd5, 0xc8, 0xd5, 0, 0, 0x0e, 0x10});
  REQUIRE(server.leases().size() == 1);
  CHECK(server.leases().front().natPmp);
  CHECK(server.leases().front().external() == PortRange{kUdp, 51413, 51413});
  clock.time += 1800s;
  REQUIRE(server.receive(mapUdp(), nas));
  CHECK(server.leases().front().expires == clock.time + 3600s);
  Bytes gone = mapUdp();
  gone[6] = gone[7] = gone[10] = gone[11] = 0;
  CHECK((*server.receive(gone, nas))[3] == 0);
  CHECK(server.leases().empty());
  // Once more is no error.
  const Bytes again = *server.receive(gone, nas);
  CHECK(again == Bytes{0, 129, 0, 0, 0, 0, 7, 9, 0xc8, 0xd5, 0, 0, 0, 0, 0, 0});
}

TEST_CASE_METHOD(ServerFixture, "all mappings of a protocol are deleted, and only those") {
  server.receive(mapUdp(), nas);
  const Bytes tcp{0, 2, 0, 0, 0, 80, 0x1f, 0x90, 0, 0, 0x0e, 0x10};
  CHECK((*server.receive(tcp, nas))[1] == 130);
  CHECK(server.leases().size() == 2);
  server.receive(Bytes{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nas);
  REQUIRE(server.leases().size() == 1);
  CHECK(server.leases().front().protocol == kTcp);
}

TEST_CASE_METHOD(ServerFixture, "refusals") {
  Bytes bytes = mapUdp();
  CHECK(*server.receive(bytes, other) ==
        Bytes{0, 129, 0, 2, 0, 0, 0, 0, 0xc8, 0xd5, 0, 0, 0, 0, 0, 0});
  CHECK(*server.receive(Bytes{0, 5}, nas) == Bytes{0, 133, 0, 5, 0, 0, 0, 0});
  host.holders[{kUdp, 51413}] = "taken";
  host.peers[0].policy.grants = {{kUdp, 51413, 51413}};
  CHECK((*server.receive(bytes, nas))[3] == 4);
  CHECK(server.leases().empty());
}

TEST_CASE_METHOD(ServerFixture, "what is no request is ignored") {
  for (std::size_t length = 2; length < 12; ++length) {
    Bytes bytes = mapUdp();
    bytes.resize(length);
    CHECK_FALSE(server.receive(bytes, nas));
  }
  CHECK_FALSE(server.receive(Bytes{0}, nas));
  CHECK_FALSE(server.receive(Bytes{0, 129, 0, 0}, nas));
  CHECK_FALSE(server.receive(mapUdp(), {address("fd10::2"), 1, 0}));
}

TEST_CASE_METHOD(ServerFixture, "the two protocols and one mapping") {
  server.receive(mapUdp(), nas);
  // The same program may go over to PCP,
  CHECK(ask(mapOf(51413, 51413, kUdp)).result == ResultCode::Success);
  CHECK(server.leases().size() == 1);
  // and then nobody without the nonce changes it.
  CHECK((*server.receive(mapUdp(), nas))[3] == 2);
  server.receive(Bytes{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nas);
  CHECK(server.leases().size() == 1);
}

}  // namespace
}  // namespace adit::pcp
