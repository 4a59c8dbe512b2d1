// The rules of docs/protocol.md that implementations get wrong, one test each.
#include "noise/sessions.hpp"

#include <endian.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "noise/cookie.hpp"
#include "simulator.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;
using crypto::Suite;

namespace {

/// A hands `datagram` to B as if it came from A's address.
void inject(Side& to, const Datagram& datagram) {
  to.sessions->handshake(datagram, to.other->endpoint, to.local, to.backlog);
}

/// One packet each way over a fresh session that A began.
void bringUp(World& world) {
  world.a.plane->sendApp();
  world.runFor(1s);
  world.b.plane->sendApp();
  world.runFor(1s);
  REQUIRE(world.a.plane->delivered == 1);
  REQUIRE(world.b.plane->delivered == 1);
}

/// After a change by the test, so that what was changed is judged and not mac1.
void fixMac1(Datagram& datagram, const crypto::PublicKey& receiver) {
  CookieMaker(receiver, {}).addMacs(datagram, 0s);
}

/// Both ends are fastest with suite 0, so that no second handshake follows for another.
struct Simulated : World {
  Simulated() {
    for (Side* side : {&a, &b}) {
      side->speeds = {1000, 100, 100};
      side->restart();
    }
  }
  ~Simulated() {
    for (const auto& what : violations) {
      UNSCOPED_INFO(what);
    }
    CHECK(violations.empty());
  }
};

}  // namespace

TEST_CASE_METHOD(Simulated, "a session comes up in one round trip and carries both directions") {
  bringUp(*this);
  CHECK(a.initiations.size() == 1);
  CHECK(b.responses.size() == 1);
  CHECK(a.state().role == Role::Initiator);
  CHECK(b.state().role == Role::Responder);
  CHECK(a.state().lastHandshake == 1000s + 20ms);
  CHECK(b.state().lastHandshake == 1000s + 30ms);
  CHECK(a.state().lastHandshakeRealTime == FakeClock().real + 20ms);
  CHECK_FALSE(a.state().handshakeUnderWay);
  const auto limits = a.plane->installed.front().limits;
  CHECK(limits.rekeyAfter == 120s);
  CHECK(limits.rejectAfter == 180s);
}

TEST_CASE_METHOD(Simulated, "a preshared key on both sides works, on one side it is noticed") {
  a.policy.presharedKey.bytes()[5] = 1;
  REQUIRE(a.sessions->setPeer(a.policy));
  a.plane->sendApp();
  runFor(1s);
  CHECK(a.plane->installed.empty());
  CHECK(a.state().drops[static_cast<std::size_t>(HandshakeDrop::BadResponse)] == 1);

  b.policy.presharedKey = a.policy.presharedKey;
  REQUIRE(b.sessions->setPeer(b.policy));
  runFor(6s);
  CHECK(b.plane->delivered == 1);
}

TEST_CASE_METHOD(Simulated,
                 "the responder may not send under a new key before a packet under it arrived") {
  onPacket = [this](Side& from, Packet&) { return &from != &a; };
  onHandshake = [this](Side& from, Datagram& datagram) {
    return &from == &a || datagram[0] != ADIT_MESSAGE_INITIATION;
  };
  a.plane->sendApp();
  b.plane->staged = 3;
  runFor(4s);
  REQUIRE(b.plane->installed.size() == 1);
  CHECK(b.plane->installed.front().slot == KeySlot::Next);
  CHECK(a.plane->installed.front().slot == KeySlot::Current);
  CHECK(a.plane->delivered == 0);
  CHECK(b.completed.empty());
  CHECK(b.controls.empty());
  CHECK_FALSE(b.state().lastHandshake);

  onPacket = nullptr;
  a.plane->sendApp();
  runFor(1s);
  CHECK(a.plane->delivered == 3);
  CHECK(b.completed.size() == 1);
}

TEST_CASE_METHOD(Simulated, "the keys are installed before the response is sent") {
  // Checked in Side::sendReply: a response whose index the data plane does not know is a violation.
  bringUp(*this);
  CHECK(b.responses.size() == 1);
}

TEST_CASE_METHOD(Simulated, "simultaneous initiation ends with one session that both use") {
  for (int i = 0; i < 3; ++i) {
    a.sessions->startHandshake(Side::kPeer);
    b.sessions->startHandshake(Side::kPeer);
    runFor(1s);
    // Without waiting for a timer.
    CHECK(a.state().handshakesCompleted == static_cast<unsigned>(i + 1));
    CHECK(b.state().handshakesCompleted == static_cast<unsigned>(i + 1));
    CHECK(a.state().role != b.state().role);
    CHECK_FALSE(a.state().handshakeUnderWay);
    CHECK_FALSE(b.state().handshakeUnderWay);
    runFor(20s);
  }
  CHECK(a.initiations.size() == 3);
  CHECK(b.initiations.size() == 3);
}

TEST_CASE_METHOD(Simulated, "simultaneous initiation with lost responses is healed by the timer") {
  onHandshake = [this](Side&, Datagram& datagram) {
    return now > 1004s || datagram[0] != ADIT_MESSAGE_RESPONSE;
  };
  a.sessions->startHandshake(Side::kPeer);
  b.sessions->startHandshake(Side::kPeer);
  runFor(7s);
  CHECK(a.state().handshakesCompleted >= 1);
  CHECK(b.state().handshakesCompleted >= 1);
}

TEST_CASE_METHOD(Simulated, "a lost response: the initiator asks again after 5 s and a jitter") {
  int lost = 0;
  onHandshake = [&](Side&, Datagram& datagram) {
    return datagram[0] != ADIT_MESSAGE_RESPONSE || ++lost > 3;
  };
  a.plane->sendApp();
  runFor(30s);
  REQUIRE(a.initiationTimes.size() == 4);
  std::set<std::int64_t> jitters;
  for (std::size_t i = 1; i < 4; ++i) {
    const auto jitter = a.initiationTimes[i] - a.initiationTimes[i - 1] - 5s;
    CHECK(jitter >= 0ms);
    CHECK(jitter <= 333ms);
    jitters.insert(jitter.count());
  }
  CHECK(jitters.size() == 3);
  CHECK(b.plane->delivered == 1);
}

TEST_CASE_METHOD(Simulated, "a handshake is given up after 90 s and forgets what was staged") {
  loss = 1;
  a.plane->sendApp();
  runFor(89s);
  CHECK(a.givenUp == 0);
  CHECK(a.state().handshakeUnderWay);
  CHECK(a.state().attempts == a.initiations.size());
  runFor(7s);
  CHECK(a.givenUp == 1);
  CHECK(a.stagedDropped == 1);
  CHECK(a.plane->staged == 0);
  const auto sent = a.initiations.size();
  CHECK(sent >= 17);
  CHECK(sent <= 18);
  runFor(300s);
  CHECK(a.initiations.size() == sent);
  a.plane->sendApp();
  CHECK(a.initiations.size() == sent + 1);
}

TEST_CASE_METHOD(Simulated, "never two initiations to a peer within 5 s, whoever asks") {
  for (int i = 0; i < 200; ++i) {
    at(now + i * 100ms, [this, i] {
      a.sessions->startHandshake(Side::kPeer);
      a.sessions->needHandshake(Side::kPeer);
      if (i % 50 == 49) a.sessions->dropAllSessions();
    });
  }
  runFor(30s);
  CHECK(a.initiations.size() >= 4);  // Side::sendInitiation checks the distances.
}

TEST_CASE_METHOD(Simulated, "a wish for a handshake that a new session has overtaken is ignored") {
  bringUp(*this);
  a.sessions->needHandshake(Side::kPeer);
  b.sessions->needHandshake(Side::kPeer);
  runFor(20s);
  CHECK(a.initiations.size() == 1);
  CHECK(b.initiations.empty());
  a.sessions->needHandshake(Side::kPeer);
  CHECK(a.initiations.size() == 2);
}

TEST_CASE_METHOD(Simulated, "a replayed initiation is dropped and counted") {
  bringUp(*this);
  inject(b, a.initiations.front());
  CHECK(b.drops(HandshakeDrop::Replayed) == 1);
  CHECK(b.state().drops[static_cast<std::size_t>(HandshakeDrop::Replayed)] == 1);
  CHECK(b.responses.size() == 1);
  CHECK(b.plane->installed.size() == 1);
  // A replay is not a clock that went back.
  CHECK_FALSE(b.state().clockBehind);
}

TEST_CASE_METHOD(Simulated, "an old initiation cannot be replayed into a fresh daemon") {
  bringUp(*this);
  runFor(200s);
  a.sessions->startHandshake(Side::kPeer);
  runFor(1s);
  REQUIRE(a.initiations.size() >= 2);
  b.restart();
  for (const auto& old : a.initiations) {
    inject(b, old);
  }
  CHECK(b.plane->installed.empty());
  CHECK(b.drops(HandshakeDrop::Replayed) == a.initiations.size());

  // What the restored timestamp is for: without it the replay would be answered.
  b.policy.greatestTimestamp.reset();
  b.restart();
  inject(b, a.initiations.back());
  CHECK(b.plane->installed.size() == 1);
}

TEST_CASE_METHOD(Simulated, "case 28: a reboot with an old clock still handshakes") {
  bringUp(*this);
  runFor(200s);
  a.clock.real -= std::chrono::hours(24 * 120);
  a.restart();
  a.plane->sendApp();
  runFor(1s);
  CHECK(b.plane->delivered == 2);
  CHECK(b.drops(HandshakeDrop::Replayed) == 0);
}

TEST_CASE_METHOD(Simulated, "case 28: a peer whose clock went back is shown, and can be reset") {
  bringUp(*this);
  runFor(200s);
  a.clock.real -= std::chrono::hours(24 * 120);
  a.store.mark.reset();
  a.restart();
  a.plane->sendApp();
  runFor(8s);
  CHECK(b.drops(HandshakeDrop::Replayed) == 2);
  REQUIRE(b.state().clockBehind);
  CHECK(*b.state().clockBehind > std::chrono::hours(24 * 119));
  CHECK(*b.state().clockBehind < std::chrono::hours(24 * 121));

  b.sessions->resetTimestamp(Side::kPeer);
  b.policy.greatestTimestamp.reset();
  CHECK_FALSE(b.state().clockBehind);
  runFor(6s);
  CHECK(b.plane->delivered == 2);
  CHECK_FALSE(b.state().clockBehind);
}

TEST_CASE_METHOD(Simulated,
                 "own timestamps that cannot be stored: nothing is sent, then it heals") {
  a.store.broken = true;
  a.plane->sendApp();
  runFor(8s);
  CHECK(a.initiations.empty());
  CHECK(a.failed == 2);
  a.store.broken = false;
  runFor(6s);
  CHECK(b.plane->delivered == 1);
}

TEST_CASE_METHOD(Simulated, "of a peer's initiations at most 50 per second are accepted") {
  std::vector<Datagram> fresh;
  FakeClock clock;
  SeededRandom random(99);
  const Identity us(a.key);
  const Remote them{b.key.publicKey(), *crypto::x25519(a.key.secret(), b.key.publicKey()), {}};
  Tai64n timestamp = Tai64n::fromUnix(clock.real);
  for (std::uint32_t i = 0; i < 500; ++i) {
    timestamp = timestamp.next();
    adit_message_initiation message;
    REQUIRE(createInitiation(us, them, Suite::ChaCha20Poly1305, i, timestamp, random, message));
    Datagram datagram(sizeof message);
    std::memcpy(datagram.data(), &message, sizeof message);
    fixMac1(datagram, b.key.publicKey());
    at(now + i * 2ms, [this, datagram] { inject(b, datagram); });
  }
  runFor(1s);
  CHECK(b.responses.size() == 50);
  CHECK(b.drops(HandshakeDrop::TooFrequent) == 450);
}

TEST_CASE_METHOD(Simulated, "low-order public keys: nothing is sent") {
  PeerId id = 100;
  for (const auto point : kLowOrderPoints) {
    PeerPolicy weak;
    weak.id = ++id;
    weak.publicKey = publicKeyFromHex(point);
    REQUIRE(a.sessions->setPeer(weak));
    CHECK(a.sessions->state(id)->keyUnusable);
    a.sessions->startHandshake(id);
    a.sessions->needHandshake(id);
  }
  runFor(10s);
  CHECK(a.initiations.empty());

  // As the ephemeral key of an initiation to us.
  a.sessions->startHandshake(Side::kPeer);
  for (const auto point : kLowOrderPoints) {
    auto datagram = a.initiations.front();
    std::ranges::copy(fromHex(point),
                      datagram.begin() + offsetof(adit_message_initiation, unencrypted_ephemeral));
    fixMac1(datagram, b.key.publicKey());
    inject(b, datagram);
  }
  CHECK(b.drops(HandshakeDrop::Authentication) == kLowOrderPoints.size());
  CHECK(b.responses.empty());
}

TEST_CASE_METHOD(Simulated, "a peer with our own key is unusable, not a loop") {
  PeerPolicy self;
  self.id = 9;
  self.publicKey = a.key.publicKey();
  REQUIRE(a.sessions->setPeer(self));
  CHECK(a.sessions->state(9)->keyUnusable);
  a.sessions->startHandshake(9);
  CHECK(a.initiations.empty());
}

TEST_CASE_METHOD(Simulated, "every datagram twice: the second response is dropped and counted") {
  duplicate = 1;
  bringUp(*this);
  traffic(a, 500ms, 400s);
  traffic(b, 700ms, 400s);
  runFor(400s);
  CHECK(a.state().handshakesCompleted == a.plane->installed.size());
  CHECK(a.drops(HandshakeDrop::DuplicateResponse) == a.state().handshakesCompleted);
  CHECK(b.drops(HandshakeDrop::Replayed) == b.responses.size());
  CHECK(a.plane->delivered == b.plane->appSent);
  CHECK(b.plane->delivered == a.plane->appSent);
  CHECK(a.plane->replayDropped > 0);
}

TEST_CASE_METHOD(Simulated, "case 14: a private key is clamped on load, and no drift is seen") {
  bringUp(*this);
  std::array<std::uint8_t, 32> unclamped{};
  std::ranges::copy(a.key.secret().bytes(), unclamped.begin());
  unclamped[0] |= 7;
  unclamped[31] |= 0x80;
  a.sessions->setIdentity(crypto::PrivateKey(unclamped));
  CHECK(a.keysDropped == 0);
  CHECK(a.state().suite);
  runFor(200s);
  CHECK(a.keysDropped == 0);
}

TEST_CASE_METHOD(Simulated, "another private key ends sessions and handshakes") {
  bringUp(*this);
  a.sessions->setIdentity(countingKey(77));
  CHECK(a.keysDropped == 1);
  CHECK_FALSE(a.state().suite);
  a.sessions->setIdentity(std::nullopt);
  a.sessions->startHandshake(Side::kPeer);
  CHECK(a.initiations.size() == 1);
  inject(a, a.initiations.front());
  CHECK(a.drops(HandshakeDrop::NoIdentity) == 1);
  a.sessions->setIdentity(a.key);
  a.plane->sendApp();
  runFor(10s);
  CHECK(b.plane->delivered == 2);
}

TEST_CASE_METHOD(Simulated,
                 "a refused install leads to a new handshake, never to a second install") {
  SECTION("at the initiator") {
    a.plane->refuse = true;
  }
  SECTION("at the responder") {
    b.plane->refuse = true;
  }
  a.plane->sendApp();
  runFor(1s);
  CHECK(a.drops(HandshakeDrop::InstallRefused) + b.drops(HandshakeDrop::InstallRefused) == 1);
  CHECK(b.plane->delivered == 0);
  runFor(6s);
  CHECK(a.initiations.size() == 2);
  CHECK(b.plane->delivered == 1);
}

TEST_CASE_METHOD(Simulated, "a refused install is not answered") {
  b.plane->refuse = true;
  a.plane->sendApp();
  runFor(1s);
  CHECK(b.responses.empty());
}

TEST_CASE_METHOD(Simulated, "local indices are random and unique, those under way included") {
  bringUp(*this);
  for (int i = 0; i < 40; ++i) {
    a.sessions->startHandshake(Side::kPeer);
    b.sessions->startHandshake(Side::kPeer);
    runFor(6s);
  }
  std::set<std::uint32_t> indices;
  for (const auto& keys : a.plane->installed) {
    indices.insert(keys.localIndex);
    CHECK(keys.localIndex > 0xffff);
  }
  CHECK(indices.size() == a.plane->installed.size());
}

TEST_CASE("an index in use is not given out again, even by a bad random source") {
  class Stuck final : public crypto::RandomSource {
   public:
    void fill(std::span<std::uint8_t> out) override {
      // Slower than one handshake uses it: without a check two would get the same index.
      const auto value = static_cast<std::uint8_t>(++calls_ / 7);
      std::ranges::fill(out, value);
    }
    unsigned calls_ = 0;
  };
  World world;
  Stuck stuck;
  Sessions sessions(world.a.clock, stuck, *world.a.timestamps, world.a);
  sessions.setIdentity(world.a.key);
  std::set<std::uint32_t> indices;
  for (std::uint8_t i = 0; i < 20; ++i) {
    PeerPolicy policy;
    policy.id = i;
    policy.publicKey = countingKey(static_cast<std::uint8_t>(100 + i)).publicKey();
    REQUIRE(sessions.setPeer(policy));
    world.a.lastInitiation.reset();
    sessions.startHandshake(i);
    adit_message_initiation message;
    std::memcpy(&message, world.a.initiations.back().data(), sizeof message);
    indices.insert(message.sender_index);
  }
  CHECK(indices.size() == 20);
}

TEST_CASE_METHOD(Simulated, "malformed datagrams of every kind are dropped and counted") {
  bringUp(*this);
  std::uint64_t expected = 0;
  const auto refuse = [&](const Datagram& datagram) {
    inject(b, datagram);
    CHECK(b.drops(HandshakeDrop::Malformed) == ++expected);
  };
  const auto good = a.initiations.front();
  for (std::size_t length = 0; length < good.size(); ++length) {
    refuse(Datagram(good.begin(), good.begin() + static_cast<long>(length)));
  }
  auto longer = good;
  longer.push_back(0);
  refuse(longer);
  for (const std::size_t at : {2U, 3U}) {
    auto reserved = good;
    reserved[at] = 1;
    refuse(reserved);
  }
  auto suite = good;
  suite[1] = 3;
  refuse(suite);
  auto type = good;
  for (const int other : {0, 2, 3, 4, 5, 255}) {
    type[0] = static_cast<std::uint8_t>(other);
    refuse(type);
  }
  Datagram cookie(64, 0);
  cookie[0] = ADIT_MESSAGE_COOKIE;
  cookie[1] = 1;
  refuse(cookie);
}

TEST_CASE_METHOD(Simulated, "a datagram for another key is dropped before any key agreement") {
  auto datagram = [&] {
    a.sessions->startHandshake(Side::kPeer);
    return a.initiations.front();
  }();
  datagram[116] ^= 1;
  inject(b, datagram);
  CHECK(b.drops(HandshakeDrop::BadMac1) == 1);
}

TEST_CASE_METHOD(Simulated, "an unknown peer is counted and gets no answer") {
  b.sessions->removePeer(Side::kPeer);
  a.plane->sendApp();
  runFor(1s);
  CHECK(b.drops(HandshakeDrop::UnknownPeer) == 1);
  CHECK(b.responses.empty());
  CHECK_FALSE(b.sessions->state(Side::kPeer));
  b.sessions->keyConfirmed(Side::kPeer);
  b.sessions->keysExpired(Side::kPeer);
  b.sessions->needHandshake(Side::kPeer);
  b.sessions->control(Side::kPeer, {});
}

TEST_CASE_METHOD(Simulated, "who knows a peer's public key only cannot take its place") {
  // A's static key in the clear part, but no private key to prove it: the stranger's own.
  const Identity stranger(countingKey(200));
  Identity claimed = stranger;
  claimed.publicKey = a.key.publicKey();
  const Remote them{
      b.key.publicKey(), *crypto::x25519(stranger.privateKey.secret(), b.key.publicKey()), {}};
  SeededRandom seeded(4);
  adit_message_initiation message;
  REQUIRE(createInitiation(claimed, them, Suite::ChaCha20Poly1305, 1,
                           Tai64n::fromUnix(b.clock.real), seeded, message));
  Datagram datagram(sizeof message);
  std::memcpy(datagram.data(), &message, sizeof message);
  fixMac1(datagram, b.key.publicKey());
  inject(b, datagram);
  CHECK(b.state().drops[static_cast<std::size_t>(HandshakeDrop::Authentication)] == 1);
  CHECK(b.responses.empty());
  CHECK_FALSE(b.state().greatestTimestamp);
}

TEST_CASE_METHOD(Simulated,
                 "a response for nothing, or altered, is dropped and the true one works") {
  delay = 1s;
  a.plane->sendApp();
  runFor(1500ms);
  REQUIRE(b.responses.size() == 1);
  auto stray = b.responses.front();
  stray[8] ^= 1;
  fixMac1(stray, a.key.publicKey());
  inject(a, stray);
  CHECK(a.drops(HandshakeDrop::UnknownIndex) == 1);

  auto altered = b.responses.front();
  altered[50] ^= 1;
  fixMac1(altered, a.key.publicKey());
  inject(a, altered);
  CHECK(a.drops(HandshakeDrop::BadResponse) == 1);
  runFor(2s);
  CHECK(b.plane->delivered == 1);
}

TEST_CASE_METHOD(Simulated, "a response to an initiation that was superseded is dropped") {
  delay = 6s;
  a.sessions->startHandshake(Side::kPeer);
  runFor(13s);
  CHECK(a.drops(HandshakeDrop::UnknownIndex) >= 1);
  CHECK(a.plane->installed.empty());
}

TEST_CASE_METHOD(Simulated, "sessions renew themselves under traffic, by the initiator alone") {
  traffic(a, 1s, 600s);
  runFor(500ms);
  traffic(b, 1s, 599s);
  runFor(600s);
  CHECK(a.plane->delivered >= 598);
  CHECK(b.plane->delivered >= 598);
  CHECK(a.initiations.size() == 5);
  CHECK(b.initiations.empty());
}

TEST_CASE_METHOD(Simulated, "without traffic keys are forgotten, and nothing is sent") {
  bringUp(*this);
  runFor(180s);
  const auto sent = a.initiations.size() + b.initiations.size();
  CHECK_FALSE(a.state().suite);
  CHECK_FALSE(b.state().suite);
  runFor(1000s);
  CHECK(a.initiations.size() + b.initiations.size() == sent);
  CHECK_FALSE(a.sessions->nextDeadline());
}

TEST_CASE_METHOD(
    Simulated, "after three times the reject age all keys are wiped, if the data plane is silent") {
  bringUp(*this);
  runFor(60s);
  const auto last = *a.state().lastHandshake;
  a.plane->dropKeys();  // No keysExpired event follows, as if it was lost.
  b.plane->dropKeys();
  runFor(last + 540s - now - 1ms);
  CHECK(a.keysDropped == 0);
  CHECK(a.state().suite);
  runFor(1ms + 10s);
  CHECK(a.keysDropped == 1);
  CHECK_FALSE(a.state().suite);
}

TEST_CASE_METHOD(Simulated,
                 "an event of expired keys that was overtaken by a new session is ignored") {
  a.sessions->startHandshake(Side::kPeer);
  runFor(1s);
  a.sessions->keysExpired(Side::kPeer);
  CHECK(a.state().suite);
  runFor(5s);
  a.sessions->keysExpired(Side::kPeer);
  CHECK_FALSE(a.state().suite);
}

TEST_CASE_METHOD(Simulated, "suspend: all sessions end at once and come back on demand") {
  bringUp(*this);
  runFor(10s);
  a.sessions->dropAllSessions();
  CHECK(a.keysDropped == 1);
  a.plane->sendApp();
  runFor(1s);
  CHECK(b.plane->delivered == 2);
}

TEST_CASE_METHOD(Simulated, "a peer without an endpoint is tried without counting as unanswered") {
  a.hasEndpoint = false;
  a.plane->sendApp();
  runFor(40s);
  CHECK(a.initiations.size() >= 7);
  for (const auto& datagram : a.initiations) {
    CHECK(datagram[1] == 0);
  }
  a.hasEndpoint = true;
  runFor(6s);
  CHECK(b.plane->delivered == 1);
}

TEST_CASE_METHOD(Simulated, "setPeer keeps what is running and refuses contradictions") {
  bringUp(*this);
  auto policy = a.policy;
  policy.greatestTimestamp.reset();
  policy.rememberedSuite.reset();
  REQUIRE(a.sessions->setPeer(policy));
  CHECK(a.keysDropped == 0);
  CHECK(a.state().suite);
  policy.publicKey = countingKey(99).publicKey();
  CHECK_FALSE(a.sessions->setPeer(policy));
  policy = a.policy;
  policy.id = 8;
  CHECK_FALSE(a.sessions->setPeer(policy));
  a.sessions->removePeer(Side::kPeer);
  CHECK(a.sessions->setPeer(policy));
}

TEST_CASE("the name of every drop is its own") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kHandshakeDropCount; ++i) {
    names.insert(handshakeDropName(static_cast<HandshakeDrop>(i)));
  }
  CHECK(names.size() == kHandshakeDropCount);
  CHECK_FALSE(names.contains("unknown"));
}
