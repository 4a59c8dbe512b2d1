#include "simulator.hpp"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace adit::noise::test {
namespace {

KeyBytes copyOf(const Secret<32>& key) {
  KeyBytes bytes{};
  std::ranges::copy(key.bytes(), bytes.begin());
  return bytes;
}

Endpoint endpointOf(std::string_view address, std::uint16_t port) {
  return {*IpAddress::parse(address), port, 0};
}

}  // namespace

Result<void> FakePlane::install(const SessionKeys& keys) {
  if (std::exchange(refuse, false)) return fail("refused by the test");
  if (hasIndex(keys.localIndex)) side_.world.violation(side_.name + ": index in use");
  installed.push_back(keys);
  Key fresh{keys, side_.world.now, 0, {}};
  if (keys.slot == KeySlot::Next) {
    next_ = std::move(fresh);
    return {};
  }
  previous_ = std::exchange(next_ ? next_ : current_, std::nullopt);
  current_ = std::move(fresh);
  if (staged == 0) transmit(Packet::Kind::Keepalive, {});
  flush();
  return {};
}

void FakePlane::dropKeys() {
  current_.reset();
  previous_.reset();
  next_.reset();
}

bool FakePlane::usable(const std::optional<Key>& key) const {
  return key && side_.world.now - key->created < key->keys.limits.rejectAfter &&
         key->counter < key->keys.limits.rejectAfterMessages;
}

bool FakePlane::hasIndex(std::uint32_t index) const {
  return std::ranges::any_of(std::array{&current_, &previous_, &next_}, [index](const auto* key) {
    return *key && (*key)->keys.localIndex == index;
  });
}

std::optional<crypto::Suite> FakePlane::currentSuite() const {
  if (!usable(current_)) return std::nullopt;
  return current_->keys.suite;
}

void FakePlane::transmit(Packet::Kind kind, std::span<const std::uint8_t> payload) {
  if (!usable(current_)) return;
  Key& key = *current_;
  keepaliveAt_.reset();
  side_.world.send(side_, Packet{key.keys.remoteIndex,
                                 key.counter++,
                                 key.keys.suite,
                                 copyOf(key.keys.send),
                                 kind,
                                 {payload.begin(), payload.end()}});
  if (kind != Packet::Kind::Keepalive && !replyDue_) replyDue_ = side_.world.now + 15s;
}

void FakePlane::sendApp() {
  ++appSent;
  staged = std::min(staged + 1, 128U);
  if (usable(current_)) {
    flush();
    return;
  }
  need();
}

void FakePlane::flush() {
  for (; staged > 0 && usable(current_); --staged) {
    transmit(Packet::Kind::App, {});
  }
  askForKeyIfAging();
}

/// Only the initiator renews a key by its age.
void FakePlane::askForKeyIfAging() {
  if (!current_) return;
  const auto& keys = current_->keys;
  const bool aged = keys.slot == KeySlot::Current &&
                    side_.world.now - current_->created >= keys.limits.rekeyAfter;
  if (aged || current_->counter >= keys.limits.rekeyAfterMessages) need();
}

void FakePlane::sendControl(std::span<const std::uint8_t> message) {
  transmit(Packet::Kind::Control, message);
}

void FakePlane::need() {
  if (lastNeed_ && side_.world.now - *lastNeed_ < 5s) return;
  lastNeed_ = side_.world.now;
  side_.sessions->needHandshake(Side::kPeer);
}

void FakePlane::receive(const Packet& packet) {
  Key* key = nullptr;
  for (auto* slot : {&current_, &previous_, &next_}) {
    if (usable(*slot) && (*slot)->keys.localIndex == packet.receiverIndex) key = &**slot;
  }
  if (key == nullptr || copyOf(key->keys.receive) != packet.key) {
    ++unknownDropped;
    return;
  }
  if (key->keys.suite != packet.suite) side_.world.violation(side_.name + ": suites differ");
  if (!key->seen.insert(packet.counter).second) {
    ++replayDropped;
    return;
  }
  replyDue_.reset();
  if (next_ && key == &*next_) {
    previous_ = std::move(current_);
    current_ = std::exchange(next_, std::nullopt);
    if (confirmDelay == 0ns) {
      side_.sessions->keyConfirmed(Side::kPeer);
    } else {
      Side& side = side_;
      side.world.at(side.world.now + confirmDelay,
                    [&side] { side.sessions->keyConfirmed(Side::kPeer); });
    }
    flush();
  }
  if (packet.kind == Packet::Kind::Control) {
    side_.sessions->control(Side::kPeer, packet.payload);
  } else if (packet.kind == Packet::Kind::App) {
    ++delivered;
    if (!keepaliveAt_) keepaliveAt_ = side_.world.now + 10s;
  }
}

void FakePlane::tick() {
  const bool had = current_ || previous_ || next_;
  for (auto* slot : {&current_, &previous_, &next_}) {
    if (*slot && !usable(*slot)) slot->reset();
  }
  if (had && !current_ && !previous_ && !next_) side_.sessions->keysExpired(Side::kPeer);
  if (staged > 0 && !usable(current_)) need();
  if (keepaliveAt_ && *keepaliveAt_ <= side_.world.now) {
    keepaliveAt_.reset();
    transmit(Packet::Kind::Keepalive, {});
  }
  if (replyDue_ && *replyDue_ <= side_.world.now) {
    replyDue_.reset();
    need();
  }
}

Side::Side(World& theWorld, std::string theName, crypto::PrivateKey theKey, Endpoint theEndpoint,
           std::uint64_t seed)
    : world(theWorld),
      name(std::move(theName)),
      key(std::move(theKey)),
      endpoint(theEndpoint),
      local{theEndpoint.address, 2},
      random(seed) {}

void Side::connect(Side& theOther) {
  other = &theOther;
  policy.id = kPeer;
  policy.publicKey = theOther.key.publicKey();
  restart();
}

void Side::restart() {
  plane = std::make_unique<FakePlane>(*this);
  startDaemon();
}

bool Side::restartDaemon() {
  const PeerState before = state();
  startDaemon();
  return sessions->restoreSession(kPeer,
                                  {*before.suite, *before.role, before.lastHandshake.value()});
}

void Side::startDaemon() {
  timestamps = std::make_unique<TimestampSource>(clock, store, store.mark);
  lastInitiation.reset();
  sessions = std::make_unique<Sessions>(clock, random, *timestamps, *this, world.timing);
  sessions->setSuiteSpeeds(speeds);
  sessions->setIdentity(key);
  if (!sessions->setPeer(policy)) world.violation(name + ": setPeer failed");
}

Result<void> Side::installKeys(PeerId peer, const crypto::PublicKey& peerKey,
                               const SessionKeys& keys) {
  if (peer != kPeer || peerKey != policy.publicKey) world.violation(name + ": wrong peer");
  if (keys.send == keys.receive) world.violation(name + ": one key for both directions");
  for (const auto& half : {copyOf(keys.send), copyOf(keys.receive)}) {
    if (!keysEver.insert(half).second) world.violation(name + ": key installed twice");
  }
  return plane->install(keys);
}

Result<void> Side::sendInitiation(PeerId, std::span<const std::uint8_t> datagram) {
  if (lastInitiation && world.now - *lastInitiation < world.timing.rekeyTimeout) {
    world.violation(name + ": initiations too close");
  }
  initiations.emplace_back(datagram.begin(), datagram.end());
  initiationTimes.push_back(world.now);
  lastInitiation = world.now;
  if (!hasEndpoint) return fail("no endpoint");
  world.send(*this, initiations.back());
  return {};
}

void Side::sendReply(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                     const LocalAddress& from) {
  if (destination != other->endpoint) world.violation(name + ": reply to a wrong address");
  if (from != local) world.violation(name + ": reply from a wrong address");
  Datagram bytes(datagram.begin(), datagram.end());
  if (bytes[0] == ADIT_MESSAGE_RESPONSE) {
    std::uint32_t index = 0;
    std::memcpy(&index, bytes.data() + offsetof(adit_message_response, sender_index), sizeof index);
    if (!plane->hasIndex(le32toh(index))) world.violation(name + ": answered before installing");
    responses.push_back(bytes);
  } else {
    cookieReplies.push_back(bytes);
  }
  world.send(*this, std::move(bytes));
}

void Side::sendControl(PeerId, std::span<const std::uint8_t> message) {
  controls.emplace_back(message.begin(), message.end());
  plane->sendControl(message);
}

void Side::dropStaged(PeerId) {
  ++stagedDropped;
  plane->dropStaged();
}

void Side::dropKeys(PeerId) {
  ++keysDropped;
  plane->dropKeys();
}

void Side::peerTimestampAccepted(PeerId, const Tai64n& timestamp) {
  if (policy.greatestTimestamp && timestamp <= *policy.greatestTimestamp) {
    world.violation(name + ": timestamp went back");
  }
  policy.greatestTimestamp = timestamp;
}

void Side::suiteChosen(PeerId, crypto::Suite suite) {
  policy.rememberedSuite = suite;
  ++suitesChosen;
}

void Side::handshakeCompleted(PeerId, Role role, crypto::Suite suite) {
  completed.push_back({role, suite});
}

void Side::handshakeGivenUp(PeerId) {
  ++givenUp;
}

void Side::initiationFailed(PeerId, const Error&) {
  ++failed;
}

World::World(std::uint64_t seed, const Timing& theTiming)
    : timing(theTiming),
      rng(seed),
      a(*this, "A", countingKey(1), endpointOf("192.0.2.1", 1001), seed * 2 + 1),
      b(*this, "B", countingKey(33), endpointOf("192.0.2.2", 1002), seed * 2 + 2) {
  a.connect(b);
  b.connect(a);
  at(now, [this] { tick(); });
}

void World::at(BootTime time, std::function<void()> action) {
  events_.push({time, order_++, std::move(action)});
}

void World::tick() {
  a.plane->tick();
  b.plane->tick();
  at(now + 1s, [this] { tick(); });
}

bool World::chance(double probability) {
  return std::uniform_real_distribution<>(0, 1)(rng) < probability;
}

void World::send(Side& from, std::variant<Datagram, Packet> datagram) {
  if (auto* bytes = std::get_if<Datagram>(&datagram)) {
    if (onHandshake && !onHandshake(from, *bytes)) return;
  } else if (onPacket && !onPacket(from, std::get<Packet>(datagram))) {
    return;
  }
  const int copies = chance(duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (chance(loss)) continue;
    const std::chrono::nanoseconds extra(
        std::uniform_int_distribution<std::int64_t>(0, delayJitter.count())(rng));
    at(now + delay + extra, [this, &from, datagram] {
      Side& to = *from.other;
      if (const auto* bytes = std::get_if<Datagram>(&datagram)) {
        to.sessions->handshake(*bytes, from.endpoint, to.local, to.backlog);
      } else {
        to.plane->receive(std::get<Packet>(datagram));
      }
    });
  }
}

void World::traffic(Side& side, std::chrono::nanoseconds interval,
                    std::chrono::nanoseconds duration) {
  for (std::chrono::nanoseconds t{}; t < duration; t += interval) {
    at(now + t, [&side] { side.plane->sendApp(); });
  }
}

void World::moveTo(BootTime time) {
  if (time <= now) return;
  a.clock.advance(time - now);
  b.clock.advance(time - now);
  now = time;
}

std::optional<BootTime> World::nextTime() const {
  std::optional<BootTime> next;
  for (const auto& time : {a.sessions->nextDeadline(), b.sessions->nextDeadline(),
                           events_.empty() ? std::nullopt : std::optional(events_.top().time)}) {
    if (time && (!next || *time < *next)) next = time;
  }
  return next;
}

void World::runFor(std::chrono::nanoseconds duration) {
  const BootTime end = now + duration;
  unsigned stuck = 0;
  for (auto next = nextTime(); next && *next <= end; next = nextTime()) {
    stuck = *next <= now ? stuck + 1 : 0;
    if (stuck > 100000) {
      violation("time stands still");
      return;
    }
    moveTo(*next);
    for (Side* side : {&a, &b}) {
      const auto deadline = side->sessions->nextDeadline();
      if (deadline && *deadline <= now) side->sessions->runTimers();
    }
    if (!events_.empty() && events_.top().time <= now) {
      const auto action = events_.top().action;
      events_.pop();
      action();
    }
  }
  moveTo(end);
}

}  // namespace adit::noise::test
