#include "dataplane/user/segmenter.hpp"

#include <catch2/catch.hpp>

#include "packets.hpp"

using namespace adit;
using namespace adit::dataplane::user;
using test::Packet;
using test::PacketSpec;

namespace {

VirtioNetHeader headerFor(const PacketSpec& spec, std::size_t gsoSize) {
  VirtioNetHeader header{};
  header.flags = kVirtioNeedsChecksum;
  header.gsoType = !spec.tcp ? kGsoUdp : spec.v6 ? kGsoTcpV6 : kGsoTcpV4;
  header.headerLength = 0;  // unreliable, so it must not matter
  header.gsoSize = static_cast<std::uint16_t>(gsoSize);
  header.checksumStart = static_cast<std::uint16_t>(spec.ipHeader());
  header.checksumOffset = spec.tcp ? 16 : 6;
  return header;
}

// What the segments must be: built one by one from the specification of the whole.
std::vector<Packet> naiveSegments(const PacketSpec& whole, std::size_t gsoSize) {
  const Packet super = test::makePacket(whole);
  std::vector<Packet> segments;
  for (std::size_t at = 0; at < whole.payload || at == 0; at += gsoSize) {
    const bool first = at == 0;
    const bool last = at + gsoSize >= whole.payload;
    PacketSpec spec = whole;
    spec.payload = std::min(gsoSize, whole.payload - at);
    spec.sequence = whole.sequence + static_cast<std::uint32_t>(at);
    spec.id = static_cast<std::uint16_t>(whole.id + at / gsoSize);
    if (!first) spec.flags &= 0x7f;        // CWR on the first only
    if (!last) spec.flags &= 0xff ^ 0x09;  // FIN and PSH on the last only
    Packet packet = test::makePacket(spec);
    std::copy_n(super.begin() + static_cast<std::ptrdiff_t>(whole.header() + at), spec.payload,
                packet.begin() + static_cast<std::ptrdiff_t>(whole.header()));
    test::fixChecksums(packet);
    segments.push_back(packet);
  }
  return segments;
}

std::vector<Packet> split(const PacketSpec& spec, std::size_t gsoSize) {
  Packet super = test::makePacket(spec);
  if (!spec.v6) test::put16(super, 10, 0xdead);  // must be recomputed
  test::put16(super, spec.ipHeader() + (spec.tcp ? 16 : 6), 0xbeef);
  const auto inner = parseInnerPacket(super);
  REQUIRE(inner);
  auto segmenter = Segmenter::create(super, *inner, headerFor(spec, gsoSize));
  REQUIRE(segmenter);
  std::vector<Packet> segments;
  while (segmenter->remaining() > 0) {
    const std::size_t expected = segmenter->nextLength();
    const auto segment = segmenter->next();
    REQUIRE(segment.size() == expected);
    segments.emplace_back(segment.begin(), segment.end());
  }
  return segments;
}

}  // namespace

TEST_CASE("segments equal those of a naive splitter", "[segmenter]") {
  for (const bool v6 : {false, true}) {
    for (const bool tcp : {false, true}) {
      for (const std::size_t gsoSize : {1U, 15U, 64U, 500U, 1368U}) {
        for (const std::size_t payload :
             {gsoSize, gsoSize + 1, 3 * gsoSize - 1, 3 * gsoSize, 40 * gsoSize + gsoSize / 2}) {
          PacketSpec spec;
          spec.v6 = v6;
          spec.tcp = tcp;
          spec.payload = payload;
          spec.id = 65530;             // wraps
          spec.sequence = 0xfffffff0;  // wraps
          spec.flags = 0x10 | 0x80 | 0x40 | 0x08 | 0x01;
          spec.tos = 0x03;
          spec.options = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8};
          if (spec.header() + payload > 65535) continue;
          CAPTURE(v6, tcp, gsoSize, payload);
          REQUIRE(split(spec, gsoSize) == naiveSegments(spec, gsoSize));
        }
      }
    }
  }
}

TEST_CASE("FIN and PSH come last, CWR first", "[segmenter]") {
  PacketSpec spec;
  spec.payload = 3000;
  spec.flags = 0x10 | 0x80 | 0x08 | 0x01;
  const auto segments = split(spec, 1000);
  REQUIRE(segments.size() == 3);
  CHECK(segments[0][33] == (0x10 | 0x80));
  CHECK(segments[1][33] == 0x10);
  CHECK(segments[2][33] == (0x10 | 0x08 | 0x01));
}

TEST_CASE("a UDP checksum of zero is sent as all ones", "[segmenter]") {
  PacketSpec spec;
  spec.tcp = false;
  spec.payload = 2;
  // Choose the payload so that the sum comes out as zero.
  Packet packet = test::makePacket(spec);
  test::put16(packet, 28, 0);
  test::put16(packet, 26, 0);
  const unsigned rest = ~test::transportSum(packet) & 0xffff;
  test::put16(packet, 28, rest);
  REQUIRE((~test::transportSum(packet) & 0xffff) == 0);
  auto segmenter = Segmenter::create(packet, *parseInnerPacket(packet), headerFor(spec, 100));
  REQUIRE(segmenter);
  const auto segment = segmenter->next();
  CHECK(test::get16(segment, 26) == 0xffff);
}

TEST_CASE("the transport header behind IPv6 extension headers is found", "[segmenter]") {
  PacketSpec spec;
  spec.v6 = true;
  spec.payload = 1000;
  const Packet plain = test::makePacket(spec);
  Packet packet(plain.begin(), plain.begin() + 40);
  packet[6] = 60;  // destination options
  packet.insert(packet.end(), {6, 0, 1, 4, 0, 0, 0, 0});
  packet.insert(packet.end(), plain.begin() + 40, plain.end());
  test::put16(packet, 4, static_cast<unsigned>(packet.size() - 40));
  VirtioNetHeader header = headerFor(spec, 400);
  header.checksumStart = 48;
  auto segmenter = Segmenter::create(packet, *parseInnerPacket(packet), header);
  REQUIRE(segmenter);
  REQUIRE(segmenter->remaining() == 3);
  const auto expected = naiveSegments(spec, 400);
  for (const Packet& naive : expected) {
    const auto segment = segmenter->next();
    CHECK(test::get16(segment, 4) == naive.size() - 40 + 8);
    CHECK(std::equal(naive.begin() + 40, naive.end(), segment.begin() + 48, segment.end()));
  }
}

TEST_CASE("headers that contradict the packet are refused", "[segmenter]") {
  PacketSpec spec;
  Packet packet = test::makePacket(spec);
  const auto inner = *parseInnerPacket(packet);
  const auto refused = [&](auto change) {
    VirtioNetHeader header = headerFor(spec, 50);
    Packet copy = packet;
    change(header, copy);
    return !Segmenter::create(copy, inner, header);
  };
  CHECK(refused([](auto& header, auto&) { header.gsoSize = 0; }));
  CHECK(refused([](auto& header, auto&) { header.gsoType = kGsoNone; }));
  CHECK(refused([](auto& header, auto&) { header.gsoType = 3; }));
  CHECK(refused([](auto&, auto& copy) { copy[32] = 0x40; }));  // TCP header too short
  CHECK(refused([](auto&, auto& copy) { copy.resize(30), copy.resize(140); }));
  PacketSpec v6 = spec;
  v6.v6 = true;
  Packet other = test::makePacket(v6);
  VirtioNetHeader header = headerFor(v6, 50);
  header.checksumStart = 150;
  CHECK_FALSE(Segmenter::create(other, *parseInnerPacket(other), header));
  header.checksumStart = 8;
  CHECK_FALSE(Segmenter::create(other, *parseInnerPacket(other), header));
}

TEST_CASE("an unfinished checksum is completed") {
  for (const bool v6 : {false, true}) {
    for (const bool tcp : {false, true}) {
      PacketSpec spec;
      spec.v6 = v6;
      spec.tcp = tcp;
      spec.payload = 77;
      const Packet right = test::makePacket(spec);
      Packet packet = right;
      // The field holds the folded pseudo-header alone.
      const std::size_t field = spec.ipHeader() + (tcp ? 16 : 6);
      const std::span<const std::uint8_t> all(packet);
      Packet rest(4);
      test::put16(rest, 0, tcp ? 6 : 17);
      test::put16(rest, 2, static_cast<unsigned>(packet.size() - spec.ipHeader()));
      const unsigned sum =
          test::naiveSum(rest, test::naiveSum(v6 ? all.subspan(8, 32) : all.subspan(12, 8)));
      test::put16(packet, field, sum);
      REQUIRE(completeChecksum(packet, headerFor(spec, 0)));
      CHECK(packet == right);
    }
  }
  Packet packet = test::makePacket({});
  VirtioNetHeader outside = headerFor({}, 0);
  outside.checksumStart = static_cast<std::uint16_t>(packet.size());
  CHECK_FALSE(completeChecksum(packet, outside));
  outside.checksumStart = 20;
  outside.checksumOffset = static_cast<std::uint16_t>(packet.size() - 21);
  CHECK_FALSE(completeChecksum(packet, outside));
}
