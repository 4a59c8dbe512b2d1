#include "dataplane/user/coalescer.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "dataplane/user/segmenter.hpp"
#include "packets.hpp"

using namespace adit;
using namespace adit::dataplane::user;
using test::Packet;
using test::PacketSpec;

namespace {

// One thing that is written to the device.
struct Output {
  VirtioNetHeader header;
  Packet packet;
};

struct Merger {
  Coalescer coalescer;
  std::vector<Packet> packets;

  explicit Merger(Coalescer::Abilities abilities = {.tcp = true, .udp = true}) {
    coalescer.setAbilities(abilities);
    packets.reserve(Coalescer::kCapacity);
  }

  void add(Packet packet) {
    packets.push_back(std::move(packet));
    const auto inner = parseInnerPacket(packets.back());
    REQUIRE(inner);
    coalescer.add(packets.back().data(), *inner);
  }

  std::vector<Output> outputs() {
    std::vector<Output> all;
    for (std::size_t i = 0; i < coalescer.outputs(); ++i) {
      const auto pieces = coalescer.gather(i);
      Output output{};
      std::memcpy(&output.header, pieces[0].iov_base, sizeof(output.header));
      for (const iovec& piece : pieces.subspan(1)) {
        const auto* bytes = static_cast<const std::uint8_t*>(piece.iov_base);
        output.packet.insert(output.packet.end(), bytes, bytes + piece.iov_len);
      }
      all.push_back(output);
    }
    return all;
  }
};

// What the kernel would make of it again.
std::vector<Packet> resplit(const Output& output) {
  if (output.header.gsoType == kGsoNone) return {output.packet};
  Packet packet = output.packet;
  auto segmenter = Segmenter::create(packet, *parseInnerPacket(packet), output.header);
  REQUIRE(segmenter);
  std::vector<Packet> segments;
  while (segmenter->remaining() > 0) {
    const auto segment = segmenter->next();
    segments.emplace_back(segment.begin(), segment.end());
  }
  return segments;
}

PacketSpec following(PacketSpec spec) {
  spec.sequence += static_cast<std::uint32_t>(spec.payload);
  ++spec.id;
  spec.first = static_cast<std::uint8_t>(spec.first + 31);
  return spec;
}

// How many outputs two packets make, the second one changed.
std::size_t outputsOf(const PacketSpec& spec, const std::function<void(PacketSpec&)>& change) {
  Merger merger;
  PacketSpec second = following(spec);
  change(second);
  merger.add(test::makePacket(spec));
  merger.add(test::makePacket(second));
  return merger.coalescer.outputs();
}

std::vector<PacketSpec> kinds() {
  std::vector<PacketSpec> all;
  for (const bool v6 : {false, true}) {
    for (const bool tcp : {false, true}) {
      PacketSpec spec;
      spec.v6 = v6;
      spec.tcp = tcp;
      spec.flowLabel = v6 ? 0x12345 : 0;
      spec.tos = 2;
      spec.payload = 1000;
      all.push_back(spec);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("splitting a merged packet again gives what was received", "[coalescer]") {
  for (PacketSpec spec : kinds()) {
    spec.options = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8};
    spec.dontFragment = false;
    Merger merger;
    std::vector<Packet> received;
    for (int i = 0; i < 40; ++i) {
      if (i == 39) {
        spec.payload = 123;  // shorter last
        spec.flags |= 0x08;
      }
      received.push_back(test::makePacket(spec));
      merger.add(received.back());
      spec = following(spec);
    }
    const auto outputs = merger.outputs();
    REQUIRE(outputs.size() == 1);
    const Output& output = outputs.front();
    CHECK(output.header.flags == kVirtioNeedsChecksum);
    CHECK(output.header.gsoSize == 1000);
    CHECK(output.header.headerLength == spec.header());
    CHECK(output.packet.size() == spec.header() + 39 * 1000 + 123);
    if (!spec.v6) CHECK(test::naiveSum(std::span(output.packet).first(20)) == 0xffff);
    CHECK(resplit(output) == received);
  }
}

TEST_CASE("the checksum field of a merged packet holds the pseudo-header's sum", "[coalescer]") {
  for (const PacketSpec& spec : kinds()) {
    Merger merger;
    merger.add(test::makePacket(spec));
    merger.add(test::makePacket(following(spec)));
    auto output = merger.outputs().at(0);
    REQUIRE(completeChecksum(output.packet, output.header));
    CHECK(test::checksumsAreRight(output.packet));
  }
}

TEST_CASE("packets that differ in what a super-packet has only once stay alone", "[coalescer]") {
  for (const PacketSpec& spec : kinds()) {
    CAPTURE(spec.v6, spec.tcp);
    CHECK(outputsOf(spec, [](PacketSpec&) {}) == 1);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.tos = 3; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.ttl = 63; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.sourcePort = 1; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.destinationPort = 1; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.source = s.v6 ? "fd00::9" : "10.0.0.9"; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.destination = s.v6 ? "fd00::9" : "10.0.0.9"; }) ==
          2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.payload = 1001; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.payload = 0; }) == 2);
    if (spec.v6) {
      CHECK(outputsOf(spec, [](PacketSpec& s) { s.flowLabel = 1; }) == 2);
    } else {
      CHECK(outputsOf(spec, [](PacketSpec& s) { s.dontFragment = false; }) == 2);
      // With DF set nobody looks at the identification.
      CHECK(outputsOf(spec, [](PacketSpec& s) { s.id = 0; }) == 1);
      PacketSpec fragmentable = spec;
      fragmentable.dontFragment = false;
      CHECK(outputsOf(fragmentable, [](PacketSpec&) {}) == 1);
      CHECK(outputsOf(fragmentable, [](PacketSpec& s) { ++s.id; }) == 2);
    }
  }
}

TEST_CASE("TCP merges only plain data in sequence", "[coalescer]") {
  for (PacketSpec spec : kinds()) {
    if (!spec.tcp) continue;
    spec.options = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(outputsOf(spec, [](PacketSpec& s) { ++s.sequence; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.sequence -= 2000; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { ++s.acknowledgement; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { ++s.window; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.options[11] = 9; }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.options.resize(8); }) == 2);
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.flags = 0x18; }) == 1);
    for (const unsigned flag : {0x01, 0x02, 0x04, 0x20, 0x40, 0x80}) {
      CHECK(outputsOf(spec, [flag](PacketSpec& s) {
              s.flags = static_cast<std::uint8_t>(s.flags | flag);
            }) == 2);
    }
    CHECK(outputsOf(spec, [](PacketSpec& s) { s.flags = 0; }) == 2);
    PacketSpec fin = spec;
    fin.flags = 0x11;
    CHECK(outputsOf(fin, [](PacketSpec& s) { s.flags = 0x10; }) == 2);
  }
}

TEST_CASE("a short packet and PSH end a super-packet", "[coalescer]") {
  PacketSpec first;
  first.payload = 1000;
  for (const bool psh : {false, true}) {
    Merger merger;
    PacketSpec second = following(first);
    if (psh) {
      second.flags = 0x18;
    } else {
      second.payload = 999;
    }
    PacketSpec third = following(second);
    third.flags = 0x10;
    merger.add(test::makePacket(first));
    merger.add(test::makePacket(second));
    merger.add(test::makePacket(third));
    merger.add(test::makePacket(following(third)));
    const auto outputs = merger.outputs();
    REQUIRE(outputs.size() == 2);
    CHECK(((outputs[0].packet[33] & 0x08) != 0) == psh);
    CHECK((outputs[1].packet[33] & 0x08) == 0);
  }
  // PSH on the first packet: nothing joins it.
  first.flags = 0x18;
  CHECK(outputsOf(first, [](PacketSpec&) {}) == 2);
}

TEST_CASE("a wrong inner checksum is passed on as it came, never laundered", "[coalescer]") {
  for (const PacketSpec& spec : kinds()) {
    for (const int broken : {0, 1, 2}) {
      Merger merger;
      std::vector<Packet> received;
      PacketSpec next = spec;
      for (int i = 0; i < 3; ++i) {
        received.push_back(test::makePacket(next));
        if (i == broken) received.back().back() ^= 0x40;
        merger.add(received.back());
        next = following(next);
      }
      std::vector<Packet> written;
      for (const Output& output : merger.outputs()) {
        for (const Packet& packet : resplit(output))
          written.push_back(packet);
      }
      CHECK(written == received);
    }
  }
}

TEST_CASE("UDP without a checksum stays alone", "[coalescer]") {
  PacketSpec spec;
  spec.tcp = false;
  Packet first = test::makePacket(spec);
  Packet second = test::makePacket(following(spec));
  test::put16(first, 26, 0);
  test::put16(second, 26, 0);
  Merger merger;
  merger.add(first);
  merger.add(second);
  CHECK(merger.coalescer.outputs() == 2);
}

TEST_CASE("UDP merges at most 64 packets, and nothing exceeds 65535 bytes", "[coalescer]") {
  for (const std::size_t payload : {10U, 1000U, 1400U}) {
    PacketSpec spec;
    spec.tcp = false;
    spec.payload = payload;
    Merger merger;
    std::vector<Packet> received;
    for (int i = 0; i < 130; ++i) {
      received.push_back(test::makePacket(spec));
      merger.add(received.back());
      spec = following(spec);
    }
    std::vector<Packet> written;
    for (const Output& output : merger.outputs()) {
      CHECK(output.packet.size() <= 65535);
      const auto packets = resplit(output);
      CHECK(packets.size() <= 64);
      written.insert(written.end(), packets.begin(), packets.end());
    }
    CHECK(written == received);
    CHECK(merger.coalescer.outputs() == (payload == 1400 ? 3 : 3));
  }
}

TEST_CASE("what the device does not take is not merged", "[coalescer]") {
  for (const PacketSpec& spec : kinds()) {
    Merger merger({.tcp = !spec.tcp, .udp = spec.tcp});
    merger.add(test::makePacket(spec));
    merger.add(test::makePacket(following(spec)));
    CHECK(merger.coalescer.outputs() == 2);
  }
}

TEST_CASE("IP options and fragments stay alone and are not overtaken", "[coalescer]") {
  PacketSpec spec;
  spec.payload = 1000;
  const PacketSpec second = following(spec);
  const PacketSpec third = following(second);
  Packet fragment = test::makePacket(second);
  test::put16(fragment, 6, 0x2000);
  test::put16(fragment, 10, 0);
  test::put16(fragment, 10, ~test::naiveSum(std::span(fragment).first(20)) & 0xffff);
  const Packet plain = test::makePacket(second);
  Packet options(plain.begin(), plain.begin() + 20);
  options[0] = 0x46;
  options.insert(options.end(), {1, 1, 1, 1});
  options.insert(options.end(), plain.begin() + 20, plain.end());
  test::put16(options, 2, static_cast<unsigned>(options.size()));
  test::fixChecksums(options);
  for (const Packet& odd : {fragment, options}) {
    Merger merger;
    merger.add(test::makePacket(spec));
    merger.add(odd);
    merger.add(test::makePacket(third));
    const auto outputs = merger.outputs();
    REQUIRE(outputs.size() == 3);
    CHECK(outputs[1].packet == odd);
  }
}

TEST_CASE("flows are merged side by side, each in its order", "[coalescer]") {
  std::mt19937 random(3);
  constexpr std::size_t kFlows = 24;  // more than are kept open
  std::vector<PacketSpec> flows(kFlows);
  std::vector<std::vector<Packet>> received(kFlows);
  for (std::size_t i = 0; i < kFlows; ++i) {
    flows[i] = kinds()[i % 4];
    flows[i].sourcePort = static_cast<std::uint16_t>(5000 + i);
    flows[i].payload = 500;
    flows[i].dontFragment = false;
  }
  Merger merger;
  for (std::size_t i = 0; i < Coalescer::kCapacity; ++i) {
    const std::size_t flow = random() % kFlows;
    received[flow].push_back(test::makePacket(flows[flow]));
    merger.add(received[flow].back());
    flows[flow] = following(flows[flow]);
  }
  CHECK(merger.coalescer.full());
  std::vector<std::vector<Packet>> written(kFlows);
  for (const Output& output : merger.outputs()) {
    for (const Packet& packet : resplit(output)) {
      const std::size_t port = packet[0] >> 4 == 6 ? 40 : 20;
      written.at(test::get16(packet, port) - 5000).push_back(packet);
    }
  }
  CHECK(written == received);
  CHECK(merger.coalescer.outputs() < Coalescer::kCapacity);
}

TEST_CASE("a refused super-packet comes apart into what was received", "[coalescer]") {
  for (PacketSpec spec : kinds()) {
    Merger merger;
    std::vector<Packet> received;
    for (int i = 0; i < 5; ++i) {
      if (i == 4) spec.flags = 0x18;
      received.push_back(test::makePacket(spec));
      merger.add(received.back());
      spec = following(spec);
    }
    REQUIRE(merger.coalescer.outputs() == 1);
    merger.coalescer.gather(0);
    std::vector<Packet> apart;
    for (const iovec& piece : merger.coalescer.split(0)) {
      const auto* bytes = static_cast<const std::uint8_t*>(piece.iov_base);
      apart.emplace_back(bytes, bytes + piece.iov_len);
    }
    CHECK(apart == received);
  }
}
