#include "dataplane/user/icmp_reply.hpp"

#include <catch2/catch.hpp>

#include "packets.hpp"

using namespace adit;
using namespace adit::dataplane::user;
using namespace std::chrono_literals;
using test::Packet;
using test::PacketSpec;

namespace {

std::span<const std::uint8_t> reply(const Packet& packet, IcmpBuffer& buffer) {
  return buildUnreachable(packet, buffer);
}

}  // namespace

TEST_CASE("an unroutable IPv4 packet is answered with host unreachable", "[icmp]") {
  const Packet packet = test::makePacket({.payload = 1000});
  IcmpBuffer buffer;
  const auto answer = reply(packet, buffer);
  REQUIRE(answer.size() == 576);
  const auto inner = parseInnerPacket(answer);
  REQUIRE(inner);
  CHECK(inner->totalLength == answer.size());
  CHECK(innerSource(answer.data()).toString() == "10.0.0.2");
  CHECK(innerDestination(answer.data()).toString() == "10.0.0.1");
  CHECK(test::naiveSum(answer.first(20)) == 0xffff);
  CHECK(test::naiveSum(answer.subspan(20)) == 0xffff);
  CHECK(answer[20] == 3);
  CHECK(answer[21] == 1);
  CHECK(std::equal(answer.begin() + 28, answer.end(), packet.begin()));
}

TEST_CASE("an unroutable IPv6 packet is answered with address unreachable", "[icmp]") {
  PacketSpec spec;
  spec.v6 = true;
  spec.payload = 1400;
  const Packet packet = test::makePacket(spec);
  IcmpBuffer buffer;
  const auto answer = reply(packet, buffer);
  REQUIRE(answer.size() == 1280);
  CHECK(innerSource(answer.data()).toString() == "fd00::2");
  CHECK(innerDestination(answer.data()).toString() == "fd00::1");
  CHECK(answer[6] == 58);
  CHECK(test::transportSum(answer) == 0xffff);
  CHECK(answer[40] == 1);
  CHECK(answer[41] == 3);
  CHECK(std::equal(answer.begin() + 48, answer.end(), packet.begin()));
}

TEST_CASE("a short packet is quoted whole", "[icmp]") {
  const Packet packet = test::makePacket({.payload = 3});
  IcmpBuffer buffer;
  CHECK(reply(packet, buffer).size() == 28 + packet.size());
}

TEST_CASE("errors are not sent about errors, fragments, or groups", "[icmp]") {
  IcmpBuffer buffer;
  const auto answered = [&](const Packet& packet) { return !reply(packet, buffer).empty(); };
  PacketSpec spec;
  CHECK(answered(test::makePacket(spec)));
  spec.destination = "224.0.0.1";
  CHECK_FALSE(answered(test::makePacket(spec)));
  spec.destination = "255.255.255.255";
  CHECK_FALSE(answered(test::makePacket(spec)));
  spec = {};
  spec.source = "0.0.0.0";
  CHECK_FALSE(answered(test::makePacket(spec)));
  spec = {};
  spec.v6 = true;
  spec.destination = "ff02::1";
  CHECK_FALSE(answered(test::makePacket(spec)));

  Packet icmp = test::makePacket({});
  icmp[9] = 1;
  icmp[20] = 8;  // echo request
  CHECK(answered(icmp));
  for (const int type : {3, 4, 5, 11, 12}) {
    icmp[20] = static_cast<std::uint8_t>(type);
    CHECK_FALSE(answered(icmp));
  }
  Packet icmp6 = test::makePacket({.v6 = true});
  icmp6[6] = 58;
  icmp6[40] = 128;
  CHECK(answered(icmp6));
  icmp6[40] = 1;
  CHECK_FALSE(answered(icmp6));

  Packet fragment = test::makePacket({});
  test::put16(fragment, 6, 0x2000);
  CHECK(answered(fragment));
  test::put16(fragment, 6, 0x0001);
  CHECK_FALSE(answered(fragment));
  CHECK_FALSE(answered(Packet(10)));
}

TEST_CASE("errors are limited to a burst and then a rate", "[icmp]") {
  IcmpLimiter limiter;
  BootTime now = 100s;
  int sent = 0;
  for (int i = 0; i < 1000; ++i)
    sent += limiter.take(now) ? 1 : 0;
  CHECK(sent == IcmpLimiter::kBurst);
  for (int i = 0; i < 1000; ++i) {
    now += 1ms;
    sent += limiter.take(now) ? 1 : 0;
  }
  CHECK(sent == IcmpLimiter::kBurst + 50);
}
