// What follows when a session is up: the slots, the control message, and the suite.
#include <utility>

#include "noise/sessions_peer.hpp"

namespace adit::noise {

/// Installs a finished handshake under `index`. False when the data plane refuses it; the index is
/// free again then, and the keys are gone.
bool Sessions::install(Peer& peer, KeySlot slot, crypto::Suite suite,
                       std::optional<std::uint32_t> index, std::uint32_t remoteIndex,
                       TransportKeys keys) {
  const SessionKeys session{slot,
                            suite,
                            *index,
                            remoteIndex,
                            std::move(keys.send),
                            std::move(keys.receive),
                            timing_.keyLimits(suite, mtu_)};
  if (!actions_.installKeys(peer.policy.id, peer.policy.publicKey, session)) {
    drop(HandshakeDrop::InstallRefused, &peer);
    releaseIndex(index);
    return false;
  }
  peer.lastInstall = clock_.now();
  peer.wipeAt = clock_.now() + 3 * timing_.rejectAfter;
  if (slot == KeySlot::Next) {
    replace(peer.next, Session{index, suite, Role::Responder});
  } else {
    // As the data plane does: an unconfirmed key may still be what the other side sends under.
    replace(peer.previous, std::exchange(peer.next ? peer.next : peer.current, std::nullopt));
    replace(peer.current, Session{index, suite, Role::Initiator});
  }
  schedule(peer);
  return true;
}

bool Sessions::keyConfirmed(PeerId id) {
  Peer* const peer = find(id);
  if (peer == nullptr || !peer->next) return false;
  replace(peer->previous, std::exchange(peer->current, std::nullopt));
  peer->current = std::exchange(peer->next, std::nullopt);
  established(*peer);
  return true;
}

bool Sessions::restoreSession(PeerId id, const RestoredSession& session) {
  Peer* const peer = find(id);
  if (peer == nullptr || !peer->allowed.contains(session.suite)) return false;
  replace(peer->previous, std::exchange(peer->current, std::nullopt));
  // Its local index is known to the data plane alone, which refuses it to others.
  peer->current = Session{std::nullopt, session.suite, session.role};
  peer->lastInstall = session.start;
  peer->wipeAt = session.start + 3 * timing_.rejectAfter;
  peer->lastHandshake = session.start;
  peer->lastHandshakeRealTime = clock_.realTime() - (clock_.now() - session.start);
  schedule(*peer);
  return true;
}

/// `peer.current` has just become usable in both directions.
void Sessions::established(Peer& peer) {
  const auto [index, suite, role] = *peer.current;
  endHandshake(peer);
  peer.unanswered = 0;
  peer.lastHandshake = clock_.now();
  peer.lastHandshakeRealTime = clock_.realTime();
  ++peer.handshakesCompleted;
  actions_.handshakeCompleted(peer.policy.id, role, suite);

  // A message that came with the first packets may be handed over before the event.
  const bool oldOffer = peer.offer && peer.offerReceived < peer.lastInstall;
  if (role == Role::Responder && oldOffer && chosenSuite(peer) != suite) {
    // It came with another suite than we both know of: it has started anew.
    peer.offer.reset();
    peer.heldControl.reset();
    peer.controlSent = 0;
  }
  if (peer.offer) {
    settleSuite(peer);
  } else {
    prefer(peer, suite);
    sendControlIfUnanswered(peer);
  }
  schedule(peer);
}

void Sessions::control(PeerId id, std::span<const std::uint8_t> message) {
  Peer* const peer = find(id);
  if (peer == nullptr || !peer->policy.extensions) return;
  const auto decoded = decodeControl(message);
  if (!decoded) return;
  const bool answerOwed = peer->heldControl && peer->heldControl->wantsAnswer;
  peer->heldControl = *decoded;
  peer->heldControl->wantsAnswer = decoded->wantsAnswer || answerOwed;
  hearControl(*peer);
  schedule(*peer);
}

/// Acts on the peer's newest message when its turn has come: that may send a packet, write a file
/// and start a handshake, none of which a hostile peer shall have at the rate of its packets.
void Sessions::hearControl(Peer& peer) {
  const BootTime now = clock_.now();
  if (!peer.heldControl) return;
  if (peer.controlHeard && now - *peer.controlHeard < timing_.controlSpacing) return;
  const ControlMessage message = *std::exchange(peer.heldControl, std::nullopt);
  peer.controlHeard = now;
  peer.offer = message.offer;
  peer.offerReceived = now;
  peer.controlAt.reset();
  if (message.wantsAnswer) sendControl(peer, false);
  settleSuite(peer);
}

/// Tells a peer of our offer, or a changed one.
void Sessions::announce(Peer& peer) {
  if (peer.current && peer.policy.extensions) {
    if (peer.offer) {
      sendControl(peer, false);
      settleSuite(peer);
    } else {
      sendControlIfUnanswered(peer);
    }
  }
  schedule(peer);
}

void Sessions::sendControlIfUnanswered(Peer& peer) {
  peer.controlAt.reset();
  if (!peer.policy.extensions || !peer.current || peer.offer) return;
  if (peer.controlSent >= kControlSends) return;
  ++peer.controlSent;
  peer.controlAt = clock_.now() + timing_.controlInterval;
  sendControl(peer, true);
}

void Sessions::sendControl(Peer& peer, bool wantsAnswer) {
  actions_.sendControl(peer.policy.id, encodeControl({{peer.allowed, speeds_}, wantsAnswer}));
}

std::optional<crypto::Suite> Sessions::chosenSuite(const Peer& peer) const {
  return chooseSuite({peer.allowed, speeds_}, *peer.offer);
}

/// Makes the session follow the choice. Only the initiator acts; both remember.
void Sessions::settleSuite(Peer& peer) {
  const auto choice = chosenSuite(peer);
  if (!choice || !peer.current) return;
  if (peer.current->suite == *choice) {
    peer.upgradeNotBefore.reset();
    prefer(peer, *choice);
    return;
  }
  if (peer.upgradeNotBefore && clock_.now() < *peer.upgradeNotBefore) return;
  prefer(peer, *choice);
  if (peer.current->role == Role::Initiator && !peer.attempt) beginHandshake(peer, true);
}

/// Puts `session` into a slot and frees the index of what was there.
void Sessions::replace(std::optional<Session>& slot, std::optional<Session> session) {
  if (slot) releaseIndex(slot->localIndex);
  slot = std::move(session);
}

}  // namespace adit::noise
