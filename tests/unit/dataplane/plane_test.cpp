// One whole data plane in a namespace, with a fake peer on loopback.

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "crypto/hash.hpp"
#include "dataplane/user/user.hpp"
#include "fake_peer.hpp"
#include "namespaces.hpp"
#include "packets.hpp"
#include "plane_events.hpp"
#include "wire/control.h"

using namespace adit;
using namespace adit::dataplane;
using namespace std::chrono_literals;
using test::Packet;
using test::PacketSpec;

namespace {

constexpr PeerId kPeer = 7;

class TestClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return BootTime(now_.load()); }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return now(); }
  void advance(std::chrono::nanoseconds by) { now_ += by.count(); }

 private:
  std::atomic<BootTime::rep> now_{BootTime(1000s).count()};
};

crypto::PublicKey key(std::uint8_t byte) {
  crypto::PublicKey result;
  result.bytes.fill(byte);
  return result;
}

struct Plane {
  test::Namespace space;
  test::Namespace::Visit visit{space};
  TestClock clock;
  std::unique_ptr<DataPlane> plane;
  test::Events events;
  test::UdpPeer socket;
  std::unique_ptr<test::FakePeer> peer;
  Endpoint listening;

  Plane() {
    dataplane::user::UserOptions options;
    options.interface = "adit0";
    options.clock = &clock;
    auto made = dataplane::user::createUserDataPlane(options);
    REQUIRE(made);
    plane = std::move(*made);
    configure(0);
    PeerSettings settings;
    settings.id = kPeer;
    settings.publicKey = key(9);
    settings.allowedIps = {*Prefix::parse("10.8.0.2/32"), *Prefix::parse("fd08::2/128")};
    REQUIRE(plane->setPeer(settings));
    test::run("ip address add 10.8.0.1/24 dev adit0");
    test::run("ip -6 address add fd08::1/64 dev adit0 nodad");
    test::run("ip link set adit0 up");
    peer = std::make_unique<test::FakePeer>(socket);
  }
  ~Plane() { plane->destroyInterface(); }

  void configure(std::uint16_t port) {
    DeviceSettings settings;
    settings.listenPort = port;
    settings.publicKey = key(3);
    REQUIRE(plane->configure(settings));
    listening = {*IpAddress::parse("127.0.0.1"), plane->deviceStats().listenPort, 0};
  }

  // Installs a session on both sides.
  void install(noise::SessionKeys keys) {
    REQUIRE(plane->installKeys(kPeer, key(9), keys));
    peer->use(test::otherSide(keys));
  }
  // A session that works both ways, started by the plane; the keepalive is received.
  void connect() {
    plane->setEndpoint(kPeer, socket.endpoint(), std::nullopt);
    install(test::keysFor(noise::KeySlot::Current, 1));
    const auto keepalive = peer->receive();
    REQUIRE(keepalive);
    REQUIRE(keepalive->empty());
  }

  [[nodiscard]] std::uint64_t drops(Drop drop) const {
    return plane->deviceStats().drops[static_cast<std::size_t>(drop)];
  }
  [[nodiscard]] PeerStats stats() const { return plane->peerStats().at(0); }
  bool until(const std::function<bool()>& done) { return events.until(*plane, done); }
  // Sends to the plane, which must count exactly this reason. (The kernel's own multicast on the
  // device has no peer, and comes when it likes.)
  void mustDrop(const std::vector<std::uint8_t>& datagram, Drop reason, int tos = 0) {
    const auto before = plane->deviceStats().drops;
    socket.send(datagram, listening, tos);
    CHECK(until([&] { return drops(reason) == before[static_cast<std::size_t>(reason)] + 1; }));
    auto after = plane->deviceStats().drops;
    after[static_cast<std::size_t>(Drop::NoPeer)] = before[static_cast<std::size_t>(Drop::NoPeer)];
    --after[static_cast<std::size_t>(reason)];
    CHECK(after == before);
  }
};

// Inner packets from the peer to a socket behind the device.
PacketSpec toUs(const Endpoint& socket) {
  PacketSpec spec;
  spec.tcp = false;
  spec.source = "10.8.0.2";
  spec.destination = "10.8.0.1";
  spec.destinationPort = socket.port;
  return spec;
}

}  // namespace

TEST_CASE("packets pass both ways through a session", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  for (const auto suite : crypto::kSuites) {
    Plane f;
    f.plane->setEndpoint(kPeer, f.socket.endpoint(), std::nullopt);
    f.install(test::keysFor(noise::KeySlot::Current, 1, suite));
    REQUIRE(f.peer->receive());
    test::UdpPeer inner("10.8.0.1");
    const PacketSpec spec = toUs(inner.endpoint());
    f.socket.send(f.peer->seal(test::makePacket(spec)), f.listening);
    const auto got = inner.receive(1);
    REQUIRE(got.size() == 1);
    CHECK(got[0].size() == spec.payload);
    CHECK(inner.lastSource().toString() == "10.8.0.2:1000");

    inner.send(Packet(200, 5), *Endpoint::parse("10.8.0.2:1000"));
    const auto plain = f.peer->receive();
    REQUIRE(plain);
    CHECK(plain->size() == 240);  // 228, padded
    CHECK(test::checksumsAreRight(std::span(*plain).first(228)));
    CHECK(f.stats().rxPackets == 1);
    CHECK(f.stats().rxBytes == test::makePacket(spec).size() + 32);
    CHECK(f.until([&] { return f.stats().txPackets == 2; }));  // counted after it is sent
    CHECK(f.stats().txBytes == 32 + 240 + 32);
    CHECK(f.stats().suite == suite);
    CHECK(f.stats().lastReceive == 1000s);
  }
}

TEST_CASE("every kind of bad datagram is counted for what it is", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  PeerSettings other;
  other.id = kPeer + 1;
  other.publicKey = key(10);
  other.allowedIps = {*Prefix::parse("10.8.0.4/32")};
  REQUIRE(f.plane->setPeer(other));
  f.connect();
  f.mustDrop({}, Drop::Malformed);
  f.mustDrop({4, 0, 0}, Drop::Malformed);
  f.mustDrop(std::vector<std::uint8_t>(100, 9), Drop::Malformed);
  const auto good = f.peer->seal({});
  for (std::size_t length = 4; length < 32; ++length) {
    f.mustDrop({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)}, Drop::Malformed);
  }
  auto changed = good;
  changed[1] = 3;  // no such suite
  f.mustDrop(changed, Drop::Malformed);
  changed[1] = 1;  // a suite that the session does not have
  f.mustDrop(changed, Drop::Malformed);
  changed = good;
  changed[3] = 1;  // reserved
  f.mustDrop(changed, Drop::Malformed);
  changed = good;
  changed[5] ^= 1;
  f.mustDrop(changed, Drop::UnknownIndex);
  changed = good;
  changed.back() ^= 1;
  f.mustDrop(changed, Drop::Authentication);
  changed = good;
  changed[8] ^= 1;  // another counter
  f.mustDrop(changed, Drop::Authentication);
  f.socket.send(good, f.listening);
  CHECK(f.until([&] { return f.stats().rxPackets == 1; }));
  f.mustDrop(good, Drop::Replay);
  f.mustDrop(f.peer->seal({0x50, 1, 2, 3}), Drop::NotIp);
  Packet cut = test::makePacket({.source = "10.8.0.2"});
  cut.resize(cut.size() - 1);
  f.mustDrop(f.peer->seal(cut), Drop::NotIp);
  f.mustDrop(f.peer->seal(test::makePacket({.source = "10.8.0.3"})), Drop::SourceNotAllowed);
  f.mustDrop(f.peer->seal(test::makePacket({.source = "10.8.0.4"})), Drop::SourceNotAllowed);
  f.mustDrop(f.peer->seal(test::makePacket({.v6 = true, .source = "fd08::3"})),
             Drop::SourceNotAllowed);
  f.mustDrop(f.peer->seal(test::makePacket({.source = "10.8.0.2"})), Drop::Congestion, 3);
  // Nothing of it broke the session.
  test::UdpPeer inner("10.8.0.1");
  f.socket.send(f.peer->seal(test::makePacket(toUs(inner.endpoint()))), f.listening);
  CHECK(inner.receive(1).size() == 1);
}

TEST_CASE("congestion that the network signals reaches the receiver", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  test::UdpPeer inner("10.8.0.1");
  PacketSpec spec = toUs(inner.endpoint());
  spec.tos = 2;
  f.socket.send(f.peer->seal(test::makePacket(spec)), f.listening, 3);
  REQUIRE(inner.receive(1).size() == 1);
  CHECK(inner.lastTos() == 3);
  // And the other way the outer header shows the inner ECN field, but not DSCP.
  inner.send(Packet(10), *Endpoint::parse("10.8.0.2:1000"), 0xb8 | 1);
  REQUIRE(f.peer->receive());
  CHECK(f.socket.lastTos() == 1);
}

TEST_CASE("a responder stays silent until the new key is confirmed", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.plane->setEndpoint(kPeer, f.socket.endpoint(), std::nullopt);
  f.install(test::keysFor(noise::KeySlot::Next, 1));
  test::UdpPeer inner("10.8.0.1");
  inner.send(Packet(100), *Endpoint::parse("10.8.0.2:1000"));
  // It waits, and a handshake is wanted since there is nothing to send under.
  CHECK(f.until([&] { return !f.events.needed.empty(); }));
  CHECK(f.events.needed.front() == HandshakeReason::Staged);
  CHECK_FALSE(f.socket.pending());
  CHECK(f.events.confirmed == 0);
  CHECK_FALSE(f.stats().suite);
  f.socket.send(f.peer->seal({}), f.listening);
  const auto plain = f.peer->receive();
  REQUIRE(plain);
  CHECK(plain->size() == 128);
  CHECK(f.until([&] { return f.events.confirmed == 1; }));
  CHECK(f.stats().suite);
}

TEST_CASE("packets wait for the initiator's key and leave at once", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.plane->setEndpoint(kPeer, f.socket.endpoint(), std::nullopt);
  test::UdpPeer inner("10.8.0.1");
  for (std::size_t i = 0; i < 5; ++i) {
    inner.send(Packet(100 + 16 * i), *Endpoint::parse("10.8.0.2:1000"));
  }
  CHECK(f.until([&] { return !f.events.needed.empty(); }));
  f.install(test::keysFor(noise::KeySlot::Current, 1));
  for (std::size_t i = 0; i < 5; ++i) {
    const auto plain = f.peer->receive();
    REQUIRE(plain);
    CHECK(plain->size() == 128 + 16 * i);
  }
  CHECK(f.until([&] { return f.stats().txPackets == 5; }));
  SECTION("and dropped ones do not") {
    f.plane->dropKeys(kPeer);
    f.events.needed.clear();
    inner.send(Packet(100), *Endpoint::parse("10.8.0.2:1000"));
    CHECK(f.until([&] { return !f.events.needed.empty(); }));
    f.plane->dropStaged(kPeer);
    f.install(test::keysFor(noise::KeySlot::Current, 2));
    const auto keepalive = f.peer->receive();
    REQUIRE(keepalive);
    CHECK(keepalive->empty());
  }
}

TEST_CASE("the endpoint moves only by an authenticated, fresh packet", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  test::UdpPeer elsewhere("127.0.0.5");
  const auto first = f.peer->seal({});
  f.socket.send(first, f.listening);
  CHECK(f.until([&] { return f.stats().rxPackets == 1; }));
  CHECK(f.events.moves.empty());

  elsewhere.send(first, f.listening);  // replayed
  CHECK(f.until([&] { return f.drops(Drop::Replay) == 1; }));
  auto forged = f.peer->seal({});
  forged.back() ^= 1;
  elsewhere.send(forged, f.listening);
  CHECK(f.until([&] { return f.drops(Drop::Authentication) == 1; }));
  CHECK(f.stats().endpoint == f.socket.endpoint());

  elsewhere.send(f.peer->seal({}), f.listening);
  CHECK(f.until([&] { return f.events.moves.size() == 1; }));
  CHECK(f.events.moves.at(0) == elsewhere.endpoint());
  CHECK(f.stats().endpoint == elsewhere.endpoint());

  SECTION("moves that follow quickly are told together") {
    for (int i = 0; i < 3; ++i) {
      f.socket.send(f.peer->seal({}), f.listening);
      elsewhere.send(f.peer->seal({}), f.listening);
    }
    f.socket.send(f.peer->seal({}), f.listening);
    CHECK(f.until([&] { return f.stats().endpoint == f.socket.endpoint(); }));
    f.plane->dispatch(f.events);
    CHECK(f.events.moves.size() == 1);
    f.clock.advance(1s);
    f.plane->dispatch(f.events);
    REQUIRE(f.events.moves.size() == 2);
    CHECK(f.events.moves[1] == f.socket.endpoint());
  }
  SECTION("not with roaming off") {
    PeerSettings settings;
    settings.id = kPeer;
    settings.publicKey = key(9);
    settings.roam = false;
    REQUIRE(f.plane->setPeer(settings));
    f.socket.send(f.peer->seal({}), f.listening);
    CHECK(f.until([&] { return f.stats().rxPackets == 3; }));
    CHECK(f.stats().endpoint == elsewhere.endpoint());
  }
}

TEST_CASE("answers leave from the address that was contacted", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  Endpoint other = f.listening;
  other.address = *IpAddress::parse("127.0.0.9");
  f.socket.send(f.peer->seal({}), other);
  CHECK(f.until([&] { return f.stats().rxPackets == 1; }));
  f.plane->sendControl(kPeer, std::array<std::uint8_t, 2>{1, 0});
  REQUIRE(f.peer->receive());
  CHECK(f.socket.lastSource() == other);
}

TEST_CASE("handshake datagrams need the exact length and a right mac1", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  const crypto::Hash macKey = crypto::blake2s(
      {std::array<std::uint8_t, 8>{'m', 'a', 'c', '1', '-', '-', '-', '-'}, key(3).bytes});
  const auto make = [&](std::uint8_t type, std::size_t length) {
    std::vector<std::uint8_t> datagram(length, 0x5a);
    datagram[0] = type;
    datagram[1] = datagram[2] = datagram[3] = 0;
    if (type != ADIT_MESSAGE_COOKIE) {
      const auto mac = crypto::keyedBlake2s(macKey, {std::span(datagram).first(length - 32)});
      std::ranges::copy(mac, datagram.end() - 32);
    }
    return datagram;
  };
  const std::vector<std::vector<std::uint8_t>> good{make(1, 148), make(2, 92), make(3, 64)};
  for (const auto& datagram : good)
    f.socket.send(datagram, f.listening);
  CHECK(f.until([&] { return f.events.handshakes.size() == 3; }));
  for (std::size_t i = 0; i < good.size(); ++i) {
    CHECK(f.events.handshakes[i].datagram == good[i]);
    CHECK(f.events.handshakes[i].source == f.socket.endpoint());
    CHECK(f.events.handshakes[i].local.address.toString() == "127.0.0.1");
  }
  auto suite = make(1, 148);
  suite[1] = 1;
  f.mustDrop(suite, Drop::BadMac);  // mac1 covers the suite
  suite[1] = 3;
  f.mustDrop(suite, Drop::Malformed);
  auto cookie = good[2];
  cookie[1] = 1;
  f.mustDrop(cookie, Drop::Malformed);
  f.mustDrop(make(1, 147), Drop::Malformed);
  f.mustDrop(make(2, 148), Drop::Malformed);
  f.mustDrop(make(3, 63), Drop::Malformed);
  for (std::size_t at = 4; at < 148 - 16; at += 9) {
    auto changed = good[0];
    changed[at] ^= 1;
    f.mustDrop(changed, Drop::BadMac);
  }
  SECTION("what nobody takes is bounded") {
    for (int i = 0; i < 1500; ++i) {
      f.socket.send(good[0], f.listening);
      if (i % 100 == 99) {
        const auto so = static_cast<std::uint64_t>(std::max(0, i + 1 - 1024));
        const auto deadline = std::chrono::steady_clock::now() + 5s;
        while (f.drops(Drop::HandshakeQueue) < so && std::chrono::steady_clock::now() < deadline) {
          std::this_thread::yield();
        }
      }
    }
    CHECK(f.until([&] { return f.events.handshakes.size() == 3 + 1024; }));
    CHECK(f.drops(Drop::HandshakeQueue) == 1500 - 1024);
  }
  SECTION("without a public key there is no handshake") {
    DeviceSettings settings;
    REQUIRE(f.plane->configure(settings));
    for (const auto& datagram : good)
      f.mustDrop(datagram, Drop::BadMac);
  }
}

TEST_CASE("a handshake datagram goes out marked AF41, from the given address", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  const std::vector<std::uint8_t> datagram(148, 1);
  REQUIRE(f.plane->sendHandshake(datagram, f.socket.endpoint(),
                                 LocalAddress{*IpAddress::parse("127.0.0.8"), 1}));
  const auto got = f.socket.receive(1);
  REQUIRE(got.size() == 1);
  CHECK(got[0] == datagram);
  CHECK(f.socket.lastTos() == 0x88);
  CHECK(f.socket.lastSource().address.toString() == "127.0.0.8");
  CHECK_FALSE(f.plane->sendHandshake(datagram, *Endpoint::parse("192.0.2.1:1"), std::nullopt));
  CHECK(f.drops(Drop::SendFailed) == 1);
}

TEST_CASE("control messages pass both ways", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  const std::vector<std::uint8_t> message{0x01, 1, 5, 2, 9, 9, 9, 9};
  f.plane->sendControl(kPeer, message);  // no session yet: nothing happens
  f.connect();
  f.plane->sendControl(kPeer, message);
  auto plain = f.peer->receive();
  REQUIRE(plain);
  REQUIRE(plain->size() == 16);
  plain->resize(message.size());
  CHECK(*plain == message);
  f.socket.send(f.peer->seal(message), f.listening);
  CHECK(f.until([&] { return f.events.controls.size() == 1; }));
  CHECK(f.events.controls.at(0) == message);
  f.mustDrop(f.peer->seal(std::vector<std::uint8_t>(ADIT_CONTROL_MAX_LENGTH + 17)),
             Drop::HandshakeQueue);
}

TEST_CASE("a flood of control messages reaches the control thread a few times", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  const std::vector<std::uint8_t> message{ADIT_CONTROL_VERSION, ADIT_CONTROL_END};
  constexpr std::uint64_t kMessages = 50;
  for (std::uint64_t i = 0; i < kMessages; ++i)
    f.socket.send(f.peer->seal(message), f.listening);
  CHECK(f.until(
      [&] { return f.events.controls.size() + f.drops(Drop::HandshakeQueue) == kMessages; }));
  CHECK(f.events.controls.size() == 10);
  // The test's clock stands still; five come with each second.
  f.clock.advance(1s);
  for (std::uint64_t i = 0; i < kMessages; ++i)
    f.socket.send(f.peer->seal(message), f.listening);
  CHECK(f.until(
      [&] { return f.events.controls.size() + f.drops(Drop::HandshakeQueue) == 2 * kMessages; }));
  CHECK(f.events.controls.size() == 15);
}

TEST_CASE("keys are refused twice, for another peer, and under a used index", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  const auto keys = test::keysFor(noise::KeySlot::Current, 1);
  CHECK_FALSE(f.plane->installKeys(99, key(9), keys));
  CHECK_FALSE(f.plane->installKeys(kPeer, key(8), keys));
  CHECK(f.plane->installKeys(kPeer, key(9), keys));
  CHECK_FALSE(f.plane->installKeys(kPeer, key(9), keys));
  auto again = keys;
  again.localIndex = 1000;
  CHECK_FALSE(f.plane->installKeys(kPeer, key(9), again));
  auto sameIndex = test::keysFor(noise::KeySlot::Current, 2);
  sameIndex.localIndex = keys.localIndex;
  CHECK_FALSE(f.plane->installKeys(kPeer, key(9), sameIndex));
  f.plane->dropKeys(kPeer);
  CHECK_FALSE(f.plane->installKeys(kPeer, key(9), again));
  CHECK(f.plane->installKeys(kPeer, key(9), sameIndex));
}

TEST_CASE("a session ends by age, both ways, and its keys are wiped", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  f.clock.advance(180s);
  f.mustDrop(f.peer->seal({}), Drop::KeyExpired);
  f.plane->sendControl(kPeer, std::array<std::uint8_t, 2>{1, 0});
  CHECK(f.drops(Drop::KeyExpired) == 2);
  test::UdpPeer inner("10.8.0.1");
  inner.send(Packet(100), *Endpoint::parse("10.8.0.2:1000"));
  CHECK(f.until([&] { return !f.events.needed.empty(); }));
  CHECK(f.events.needed.front() == HandshakeReason::Staged);
  CHECK_FALSE(f.socket.pending());
  CHECK(f.events.expired == 0);
  f.clock.advance(360s);
  f.plane->dispatch(f.events);
  CHECK(f.events.expired == 1);
  CHECK_FALSE(f.stats().suite);
  f.mustDrop(f.peer->seal({}), Drop::UnknownIndex);
}

TEST_CASE("counters at the message limit are refused", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.plane->setEndpoint(kPeer, f.socket.endpoint(), std::nullopt);
  auto keys = test::keysFor(noise::KeySlot::Current, 1);
  keys.limits.rejectAfterMessages = 1000;
  f.install(keys);
  f.mustDrop(f.peer->seal({}, 1000), Drop::KeyExpired);
  f.socket.send(f.peer->seal({}, 999), f.listening);
  CHECK(f.until([&] { return f.stats().rxPackets == 1; }));
}

TEST_CASE("timers reach the wire: keepalives and the wish for a handshake", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  SECTION("passive keepalive") {
    f.socket.send(f.peer->seal({0x01, 0}), f.listening);
    CHECK(f.until([&] { return f.stats().rxPackets == 1; }));
    f.clock.advance(10s);
    f.plane->dispatch(f.events);
    const auto plain = f.peer->receive();
    REQUIRE(plain);
    CHECK(plain->empty());
    f.clock.advance(10s);
    f.plane->dispatch(f.events);
    CHECK_FALSE(f.socket.pending());
  }
  SECTION("a keepalive is not answered") {
    f.socket.send(f.peer->seal({}), f.listening);
    CHECK(f.until([&] { return f.stats().rxPackets == 1; }));
    f.clock.advance(11s);
    f.plane->dispatch(f.events);
    CHECK_FALSE(f.socket.pending());
  }
  SECTION("no reply") {
    f.plane->sendControl(kPeer, std::array<std::uint8_t, 2>{1, 0});
    REQUIRE(f.peer->receive());
    f.clock.advance(15s);
    f.plane->dispatch(f.events);
    REQUIRE(f.events.needed.size() == 1);
    CHECK(f.events.needed[0] == HandshakeReason::NoReply);
  }
  SECTION("persistent keepalive") {
    PeerSettings settings;
    settings.id = kPeer;
    settings.publicKey = key(9);
    settings.persistentKeepalive = 25;
    REQUIRE(f.plane->setPeer(settings));
    f.plane->dispatch(f.events);
    CHECK_FALSE(f.socket.pending());  // the session's first keepalive counts
    f.clock.advance(25s);
    f.plane->dispatch(f.events);
    CHECK(f.peer->receive());
  }
  SECTION("an aged key, at once when it is used") {
    f.clock.advance(120s);
    test::UdpPeer inner("10.8.0.1");
    inner.send(Packet(100), *Endpoint::parse("10.8.0.2:1000"));
    CHECK(f.until([&] { return !f.events.needed.empty(); }));
    CHECK(f.events.needed[0] == HandshakeReason::KeyAging);
    REQUIRE(f.peer->receive());
  }
  SECTION("an old key, when it is only received under") {
    f.clock.advance(165s);
    f.socket.send(f.peer->seal({}), f.listening);
    CHECK(f.until([&] { return !f.events.needed.empty(); }));
    CHECK(f.events.needed[0] == HandshakeReason::KeyAging);
  }
}

TEST_CASE("a packet that goes nowhere is answered by ICMP", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  const auto refused = [&](const char* destination) {
    // A connected socket is told of ICMP errors.
    const Endpoint to = *Endpoint::parse(destination);
    sockaddr_storage address{};
    const socklen_t length = to.toSockaddr(address);
    const UniqueFd fd(::socket(to.address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    const bool v6 = to.address.isV6();
    ::setsockopt(fd.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &on,
                 sizeof(on));
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    // Answers are limited in rate, by us and by the kernel.
    for (int attempt = 0; attempt < 10; ++attempt) {
      REQUIRE(::send(fd.get(), "x", 1, 0) == 1);
      pollfd ready{fd.get(), POLLIN, 0};
      if (::poll(&ready, 1, 500) != 1) continue;
      char byte = 0;
      return ::recv(fd.get(), &byte, 1, 0) < 0 ? errno : 0;
    }
    return 0;
  };
  CHECK(refused("10.8.0.99:5") == EHOSTUNREACH);
  CHECK(refused("[fd08::99]:5") == EHOSTUNREACH);
  CHECK(f.drops(Drop::NoPeer) >= 2);
  // A peer without an endpoint is no better.
  CHECK(refused("10.8.0.2:5") == EHOSTUNREACH);
  CHECK(f.drops(Drop::NoEndpoint) >= 1);
}

TEST_CASE("the port can be changed, and on failure the old one stays", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  test::UdpPeer other;
  DeviceSettings taken;
  taken.publicKey = key(3);
  taken.listenPort = other.endpoint().port;
  const auto failed = f.plane->configure(taken);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message.find(std::to_string(taken.listenPort)) != std::string::npos);
  f.socket.send(f.peer->seal({}), f.listening);
  CHECK(f.until([&] { return f.stats().rxPackets == 1; }));

  const Endpoint before = f.listening;
  f.configure(41414);
  CHECK(f.listening.port == 41414);
  f.socket.send(f.peer->seal({}), f.listening);
  CHECK(f.until([&] { return f.stats().rxPackets == 2; }));
  // The former port is free again.
  dataplane::user::SocketSettings probe;
  probe.port = before.port;
  CHECK(dataplane::user::UdpSockets::open(probe));

  SECTION("the same port on another address") {
    DeviceSettings settings;
    settings.publicKey = key(3);
    settings.listenPort = 41414;
    settings.bindAddress = *IpAddress::parse("127.0.0.3");
    REQUIRE(f.plane->configure(settings));
    Endpoint there = f.listening;
    there.address = settings.bindAddress;
    f.socket.send(f.peer->seal({}), there);
    CHECK(f.until([&] { return f.stats().rxPackets == 3; }));
    settings.bindAddress = *IpAddress::parse("192.0.2.1");
    REQUIRE_FALSE(f.plane->configure(settings));
    f.socket.send(f.peer->seal({}), there);
    CHECK(f.until([&] { return f.stats().rxPackets == 4; }));
  }
}

TEST_CASE("a firewall mark is set on the sockets", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  Plane f;
  f.connect();
  // Marked datagrams are led nowhere.
  test::run("ip route add 192.0.2.0/24 dev adit0");
  test::run("ip rule add fwmark 0x51 blackhole");
  const Endpoint there = *Endpoint::parse("192.0.2.1:5");
  CHECK(f.plane->sendHandshake(Packet(148), there, std::nullopt));
  DeviceSettings settings;
  settings.publicKey = key(3);
  settings.firewallMark = 0x51;
  REQUIRE(f.plane->configure(settings));
  CHECK_FALSE(f.plane->sendHandshake(Packet(148), there, std::nullopt));
  settings.firewallMark = 0;
  REQUIRE(f.plane->configure(settings));
  CHECK(f.plane->sendHandshake(Packet(148), there, std::nullopt));
}

TEST_CASE("the interface outlives the data plane and is found again", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  const test::Namespace space;
  const test::Namespace::Visit visit(space);
  dataplane::user::UserOptions options;
  options.interface = "adit0";
  options.mtu = 1300;
  {
    auto plane = dataplane::user::createUserDataPlane(options);
    REQUIRE(plane);
    test::run("ip address add 10.8.0.1/24 dev adit0");
    auto second = dataplane::user::createUserDataPlane(options);
    REQUIRE_FALSE(second);
    CHECK(second.error().message.find("adit0") != std::string::npos);
  }
  test::run("ip address show dev adit0 | grep -q 10.8.0.1/24");
  test::run("ip link show dev adit0 | grep -q 'mtu 1300'");
  auto again = dataplane::user::createUserDataPlane(options);
  REQUIRE(again);
  test::run("ip address show dev adit0 | grep -q 10.8.0.1/24");
  (*again)->destroyInterface();
  test::run("! ip link show dev adit0 2>/dev/null");
}

TEST_CASE("an interface of another kind is an error that names it", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  const test::Namespace space;
  const test::Namespace::Visit visit(space);
  test::run("ip link add adit0 type veth peer name other");
  dataplane::user::UserOptions options;
  options.interface = "adit0";
  auto plane = dataplane::user::createUserDataPlane(options);
  REQUIRE_FALSE(plane);
  CHECK(plane.error().message.find("adit0") != std::string::npos);
  options.interface = "a-name-too-long0";
  CHECK_FALSE(dataplane::user::createUserDataPlane(options));
}

TEST_CASE("a machine without IPv6 gets a device with IPv4", "[root][plane]") {
  if (!test::canMakeNamespaces()) return;
  const test::Namespace space;
  const test::Namespace::Visit visit(space);
  test::run("sysctl -q -w net.ipv6.conf.all.disable_ipv6=1");
  dataplane::user::UserOptions options;
  options.interface = "adit0";
  auto plane = dataplane::user::createUserDataPlane(options);
  REQUIRE(plane);
  CHECK((*plane)->configure({}));
  CHECK((*plane)->deviceStats().listenPort != 0);
  (*plane)->destroyInterface();
}
