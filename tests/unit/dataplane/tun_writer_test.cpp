#include "dataplane/user/tun_writer.hpp"

#include <catch2/catch.hpp>
#include <cerrno>

#include "packets.hpp"

using namespace adit;
using namespace adit::dataplane;
using namespace adit::dataplane::user;
using test::Packet;
using test::PacketSpec;

namespace {

// A TUN device as some kernels have it.
struct FakeTun {
  std::vector<Packet> written;
  bool refusesSuperPackets = false;
  bool down = false;
  int calls = 0;
};
FakeTun tun;

ssize_t writeToFake(int, const iovec* pieces, int count) {
  ++tun.calls;
  VirtioNetHeader header{};
  std::memcpy(&header, pieces[0].iov_base, sizeof(header));
  if (tun.down) {
    errno = EIO;
    return -1;
  }
  if (tun.refusesSuperPackets && header.gsoType != kGsoNone) {
    errno = EINVAL;
    return -1;
  }
  Packet packet;
  for (int i = 1; i < count; ++i) {
    const auto* bytes = static_cast<const std::uint8_t*>(pieces[i].iov_base);
    packet.insert(packet.end(), bytes, bytes + pieces[i].iov_len);
  }
  tun.written.push_back(packet);
  return 1;
}

struct Fixture {
  SystemClock clock;
  Device device{clock, 0};
  TunWriter writer{device, -1, writeToFake};
  std::vector<Packet> packets;
  PacketSpec spec;

  Fixture() {
    tun = {};
    device.mergeTcp = true;
    device.mergeUdp = true;
    packets.reserve(2000);
  }
  void addFlow(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      packets.push_back(test::makePacket(spec));
      spec.sequence += static_cast<std::uint32_t>(spec.payload);
      writer.add(packets.back().data(), *parseInnerPacket(packets.back()));
    }
  }
  [[nodiscard]] std::uint64_t drops() const {
    return device.drops.get()[static_cast<std::size_t>(Drop::ReceiveFailed)];
  }
};

}  // namespace

TEST_CASE("a flow is written as one super-packet", "[tun-writer]") {
  Fixture f;
  f.addFlow(10);
  f.writer.flush();
  REQUIRE(tun.written.size() == 1);
  CHECK(tun.written[0].size() == 40 + 10 * 100);
  CHECK(f.drops() == 0);
}

TEST_CASE("a device that refuses super-packets loses none, and gets no more", "[tun-writer]") {
  Fixture f;
  tun.refusesSuperPackets = true;
  f.addFlow(10);
  const std::vector<Packet> sent = f.packets;
  f.writer.flush();
  CHECK(tun.written == sent);
  CHECK(f.drops() == 0);
  CHECK_FALSE(f.device.mergeTcp);
  CHECK_FALSE(f.device.mergeUdp);
  tun = {};
  f.addFlow(10);
  f.writer.flush();
  CHECK(tun.written.size() == 10);
  CHECK(tun.calls == 10);
}

TEST_CASE("a device that is down does not lose its offload", "[tun-writer]") {
  Fixture f;
  tun.down = true;
  f.addFlow(10);
  f.writer.flush();
  CHECK(f.drops() == 10);
  CHECK(f.device.mergeTcp);
  CHECK(tun.calls == 1);
}

TEST_CASE("more packets than can be held are written in between", "[tun-writer]") {
  Fixture f;
  f.addFlow(Coalescer::kCapacity + 5);
  f.writer.flush();
  std::size_t payload = 0;
  for (const Packet& packet : tun.written)
    payload += packet.size() - 40;
  CHECK(payload == (Coalescer::kCapacity + 5) * 100);
}
