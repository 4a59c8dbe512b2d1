#include "dataplane/user/inner_packet.hpp"

#include <catch2/catch.hpp>

#include "dataplane/user/ecn.hpp"
#include "packets.hpp"

using namespace adit;
using namespace adit::dataplane::user;

TEST_CASE("an inner packet is what its length field says; padding behind it is not part of it") {
  for (const bool v6 : {false, true}) {
    test::PacketSpec spec;
    spec.v6 = v6;
    spec.tos = 0xb9;
    test::Packet packet = test::makePacket(spec);
    const std::size_t length = packet.size();
    packet.resize(length + 13);
    const auto inner = parseInnerPacket(packet);
    REQUIRE(inner);
    CHECK(inner->v6 == v6);
    CHECK(inner->totalLength == length);
    CHECK(inner->headerLength == spec.ipHeader());
    CHECK(inner->protocol == 6);
    CHECK(inner->tos == 0xb9);
    CHECK_FALSE(inner->fragment);
    CHECK(innerSource(packet.data()).toString() == (v6 ? "fd00::1" : "10.0.0.1"));
    CHECK(innerDestination(packet.data()).toString() == (v6 ? "fd00::2" : "10.0.0.2"));
  }
}

TEST_CASE("truncated and senseless inner packets are refused") {
  for (const bool v6 : {false, true}) {
    test::PacketSpec spec;
    spec.v6 = v6;
    const test::Packet packet = test::makePacket(spec);
    for (std::size_t length = 0; length < packet.size(); ++length) {
      REQUIRE_FALSE(parseInnerPacket(std::span(packet).first(length)));
    }
  }
  test::Packet packet = test::makePacket({});
  packet[0] = 0x44;  // header shorter than a header
  CHECK_FALSE(parseInnerPacket(packet));
  packet[0] = 0x4f;
  test::put16(packet, 2, 40);  // total length within the header
  CHECK_FALSE(parseInnerPacket(packet));
  packet[0] = 0x55;
  CHECK_FALSE(parseInnerPacket(packet));
}

TEST_CASE("fragments are known, the first one and the last one too") {
  test::Packet packet = test::makePacket({});
  test::put16(packet, 6, 0x2000);
  CHECK(parseInnerPacket(packet)->fragment);
  test::put16(packet, 6, 0x0010);
  CHECK(parseInnerPacket(packet)->fragment);
  test::put16(packet, 6, 0x4000);
  CHECK_FALSE(parseInnerPacket(packet)->fragment);
}

TEST_CASE("the length to encrypt is a multiple of 16 but never beyond the MTU") {
  CHECK(paddedLength(0, 1420) == 0);
  CHECK(paddedLength(1, 1420) == 16);
  CHECK(paddedLength(16, 1420) == 16);
  CHECK(paddedLength(1408, 1420) == 1408);
  CHECK(paddedLength(1409, 1420) == 1420);
  CHECK(paddedLength(1420, 1420) == 1420);
  CHECK(paddedLength(1300, 1300) == 1300);
  // The MTU was lowered while the packet was on its way.
  CHECK(paddedLength(1420, 1000) == 1000 + 432);
  CHECK(paddedLength(2000, 1000) == 2000);
  CHECK(paddedLength(1999, 1000) == 2000);
  CHECK(paddedLength(33, 0) == 48);
}

TEST_CASE("the outer ECN field is the inner one, and DSCP stays inside") {
  CHECK(outerTos(0xb8) == 0);
  CHECK(outerTos(0xb8 | 1) == 1);
  CHECK(outerTos(0xb8 | 2) == 2);
  CHECK(outerTos(3) == 3);
}

TEST_CASE("decapsulation follows the table of RFC 6040, figure 4") {
  // Rows: inner Not-ECT, ECT(0), ECT(1), CE. Columns: outer Not-ECT, ECT(0), ECT(1), CE.
  constexpr int kDrop = -1;
  constexpr int kNotEct = 0;
  constexpr int kEct1 = 1;
  constexpr int kEct0 = 2;
  constexpr int kCe = 3;
  constexpr std::uint8_t kFields[] = {kNotEct, kEct0, kEct1, kCe};
  constexpr int kExpected[4][4] = {{kNotEct, kNotEct, kNotEct, kDrop},
                                   {kEct0, kEct0, kEct1, kCe},
                                   {kEct1, kEct1, kEct1, kCe},
                                   {kCe, kCe, kCe, kCe}};
  for (int inner = 0; inner < 4; ++inner) {
    for (int outer = 0; outer < 4; ++outer) {
      const auto tos = decapsulatedTos(static_cast<std::uint8_t>(0xa0 | kFields[inner]),
                                       static_cast<std::uint8_t>(0x40 | kFields[outer]));
      const int expected = kExpected[inner][outer];
      CHECK((tos ? *tos : kDrop) == (expected == kDrop ? kDrop : (0xa0 | expected)));
    }
  }
}

TEST_CASE("a written traffic class leaves everything else as it is") {
  for (const bool v6 : {false, true}) {
    test::PacketSpec spec;
    spec.v6 = v6;
    spec.tos = 0xba;
    spec.flowLabel = v6 ? 0xfffff : 0;
    test::Packet packet = test::makePacket(spec);
    writeTos(packet.data(), 0xbb);
    spec.tos = 0xbb;
    CHECK(packet == test::makePacket(spec));
  }
}
