// The session life cycle of all peers of one device: handshakes, their timers, keys and suites.
//
// Pure: the clock, randomness and every effect are injected. Used on one thread, the control
// thread. What must be decided per packet (key slots, keepalives, replay, staging, limits of a
// key) is the data plane's and reaches this class as events.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "crypto/hash.hpp"
#include "crypto/key.hpp"
#include "crypto/random.hpp"
#include "crypto/suite.hpp"
#include "noise/cookie.hpp"
#include "noise/handshake.hpp"
#include "noise/negotiation.hpp"
#include "noise/rate_limiter.hpp"
#include "noise/timestamp.hpp"
#include "noise/timing.hpp"
#include "noise/types.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace adit::noise {

enum class Role : std::uint8_t { Initiator, Responder };

/// What the configuration says of a peer, and what was kept of it over a restart.
struct PeerPolicy {
  PeerId id = 0;
  crypto::PublicKey publicKey;
  /// All zero: none.
  crypto::PresharedKey presharedKey;
  /// `Cipher = SUITE`: no other is offered or accepted. Nothing is `auto`.
  std::optional<crypto::Suite> pinned;
  /// `Extensions = off` speaks plain WireGuard: no control message, and with `auto` suite 0 only.
  bool extensions = true;
  /// Restored: no initiation with a timestamp up to this one is accepted.
  std::optional<Tai64n> greatestTimestamp;
  /// Restored: see SessionActions::suiteChosen().
  std::optional<crypto::Suite> rememberedSuite;
};

/// Why a handshake datagram led to nothing.
enum class HandshakeDrop : std::uint8_t {
  Malformed,          ///< unknown type or suite, wrong length, reserved bytes not zero
  NoIdentity,         ///< we have no private key
  BadMac1,            ///< not meant for our key
  Mac2Missing,        ///< under load and without a valid cookie; a cookie reply was sent
  RateLimited,        ///< under load and too many from this source
  Authentication,     ///< initiation: wrong keys or a low-order point
  UnknownPeer,        ///< initiation: authentic so far, but of a key that is no peer
  SuiteRefused,       ///< initiation: the peer may not use this suite
  Replayed,           ///< initiation: timestamp not greater than the greatest accepted
  TooFrequent,        ///< initiation: too soon after the one before
  UnknownIndex,       ///< response or cookie reply: for nothing that we sent
  DuplicateResponse,  ///< response: its handshake is already complete
  BadResponse,        ///< response: wrong keys (a differing preshared key) or a low-order point
  BadCookie,          ///< cookie reply: not authentic, or not asked for
  InstallRefused,     ///< the data plane refused the keys
};
inline constexpr std::size_t kHandshakeDropCount =
    static_cast<std::size_t>(HandshakeDrop::InstallRefused) + 1;
/// For status and logs, for example "handshake-replayed".
std::string_view handshakeDropName(HandshakeDrop drop);
using HandshakeDrops = std::array<std::uint64_t, kHandshakeDropCount>;

/// A handshake that a person may have to mend.
struct RefusedHandshake {
  HandshakeDrop reason;
  Endpoint source;
  /// Whose it is, where that is known; for an unknown peer only `key`, which it claims.
  std::optional<PeerId> peer = std::nullopt;
  std::optional<crypto::PublicKey> key = std::nullopt;
  /// The suite of an initiation with SuiteRefused.
  std::optional<crypto::Suite> suite = std::nullopt;
};

/// Every effect of Sessions. Called from within its member functions; an implementation must not
/// call back into the same Sessions.
class SessionActions {
 public:
  virtual ~SessionActions() = default;

  /// Hands keys to the data plane. A failure is answered with a new handshake, never with a
  /// second install of the same keys.
  virtual Result<void> installKeys(PeerId peer, const crypto::PublicKey& peerKey,
                                   const SessionKeys& keys) = 0;
  /// Sends an initiation to the endpoint that the caller knows best. A failure (no endpoint yet)
  /// only means that it does not count as unanswered; the next one follows as usual.
  virtual Result<void> sendInitiation(PeerId peer, std::span<const std::uint8_t> datagram) = 0;
  /// Sends a response or a cookie reply back to where the datagram in hand came from, from the
  /// local address that it was sent to.
  virtual void sendReply(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                         const LocalAddress& local) = 0;
  /// Sends an in-tunnel control message under the peer's current key.
  virtual void sendControl(PeerId peer, std::span<const std::uint8_t> message) = 0;
  /// Forget packets that wait for a session.
  virtual void dropStaged(PeerId peer) = 0;
  /// Wipe all keys of the peer.
  virtual void dropKeys(PeerId peer) = 0;

  /// Keep `timestamp` as PeerPolicy::greatestTimestamp over a restart. Called before the response
  /// is sent.
  virtual void peerTimestampAccepted(PeerId peer, const Tai64n& timestamp) = 0;
  /// Keep `suite` as PeerPolicy::rememberedSuite over a restart.
  virtual void suiteChosen(PeerId peer, crypto::Suite suite) = 0;
  /// A session works: its response was accepted (initiator), or its first packet (responder).
  virtual void handshakeCompleted(PeerId peer, Role role, crypto::Suite suite) = 0;
  /// Nobody answered for Timing::rekeyAttempt.
  virtual void handshakeGivenUp(PeerId peer) = 0;
  /// No initiation could be made: the timestamp store failed. Tried again as usual.
  virtual void initiationFailed(PeerId peer, const Error& error) = 0;
  /// Told for BadMac1, UnknownPeer, SuiteRefused and BadResponse. Anybody can cause the first two
  /// and as often as they like.
  virtual void handshakeRefused(const RefusedHandshake&) {}
};

/// A session that a data plane kept over a restart of the daemon.
struct RestoredSession {
  crypto::Suite suite;
  Role role;
  /// When its keys were installed.
  BootTime start;
};

/// What `adit status` shows of a peer.
struct PeerState {
  /// When the last handshake completed; nothing if none did.
  std::optional<BootTime> lastHandshake;
  /// The same moment on the real-time clock as it was then, since the Unix epoch.
  std::chrono::nanoseconds lastHandshakeRealTime{};
  /// The running session.
  std::optional<crypto::Suite> suite;
  std::optional<Role> role;
  bool handshakeUnderWay = false;
  /// Initiations sent in the handshake under way.
  unsigned attempts = 0;
  std::uint64_t initiationsSent = 0;
  std::uint64_t handshakesCompleted = 0;
  /// The suite of the next handshake.
  crypto::Suite preferredSuite = crypto::Suite::ChaCha20Poly1305;
  /// The peer's control message, if it has sent one.
  std::optional<SuiteOffer> peerOffer;
  /// Drops that could be put down to this peer.
  HandshakeDrops drops{};
  /// Fresh initiations of this peer carry timestamps below one that it used before: its clock went
  /// back. By how much at the last one; nothing while it is well.
  std::optional<std::chrono::nanoseconds> clockBehind;
  std::optional<Tai64n> greatestTimestamp;
  /// The peer's public key is a low-order point or our own: no handshake is possible.
  bool keyUnusable = false;
};

class Sessions {
 public:
  /// All references must outlive the object.
  Sessions(const Clock& clock, crypto::RandomSource& random, TimestampSource& timestamps,
           SessionActions& actions, const Timing& timing = {});
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  /// Our static key. A key with another public key ends all sessions and handshakes; the same one
  /// changes nothing. Without one every handshake is refused.
  void setIdentity(const std::optional<crypto::PrivateKey>& key);
  /// Of our data plane; a change is told to peers that know adit's control message.
  void setSuiteSpeeds(const SuiteSpeeds& speeds);
  /// Bytes; limits the keys of later sessions.
  void setMtu(std::uint32_t mtu) { mtu_ = mtu; }

  /// Adds the peer, or replaces its policy and keeps its session if the new policy allows its
  /// suite; restored values of a known peer are ignored. Fails when the id is known with another
  /// public key or the public key with another id.
  Result<void> setPeer(const PeerPolicy& policy);
  void removePeer(PeerId peer);
  /// The data plane has a current session that this object did not make, or of whose confirmation
  /// it did not hear. No handshake follows. False when the peer may not use it (the suite is not
  /// allowed any more): then its keys have to go.
  bool restoreSession(PeerId peer, const RestoredSession& session);
  /// Accept any timestamp from the peer again: for a peer whose clock had once been in the future.
  void resetTimestamp(PeerId peer);
  /// Ends all sessions and handshakes, as before suspend and after a snapshot was restored.
  void dropAllSessions();

  /// Start a handshake, as soon as the minimum interval allows, also when a session is up.
  void startHandshake(PeerId peer);
  /// The data plane's event. Ignored while a handshake is under way and within the minimum
  /// interval after one, since the data plane repeats it.
  void needHandshake(PeerId peer);
  /// False when no key of the peer waits for this: it is of an earlier daemon.
  bool keyConfirmed(PeerId peer);
  void keysExpired(PeerId peer);
  void control(PeerId peer, std::span<const std::uint8_t> message);
  /// A datagram of type 1 to 3; everything about it is checked here, mac1 included. `backlog` is
  /// how many more wait behind it.
  void handshake(std::span<const std::uint8_t> datagram, const Endpoint& source,
                 const LocalAddress& local, std::size_t backlog);

  /// When runTimers() has something to do; may be in the past.
  [[nodiscard]] std::optional<BootTime> nextDeadline() const;
  void runTimers();

  /// Nothing for an unknown peer.
  [[nodiscard]] std::optional<PeerState> state(PeerId peer) const;
  [[nodiscard]] const HandshakeDrops& drops() const { return drops_; }
  /// A cookie is demanded right now.
  [[nodiscard]] bool underLoad() const;

 private:
  struct Peer;
  struct Session;
  struct Incoming;

  // sessions.cpp: peers and timers
  Peer* find(PeerId id);
  void changePolicy(Peer& peer, const PeerPolicy& policy);
  void derive(Peer& peer);
  void forget(Peer& peer);
  void releaseSessions(Peer& peer);
  void schedule(Peer& peer);
  void runPeerTimers(Peer& peer);
  void beginHandshake(Peer& peer, bool upgrade);
  void endHandshake(Peer& peer);
  void clearInitiation(Peer& peer);
  void retransmit(Peer& peer);
  void noteUnanswered(Peer& peer);
  void sendInitiation(Peer& peer);
  std::chrono::nanoseconds jitter();
  std::uint32_t reserveIndex(const Peer& peer);
  void releaseIndex(std::optional<std::uint32_t>& index);
  void prefer(Peer& peer, crypto::Suite suite);

  // sessions_receive.cpp: handshake datagrams
  bool admit(const Incoming& in, std::uint32_t senderIndex);
  void receiveInitiation(const Incoming& in);
  bool acceptTimestamp(Peer& peer, const Tai64n& timestamp);
  void respond(Peer& peer, const ReceivedInitiation& received, const Incoming& in);
  void receiveResponse(const Incoming& in);
  void receiveCookie(const Incoming& in);
  void drop(HandshakeDrop reason, Peer* peer = nullptr);
  void refuse(const RefusedHandshake& refused, Peer* peer = nullptr);

  // sessions_established.cpp: what follows when a session is up
  bool install(Peer& peer, KeySlot slot, crypto::Suite suite, std::optional<std::uint32_t> index,
               std::uint32_t remoteIndex, TransportKeys keys);
  void replace(std::optional<Session>& slot, std::optional<Session> session);
  void established(Peer& peer);
  void announce(Peer& peer);
  void hearControl(Peer& peer);
  void sendControlIfUnanswered(Peer& peer);
  void sendControl(Peer& peer, bool wantsAnswer);
  [[nodiscard]] std::optional<crypto::Suite> chosenSuite(const Peer& peer) const;
  void settleSuite(Peer& peer);

  const Clock& clock_;
  crypto::RandomSource& random_;
  TimestampSource& timestamps_;
  SessionActions& actions_;
  const Timing timing_;

  std::optional<Identity> identity_;
  std::optional<CookieChecker> checker_;
  /// Of handshakes with a valid cookie, and of cookie replies.
  RateLimiter limiter_;
  RateLimiter cookieLimiter_;
  std::optional<BootTime> loadUntil_;
  SuiteSpeeds speeds_{};
  std::uint32_t mtu_ = 1420;
  HandshakeDrops drops_{};

  std::unordered_map<PeerId, std::unique_ptr<Peer>> peers_;
  std::unordered_map<crypto::PublicKey, PeerId> byKey_;
  /// Every local index in use: handshakes under way and the sessions of the data plane.
  std::unordered_map<std::uint32_t, PeerId> indices_;
  std::set<std::pair<BootTime, PeerId>> deadlines_;
};

}  // namespace adit::noise
