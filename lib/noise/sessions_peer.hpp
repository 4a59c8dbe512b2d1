// What Sessions keeps of a peer, and of the datagram in hand. Private to sessions*.cpp.
#pragma once

#include <utility>

#include "noise/sessions.hpp"

namespace adit::noise {

/// The suites that a policy offers and accepts.
inline SuiteSet allowedBy(const PeerPolicy& policy) {
  if (policy.pinned) return SuiteSet::only(*policy.pinned);
  return policy.extensions ? SuiteSet::all() : SuiteSet::only(crypto::Suite::ChaCha20Poly1305);
}

/// A session as it was installed.
struct Sessions::Session {
  std::optional<std::uint32_t> localIndex;
  crypto::Suite suite;
  Role role;
};

struct Sessions::Peer {
  /// A handshake that we want, from the first initiation to its success or to giving it up.
  struct Attempt {
    BootTime started;
    BootTime nextInitiation;
    /// Only to change the suite of a session that works.
    bool upgrade;
    unsigned sent = 0;
  };

  Peer(const PeerPolicy& newPolicy, const Timing& timing)
      : policy(newPolicy),
        allowed(allowedBy(newPolicy)),
        preferred(newPolicy.rememberedSuite.value_or(allowed.lowest())),
        cookies(newPolicy.publicKey, timing),
        greatestTimestamp(newPolicy.greatestTimestamp) {
    if (!allowed.contains(preferred)) preferred = allowed.lowest();
  }

  PeerPolicy policy;
  SuiteSet allowed;
  crypto::Suite preferred;
  /// Nothing when no handshake is possible: no identity, or an unusable key.
  std::optional<Remote> remote;
  bool keyUnusable = false;
  CookieMaker cookies;

  std::optional<Attempt> attempt;
  /// The last initiation, while a response to it would be accepted.
  std::optional<InitiatorHandshake> handshake;
  std::optional<std::uint32_t> handshakeIndex;
  std::optional<BootTime> lastInitiation;
  /// The last initiation went out and may still be answered.
  bool awaitsResponse = false;
  /// Initiations in a row that nobody answered, over several attempts.
  unsigned unanswered = 0;

  std::optional<Tai64n> greatestTimestamp;
  std::optional<BootTime> lastAccepted;
  /// Of initiations below the greatest timestamp: the newest, and how many were newer than the
  /// one before. A replay of an old one or a reordered one counts once, a clock that went back
  /// every time.
  std::optional<Tai64n> newestRejected;
  unsigned freshRejected = 0;

  /// The slots of the data plane as they were at the last install or event.
  std::optional<Session> current;
  std::optional<Session> previous;
  std::optional<Session> next;
  std::optional<BootTime> lastInstall;
  /// When keys that nobody uses are wiped.
  std::optional<BootTime> wipeAt;

  std::optional<SuiteOffer> offer;
  BootTime offerReceived{};
  /// When a message of the peer was last acted on, and the newest one that waits for its turn.
  std::optional<BootTime> controlHeard;
  std::optional<ControlMessage> heldControl;
  unsigned controlSent = 0;
  std::optional<BootTime> controlAt;
  std::optional<BootTime> upgradeNotBefore;

  std::optional<BootTime> lastHandshake;
  std::chrono::nanoseconds lastHandshakeRealTime{};
  std::uint64_t initiationsSent = 0;
  std::uint64_t handshakesCompleted = 0;
  HandshakeDrops drops{};

  /// As it stands in Sessions::deadlines_.
  std::optional<BootTime> deadline;
};

/// A handshake datagram and where it came from.
struct Sessions::Incoming {
  std::span<const std::uint8_t> datagram;
  const Endpoint& source;
  const LocalAddress& local;
  BootTime now;
};

template <typename Message>
std::span<std::uint8_t> bytesOf(Message& message) {
  return {reinterpret_cast<std::uint8_t*>(&message), sizeof message};
}

}  // namespace adit::noise
