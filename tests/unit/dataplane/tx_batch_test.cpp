#include "dataplane/user/tx_batch.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "dataplane/user/bytes.hpp"
#include "packets.hpp"
#include "sessions.hpp"
#include "udp_peer.hpp"

using namespace adit;
using namespace adit::dataplane;
using namespace adit::dataplane::user;
using namespace std::chrono_literals;
using test::Packet;
using test::PacketSpec;
using test::UdpPeer;

namespace {

constexpr BootTime kNow = 1000s;

// A batch to one peer, whose datagrams a plain socket receives.
struct Fixture {
  SystemClock clock;
  std::unique_ptr<Device> device;
  UdpPeer receiver;
  UdpSockets sockets;
  std::unique_ptr<TxBatch> batch;
  Peer* peer = nullptr;
  Session* session = nullptr;
  noise::SessionKeys keys = test::keysFor(noise::KeySlot::Current, 5, crypto::Suite::Aes256Gcm);

  Fixture() {
    test::prepareAead();
    device = std::make_unique<Device>(clock, 0);
    device->mtu = 1420;
    SocketSettings settings;
    settings.bindAddress = *IpAddress::parse("127.0.0.1");
    auto opened = UdpSockets::open(settings);
    REQUIRE(opened);
    sockets = std::move(*opened);
    batch = std::make_unique<TxBatch>(*device);
    batch->setSockets(&sockets);
    batch->setTime(kNow);
    PeerSettings who;
    who.id = 1;
    peer = &device->table.set(who);
    peer->endpoint.set(receiver.endpoint(), {});
    install();
  }

  void install() {
    auto made = std::make_unique<Session>(*peer, keys, kNow);
    session = made.get();
    device->table.addSession(std::move(made), keys.slot);
  }

  // Adds a copy that has the room behind it which addPacket() asks for.
  void add(const Packet& packet, std::uint8_t tos = 0) {
    kept.push_back(packet);
    kept.back().resize(packet.size() + 16, 0xee);
    batch->addPacket(*session, std::span(kept.back()).first(packet.size()), tos);
  }
  void addSuper(const PacketSpec& spec, std::size_t gsoSize) {
    Packet packet = test::makePacket(spec);
    packet.resize(packet.size() + 64);
    VirtioNetHeader header{};
    header.flags = kVirtioNeedsChecksum;
    header.gsoType = spec.tcp ? kGsoTcpV4 : kGsoUdp;
    header.gsoSize = static_cast<std::uint16_t>(gsoSize);
    header.checksumStart = static_cast<std::uint16_t>(spec.ipHeader());
    auto segmenter = Segmenter::create(packet, *parseInnerPacket(packet), header);
    REQUIRE(segmenter);
    batch->addSegments(*session, *segmenter, spec.tos);
  }

  // What the other side reads in a datagram.
  Packet open(const std::vector<std::uint8_t>& datagram, std::uint64_t counter) {
    REQUIRE(datagram.size() >= 32);
    CHECK(datagram[0] == 4);
    CHECK(datagram[1] == 1);
    CHECK(datagram[2] + datagram[3] == 0);
    CHECK(loadLe32(&datagram[4]) == keys.remoteIndex);
    CHECK(loadLe64(&datagram[8]) == counter);
    const auto key = crypto::makeAeadKey(keys.suite, keys.send);
    Packet plain(datagram.size() - 32);
    crypto::AeadJob job{.in = &datagram[16],
                        .out = plain.data(),
                        .length = static_cast<std::uint32_t>(plain.size()),
                        .counter = counter};
    CHECK(worker.open(*key, {&job, 1}) == 1);
    return plain;
  }

  crypto::AeadWorker worker;
  std::vector<Packet> kept;
};

// Whether `plain` is `packet` padded with zeros.
bool isPadded(const Packet& plain, const Packet& packet) {
  return plain.size() >= packet.size() && std::equal(packet.begin(), packet.end(), plain.begin()) &&
         std::all_of(plain.begin() + static_cast<std::ptrdiff_t>(packet.size()), plain.end(),
                     [](auto byte) { return byte == 0; });
}

}  // namespace

TEST_CASE("packets are padded to 16 but never beyond the MTU", "[tx-batch]") {
  Fixture f;
  for (const std::size_t payload : {1U, 500U, 1369U, 1380U}) {
    f.add(test::makePacket({.payload = payload}));
    f.batch->flush();
    const auto got = f.receiver.receive(1);
    REQUIRE(got.size() == 1);
    const std::size_t length = payload + 40;
    const std::size_t padded = std::min<std::size_t>((length + 15) / 16 * 16, 1420);
    CHECK(got[0].size() == padded + 32);
  }
}

TEST_CASE("packets of equal size and a shorter last one leave together", "[tx-batch]") {
  Fixture f;
  std::vector<Packet> packets;
  for (int i = 0; i < 5; ++i) {
    packets.push_back(
        test::makePacket({.payload = i < 4 ? 1000U : 200U, .first = static_cast<std::uint8_t>(i)}));
    f.add(packets.back());
  }
  CHECK_FALSE(f.receiver.pending());
  // What is as long as the first one cannot stand behind a shorter one.
  f.add(packets[0]);
  auto got = f.receiver.receive(5);
  REQUIRE(got.size() == 5);
  CHECK_FALSE(f.receiver.pending());
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(isPadded(f.open(got[i], i), packets[i]));
  f.batch->flush();
  got = f.receiver.receive(1);
  REQUIRE(got.size() == 1);
  CHECK(isPadded(f.open(got[0], 5), packets[0]));
  CHECK(f.peer->txPackets.get() == 6);
  CHECK(f.peer->txBytes.get() == 5 * (1040 + 32) + 240 + 32);
}

TEST_CASE("a larger packet, another class and a full batch send what is there", "[tx-batch]") {
  Fixture f;
  f.add(test::makePacket({.payload = 100}));
  f.add(test::makePacket({.payload = 1000}));
  CHECK(f.receiver.receive(1).size() == 1);
  f.add(test::makePacket({.payload = 1000}), 2);
  CHECK(f.receiver.receive(1).size() == 1);
  // Only the ECN field shows outside: another DSCP joins.
  f.add(test::makePacket({.payload = 1000}), 0xb8 | 2);
  CHECK_FALSE(f.receiver.pending());
  f.batch->flush();
  CHECK(f.receiver.receive(2).size() == 2);
  CHECK(f.receiver.lastTos() == 2);
  for (std::size_t i = 0; i < kMaxSegments; ++i)
    f.add(test::makePacket({.payload = 10}));
  CHECK_FALSE(f.receiver.pending());
  f.add(test::makePacket({.payload = 10}));
  CHECK(f.receiver.receive(kMaxSegments).size() == kMaxSegments);
  f.batch->flush();
  CHECK(f.receiver.receive(1).size() == 1);
}

TEST_CASE("a super-packet arrives as its segments, in as many sends as needed", "[tx-batch]") {
  for (const bool tcp : {true, false}) {
    for (const std::size_t gsoSize : {1368U, 1361U, 500U, 60U}) {
      Fixture f;
      PacketSpec spec;
      spec.tcp = tcp;
      spec.payload = std::min<std::size_t>(65000, gsoSize * 150) - 1;
      spec.tos = 1;
      // First a single packet, behind which the segments stand if they are not longer.
      const Packet single = test::makePacket({.payload = 1380});
      f.add(single, 1);
      f.addSuper(spec, gsoSize);
      f.batch->flush();
      const std::size_t segments = (spec.payload + gsoSize - 1) / gsoSize;
      const auto got = f.receiver.receive(segments + 1);
      REQUIRE(got.size() == segments + 1);
      CHECK(f.receiver.lastTos() == 1);
      CHECK(isPadded(f.open(got[0], 0), single));
      const Packet whole = test::makePacket(spec);
      for (std::size_t i = 0; i < segments; ++i) {
        Packet plain = f.open(got[i + 1], i + 1);
        const auto inner = parseInnerPacket(plain);
        REQUIRE(inner);
        CHECK(plain.size() == paddedLength(inner->totalLength, 1420));
        plain.resize(inner->totalLength);
        REQUIRE(test::checksumsAreRight(plain));
        const auto payload =
            whole.begin() + static_cast<std::ptrdiff_t>(spec.header() + i * gsoSize);
        REQUIRE(std::equal(plain.begin() + static_cast<std::ptrdiff_t>(spec.header()), plain.end(),
                           payload));
      }
    }
  }
}

TEST_CASE("a keepalive is an empty datagram", "[tx-batch]") {
  Fixture f;
  Packet room(16);
  f.batch->addPacket(*f.session, std::span(room).first(0), 0);
  f.batch->flush();
  const auto got = f.receiver.receive(1);
  REQUIRE(got.size() == 1);
  CHECK(got[0].size() == 32);
  CHECK(f.open(got[0], 0).empty());
  CHECK(f.peer->activity.snapshot().lastSent == kNow);
  CHECK(f.peer->activity.snapshot().lastDataSent == BootTime{});
}

TEST_CASE("what a used-up key cannot send is staged", "[tx-batch]") {
  Fixture f;
  f.keys = test::keysFor(noise::KeySlot::Current, 6);
  f.keys.limits.rejectAfterMessages = 10;
  f.install();
  for (int i = 0; i < 3; ++i)
    f.add(test::makePacket({.payload = 1000}));
  f.batch->flush();
  CHECK(f.receiver.receive(3).size() == 3);
  PacketSpec spec;
  spec.payload = 20000;
  f.addSuper(spec, 1000);
  f.batch->flush();
  CHECK_FALSE(f.receiver.pending());
  auto staged = f.peer->staging.takeAll();
  REQUIRE(staged.size() == 20);
  CHECK(staged[0].length == 1040);
  for (int i = 0; i < 8; ++i)
    f.add(test::makePacket({.payload = 1000}));
  f.batch->flush();
  CHECK(f.peer->staging.takeAll().size() == 8);
  CHECK_FALSE(f.receiver.pending());
  // Else the staged packets would go round between queue and batch until the key's age ends it.
  CHECK_FALSE(f.session->canSend(kNow));
}

TEST_CASE("the MTU may change while a super-packet is cut", "[tx-batch]") {
  Fixture f;
  // Of 1420 bytes: padded to 1424 where the MTU allows it, and not padded where it does not.
  constexpr std::size_t kPayload = 1380;
  std::atomic<bool> done{false};
  std::thread changing([&] {
    while (!done) {
      f.device->mtu = 1420;
      f.device->mtu = 1500;
    }
  });
  std::size_t wrong = 0;
  PacketSpec spec;
  spec.payload = kPayload * 8;
  for (int round = 0; round < 300; ++round) {
    f.addSuper(spec, kPayload);
    f.batch->flush();
    std::set<std::size_t> lengths;
    for (const auto& datagram : f.receiver.receive(8))
      lengths.insert(datagram.size());
    const bool sound =
        lengths == std::set<std::size_t>{1420 + 32} || lengths == std::set<std::size_t>{1424 + 32};
    wrong += sound ? 0 : 1;
  }
  done = true;
  changing.join();
  CHECK(wrong == 0);
}

TEST_CASE("a path that refuses offload is spared it for a while", "[tx-batch]") {
  Fixture f;
  const int on = 1;
  REQUIRE(::setsockopt(f.sockets.v4(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)) == 0);
  f.add(test::makePacket({.payload = 1000}));
  f.add(test::makePacket({.payload = 1000}));
  f.batch->flush();
  CHECK(f.receiver.receive(2).size() == 2);
  CHECK(f.peer->endpoint.destination()->singlyUntil > kNow);
  CHECK(f.device->drops.get()[static_cast<std::size_t>(Drop::SendFailed)] == 0);
  f.peer->endpoint.set(f.receiver.endpoint(), {});
  CHECK(f.peer->endpoint.destination()->singlyUntil == BootTime{});
}

TEST_CASE("refused datagrams are counted", "[tx-batch]") {
  Fixture f;
  f.peer->endpoint.set(*Endpoint::parse("[::1]:9"), {});
  f.add(test::makePacket({.payload = 1000}));
  f.batch->flush();
  CHECK(f.peer->drops.get()[static_cast<std::size_t>(Drop::SendFailed)] == 1);
  CHECK(f.peer->txPackets.get() == 0);
}

TEST_CASE("a packet that no datagram can hold is counted", "[tx-batch]") {
  Fixture f;
  f.device->mtu = 65535;
  f.add(test::makePacket({.payload = 65480}));
  PacketSpec spec;
  spec.payload = 65495;
  f.addSuper(spec, 65495);
  f.batch->flush();
  CHECK(f.peer->drops.get()[static_cast<std::size_t>(Drop::SendFailed)] == 2);
  CHECK_FALSE(f.receiver.pending());
}

TEST_CASE("an aged key that is used is noted", "[tx-batch]") {
  Fixture f;
  f.batch->setTime(kNow + 119s);
  f.add(test::makePacket({}));
  f.batch->flush();
  CHECK(f.peer->activity.snapshot().keyAged == BootTime{});
  f.batch->setTime(kNow + 120s);
  f.add(test::makePacket({}));
  f.batch->flush();
  CHECK(f.peer->activity.snapshot().keyAged == kNow + 120s);
}

TEST_CASE("the staging queue drops its oldest packet", "[staging]") {
  Fixture f;
  for (std::size_t i = 0; i < StagingQueue::kCapacity + 3; ++i) {
    stagePacket(*f.device, *f.peer, test::makePacket({.payload = i}), 0);
  }
  CHECK(f.peer->drops.get()[static_cast<std::size_t>(Drop::QueueFull)] == 3);
  const auto staged = f.peer->staging.takeAll();
  REQUIRE(staged.size() == StagingQueue::kCapacity);
  CHECK(staged.front().length == 43);
  CHECK(f.peer->staging.empty());
}
