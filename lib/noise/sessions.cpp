#include "noise/sessions.hpp"

#include <algorithm>
#include <cstring>

#include "noise/sessions_peer.hpp"

namespace adit::noise {

Sessions::Sessions(const Clock& clock, crypto::RandomSource& random, TimestampSource& timestamps,
                   SessionActions& actions, const Timing& timing)
    : clock_(clock),
      random_(random),
      timestamps_(timestamps),
      actions_(actions),
      timing_(timing),
      limiter_(random),
      cookieLimiter_(random, RateLimiter::WhenFull::Allow) {}

Sessions::~Sessions() = default;

void Sessions::setIdentity(const std::optional<crypto::PrivateKey>& key) {
  std::optional<Identity> identity;
  if (key) identity.emplace(*key);
  if (identity && identity_ && identity->publicKey == identity_->publicKey) return;
  const bool replaced = identity_.has_value();
  identity_ = std::move(identity);
  checker_.reset();
  if (identity_) checker_.emplace(identity_->publicKey, random_, timing_);
  for (auto& [id, peer] : peers_) {
    if (replaced) forget(*peer);
    derive(*peer);
  }
}

void Sessions::setSuiteSpeeds(const SuiteSpeeds& speeds) {
  if (speeds == speeds_) return;
  speeds_ = speeds;
  for (auto& [id, peer] : peers_) {
    announce(*peer);
  }
}

Result<void> Sessions::setPeer(const PeerPolicy& policy) {
  const auto owner = byKey_.find(policy.publicKey);
  if (owner != byKey_.end() && owner->second != policy.id) {
    return fail("peer {} already exists", policy.publicKey.toBase64());
  }
  if (Peer* known = find(policy.id)) {
    if (known->policy.publicKey != policy.publicKey) {
      return fail("peer {} cannot change its public key", known->policy.publicKey.toBase64());
    }
    changePolicy(*known, policy);
    return {};
  }
  auto& peer = peers_[policy.id] = std::make_unique<Peer>(policy, timing_);
  byKey_[policy.publicKey] = policy.id;
  derive(*peer);
  return {};
}

void Sessions::changePolicy(Peer& peer, const PeerPolicy& policy) {
  peer.policy = policy;
  if (peer.remote) peer.remote->presharedKey = policy.presharedKey;
  peer.allowed = allowedBy(policy);
  if (!peer.allowed.contains(peer.preferred)) peer.preferred = peer.allowed.lowest();
  if (!policy.extensions) {
    peer.offer.reset();
    peer.heldControl.reset();
    peer.controlAt.reset();
  }
  const bool wrongSession = peer.current && !peer.allowed.contains(peer.current->suite);
  if (wrongSession) forget(peer);
  const bool wrongHandshake = peer.handshake && !peer.allowed.contains(peer.handshake->suite);
  if (wrongSession || wrongHandshake) {
    endHandshake(peer);
    beginHandshake(peer, false);
  }
  announce(peer);
}

void Sessions::removePeer(PeerId id) {
  Peer* const peer = find(id);
  if (peer == nullptr) return;
  endHandshake(*peer);
  releaseSessions(*peer);
  if (peer->deadline) deadlines_.erase({*peer->deadline, id});
  byKey_.erase(peer->policy.publicKey);
  peers_.erase(id);
}

void Sessions::resetTimestamp(PeerId id) {
  Peer* const peer = find(id);
  if (peer == nullptr) return;
  peer->greatestTimestamp.reset();
  peer->newestRejected.reset();
  peer->freshRejected = 0;
}

void Sessions::dropAllSessions() {
  for (auto& [id, peer] : peers_) {
    forget(*peer);
  }
}

void Sessions::startHandshake(PeerId id) {
  Peer* const peer = find(id);
  if (peer == nullptr) return;
  if (peer->attempt) {
    peer->attempt->upgrade = false;
    return;
  }
  beginHandshake(*peer, false);
}

void Sessions::needHandshake(PeerId id) {
  const Peer* const peer = find(id);
  if (peer == nullptr) return;
  const auto recent = [&](const std::optional<BootTime>& time) {
    return time && clock_.now() - *time < timing_.rekeyTimeout;
  };
  if (!peer->attempt && (recent(peer->lastInitiation) || recent(peer->lastHandshake))) return;
  startHandshake(id);
}

void Sessions::keysExpired(PeerId id) {
  Peer* const peer = find(id);
  if (peer == nullptr) return;
  // Keys that were installed while the event was on its way are not meant.
  if (peer->lastInstall && clock_.now() - *peer->lastInstall < timing_.rekeyTimeout) return;
  releaseSessions(*peer);
  schedule(*peer);
}

std::optional<BootTime> Sessions::nextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void Sessions::runTimers() {
  const BootTime now = clock_.now();
  std::vector<PeerId> due;
  for (const auto& [deadline, id] : deadlines_) {
    if (deadline > now) break;
    due.push_back(id);
  }
  for (const PeerId id : due) {
    runPeerTimers(*find(id));
  }
}

std::optional<PeerState> Sessions::state(PeerId id) const {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return std::nullopt;
  const Peer& peer = *found->second;
  PeerState state;
  state.lastHandshake = peer.lastHandshake;
  state.lastHandshakeRealTime = peer.lastHandshakeRealTime;
  if (peer.current) {
    state.suite = peer.current->suite;
    state.role = peer.current->role;
  }
  state.handshakeUnderWay = peer.attempt.has_value();
  state.attempts = peer.attempt ? peer.attempt->sent : 0;
  state.initiationsSent = peer.initiationsSent;
  state.handshakesCompleted = peer.handshakesCompleted;
  state.preferredSuite = peer.preferred;
  state.peerOffer = peer.offer;
  state.drops = peer.drops;
  state.greatestTimestamp = peer.greatestTimestamp;
  if (peer.freshRejected >= 2) {
    state.clockBehind = peer.greatestTimestamp->since(*peer.newestRejected);
  }
  state.keyUnusable = peer.keyUnusable;
  return state;
}

Sessions::Peer* Sessions::find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

/// Brings what depends on our identity up to date.
void Sessions::derive(Peer& peer) {
  peer.remote.reset();
  peer.keyUnusable = false;
  if (!identity_) return;
  const auto shared = crypto::x25519(identity_->privateKey.secret(), peer.policy.publicKey);
  if (!shared || peer.policy.publicKey == identity_->publicKey) {
    peer.keyUnusable = true;
    return;
  }
  peer.remote.emplace(Remote{peer.policy.publicKey, *shared, peer.policy.presharedKey});
}

/// Ends everything that was agreed with the peer.
void Sessions::forget(Peer& peer) {
  endHandshake(peer);
  releaseSessions(peer);
  actions_.dropKeys(peer.policy.id);
  schedule(peer);
}

void Sessions::releaseSessions(Peer& peer) {
  for (auto* session : {&peer.current, &peer.previous, &peer.next}) {
    if (*session) releaseIndex((*session)->localIndex);
    session->reset();
  }
  peer.wipeAt.reset();
  peer.controlAt.reset();
  peer.heldControl.reset();
}

/// Keeps the peer's entry in `deadlines_` at its earliest timer.
void Sessions::schedule(Peer& peer) {
  std::optional<BootTime> earliest;
  const auto consider = [&](const std::optional<BootTime>& time) {
    if (time && (!earliest || *time < *earliest)) earliest = time;
  };
  if (peer.attempt) consider(peer.attempt->nextInitiation);
  consider(peer.controlAt);
  if (peer.heldControl) consider(*peer.controlHeard + timing_.controlSpacing);
  consider(peer.wipeAt);
  if (earliest == peer.deadline) return;
  if (peer.deadline) deadlines_.erase({*peer.deadline, peer.policy.id});
  if (earliest) deadlines_.emplace(*earliest, peer.policy.id);
  peer.deadline = earliest;
}

void Sessions::runPeerTimers(Peer& peer) {
  const BootTime now = clock_.now();
  if (peer.wipeAt && *peer.wipeAt <= now) {
    releaseSessions(peer);
    actions_.dropKeys(peer.policy.id);
  }
  hearControl(peer);
  if (peer.controlAt && *peer.controlAt <= now) sendControlIfUnanswered(peer);
  if (peer.attempt && peer.attempt->nextInitiation <= now) retransmit(peer);
  schedule(peer);
}

void Sessions::beginHandshake(Peer& peer, bool upgrade) {
  if (!peer.remote) return;
  const BootTime now = clock_.now();
  BootTime first = now;
  if (peer.lastInitiation) first = std::max(first, *peer.lastInitiation + timing_.rekeyTimeout);
  peer.attempt = Peer::Attempt{now, first, upgrade};
  if (first <= now) sendInitiation(peer);
  schedule(peer);
}

/// No initiation will follow and no response is accepted.
void Sessions::endHandshake(Peer& peer) {
  peer.attempt.reset();
  clearInitiation(peer);
  schedule(peer);
}

/// A response to the last initiation will not be accepted any more.
void Sessions::clearInitiation(Peer& peer) {
  peer.handshake.reset();
  peer.awaitsResponse = false;
  releaseIndex(peer.handshakeIndex);
}

/// The time for an answer is over: count it, and send the next initiation or give up.
void Sessions::retransmit(Peer& peer) {
  if (peer.awaitsResponse) noteUnanswered(peer);
  if (!peer.attempt) return;
  if (clock_.now() - peer.attempt->started < timing_.rekeyAttempt) {
    sendInitiation(peer);
    return;
  }
  const bool upgrade = peer.attempt->upgrade;
  endHandshake(peer);
  if (upgrade) return;
  actions_.dropStaged(peer.policy.id);
  actions_.handshakeGivenUp(peer.policy.id);
}

void Sessions::noteUnanswered(Peer& peer) {
  peer.awaitsResponse = false;
  ++peer.unanswered;
  if (peer.unanswered < kUnansweredLimit) return;
  if (peer.attempt->upgrade) {
    // The session works, so it is the other suite that does not get through: leave it alone.
    peer.unanswered = 0;
    peer.upgradeNotBefore = clock_.now() + timing_.upgradeHoldOff;
    prefer(peer, peer.current ? peer.current->suite : peer.allowed.lowest());
    endHandshake(peer);
    return;
  }
  if (peer.preferred == peer.allowed.lowest()) return;
  // Perhaps the peer speaks WireGuard only by now: what it told us no longer counts.
  peer.unanswered = 0;
  peer.offer.reset();
  peer.controlSent = 0;
  prefer(peer, peer.allowed.lowest());
}

void Sessions::sendInitiation(Peer& peer) {
  const BootTime now = clock_.now();
  peer.attempt->nextInitiation = now + timing_.rekeyTimeout + jitter();
  clearInitiation(peer);
  const auto timestamp = timestamps_.next();
  if (!timestamp) {
    actions_.initiationFailed(peer.policy.id, timestamp.error());
    return;
  }
  const crypto::Suite suite = peer.attempt->upgrade
                                  ? peer.preferred
                                  : initiationSuite(peer.allowed, peer.preferred, peer.unanswered);
  peer.handshakeIndex = reserveIndex(peer);
  adit_message_initiation message;
  peer.handshake = createInitiation(*identity_, *peer.remote, suite, *peer.handshakeIndex,
                                    *timestamp, random_, message);
  if (!peer.handshake) {
    peer.keyUnusable = true;
    endHandshake(peer);
    return;
  }
  peer.cookies.addMacs(bytesOf(message), now);
  peer.lastInitiation = now;
  ++peer.attempt->sent;
  ++peer.initiationsSent;
  peer.awaitsResponse = actions_.sendInitiation(peer.policy.id, bytesOf(message)).has_value();
}

std::chrono::nanoseconds Sessions::jitter() {
  std::uint64_t value = 0;
  random_.fill(bytesOf(value));
  return std::chrono::nanoseconds(value %
                                  (static_cast<std::uint64_t>(timing_.rekeyJitter.count()) + 1));
}

std::uint32_t Sessions::reserveIndex(const Peer& peer) {
  std::uint32_t index = 0;
  do {
    random_.fill(bytesOf(index));
  } while (!indices_.emplace(index, peer.policy.id).second);
  return index;
}

void Sessions::releaseIndex(std::optional<std::uint32_t>& index) {
  if (index) indices_.erase(*index);
  index.reset();
}

void Sessions::prefer(Peer& peer, crypto::Suite suite) {
  if (peer.preferred == suite) return;
  peer.preferred = suite;
  actions_.suiteChosen(peer.policy.id, suite);
}

}  // namespace adit::noise
