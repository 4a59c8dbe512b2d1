// The interface behind which packets are moved: adit.ko or adit's own threads.
//
// A data plane holds peers, session keys and allowed IPs. It never sees a private key and never
// parses a handshake. What must be decided per packet it decides alone: the three key slots and
// their promotion by the first authenticated packet, staging while there is no key, passive and
// persistent keepalive, age and count limits of a key, the endpoint (learned only from an
// authenticated, not replayed packet), allowed IPs both ways, statistics.
//
// All calls come from one thread, the control thread. Events are collected by the data plane and
// handed over in dispatch(), on that same thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/suite.hpp"
#include "noise/types.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace adit::dataplane {

using noise::PeerId;

/// Settings of the whole device that may change while it runs.
struct DeviceSettings {
  /// 0 lets the system choose.
  std::uint16_t listenPort = 0;
  /// SO_MARK of every outer datagram; 0 is none.
  std::uint32_t firewallMark = 0;
  /// Local address to bind to; unspecified means all, of both families.
  IpAddress bindAddress;
  /// Our static public key: what mac1 of an incoming handshake is checked with. All zero refuses
  /// every handshake datagram.
  crypto::PublicKey publicKey;
};

/// What the data plane needs to know of a peer. Replaces what was set before under the same id.
struct PeerSettings {
  PeerId id = 0;
  crypto::PublicKey publicKey;
  std::vector<Prefix> allowedIps;
  /// Seconds; 0 is off.
  std::uint16_t persistentKeepalive = 0;
  /// Off keeps the endpoint that was set, whatever authenticated packets say.
  bool roam = true;
};

/// Why a datagram or a packet was not passed on. Each is counted, per device and, where the peer
/// is known, per peer.
enum class Drop : std::uint8_t {
  Malformed,         ///< outer: too short, unknown type or suite, wrong length
  UnknownIndex,      ///< outer data: no session with this receiver index
  BadMac,            ///< handshake: mac1 is wrong
  HandshakeQueue,    ///< handshake or control message: the queue to the control thread was full,
                     ///< or the peer sends too many
  Authentication,    ///< outer data: tag is wrong
  Replay,            ///< outer data: counter seen before or too old
  KeyExpired,        ///< either way: the session's age or message limit was reached
  NotIp,             ///< decrypted, but neither IP nor a control message, or truncated
  SourceNotAllowed,  ///< decrypted, but the inner source is not in the peer's allowed IPs
  NoPeer,            ///< to send: no peer has the inner destination in its allowed IPs
  NoEndpoint,        ///< to send: the peer has no endpoint yet
  QueueFull,         ///< to send: staging queue of a peer without a session overflowed
  SendFailed,        ///< to send: the system refused the datagram
  ReceiveFailed,     ///< decrypted, but the system refused the packet (interface down)
  Congestion,        ///< decrypted; congestion was signalled to a sender without ECN (RFC 6040)
};
inline constexpr std::size_t kDropCount = static_cast<std::size_t>(Drop::Congestion) + 1;
std::string_view dropName(Drop drop);
using DropCounts = std::array<std::uint64_t, kDropCount>;

struct PeerStats {
  PeerId id = 0;
  std::optional<Endpoint> endpoint;
  /// Bytes of outer UDP payload (header, padding and tag included), as WireGuard counts them.
  std::uint64_t rxBytes = 0;
  std::uint64_t txBytes = 0;
  std::uint64_t rxPackets = 0;
  std::uint64_t txPackets = 0;
  /// When an authenticated packet last arrived; zero for never.
  BootTime lastReceive{};
  /// The current session, if there is one.
  std::optional<crypto::Suite> suite;
  BootTime sessionStart{};
  /// The session was ours to start.
  bool sessionInitiator = false;
  DropCounts drops{};
};

struct DeviceStats {
  std::uint16_t listenPort = 0;
  DropCounts drops{};
};

/// A peer that a former daemon left in the data plane.
struct KeptPeer {
  crypto::PublicKey publicKey;
  /// What keepMark() was given last.
  std::vector<std::uint8_t> mark;
  PeerStats stats;
};

/// What the data plane holds from a former daemon. Its peers keep their sessions until they are
/// removed or set by the same id.
struct Inheritance {
  /// Whose sessions these are: of another key of ours they are worth nothing.
  crypto::PublicKey publicKey;
  std::vector<KeptPeer> peers;
  /// Ids of new peers start here.
  PeerId nextId = 1;
};

/// The longest mark that keepMark() takes, in bytes.
inline constexpr std::size_t kMaxMark = 64;

/// Why a handshake is wanted.
enum class HandshakeReason : std::uint8_t {
  Staged,     ///< packets wait and there is no usable key
  KeyAging,   ///< age or message count asks for a new key
  NoReply,    ///< data was sent and nothing came back for 15 s
  Keepalive,  ///< a persistent keepalive is due and there is no usable key
};

/// Receives what happened, on the control thread, from within DataPlane::dispatch().
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Repeated every 5 s while it holds, so that a lost event heals.
  virtual void needHandshake(PeerId peer, HandshakeReason reason) = 0;
  /// The first packet under a `Next` key was authenticated: the session works both ways.
  virtual void keyConfirmed(PeerId peer) = 0;
  virtual void endpointMoved(PeerId peer, const Endpoint& endpoint) = 0;
  /// No usable key is left; all keys of the peer have been wiped.
  virtual void keysExpired(PeerId peer) = 0;
  /// The plaintext of an authenticated in-tunnel control message (docs/protocol.md).
  virtual void control(PeerId peer, std::span<const std::uint8_t> message) = 0;
  /// A datagram of type 1 to 3, of exact length, with a right mac1 (types 1 and 2). `backlog` is
  /// how many more wait behind it: above a threshold the receiver is under load and asks for
  /// cookies.
  virtual void handshake(std::span<const std::uint8_t> datagram, const Endpoint& source,
                         const LocalAddress& local, std::size_t backlog) = 0;
};

class DataPlane {
 public:
  virtual ~DataPlane() = default;

  /// Takes the interface away for good. Without this it outlives the object, so that connections
  /// survive a restart of the daemon, which finds it again.
  virtual void destroyInterface() = 0;

  /// "kernel" or "userspace".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Of what moves the packets, for example "0.1.0", where that is another program than this.
  [[nodiscard]] virtual std::string_view version() const { return {}; }
  /// Megabytes per second on one core, by suite number, as this data plane measured them.
  [[nodiscard]] virtual std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds() const = 0;

  /// What of the machine is not used now, and why; a sentence for a person each.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }

  /// Empty where the peers go with the process that moves the packets.
  [[nodiscard]] virtual const Inheritance& inheritance() const;

  /// Applies what changed and keeps sessions. On failure (a taken port) the old settings stay.
  virtual Result<void> configure(const DeviceSettings& settings) = 0;

  /// Adds the peer or replaces its settings. An allowed IP that another peer had moves here, as
  /// in WireGuard. Sessions and statistics stay.
  virtual Result<void> setPeer(const PeerSettings& settings) = 0;
  /// Its id is not used again.
  virtual Result<void> removePeer(PeerId peer) = 0;
  /// Where to send to from now on. `local` pins the source address of the next datagrams.
  virtual Result<void> setEndpoint(PeerId peer, const Endpoint& endpoint,
                                   const std::optional<LocalAddress>& local) = 0;
  /// Keeps a value with the peer for the daemon that comes after this one; see `Inheritance`.
  virtual Result<void> keepMark(PeerId peer, std::span<const std::uint8_t> mark);

  /// Only creates: the send counter starts at 0 and can neither be set nor read back. Refused
  /// when `peerKey` is not the peer's key, when the local index is in use on this device, or when
  /// one of the peer's last 16 sessions had the same keys. After any failure the keys are not
  /// offered again: they may have been taken. With slot Current, staged packets are
  /// sent at once, or else a keepalive, which confirms the key to the other side.
  virtual Result<void> installKeys(PeerId peer, const crypto::PublicKey& peerKey,
                                   const noise::SessionKeys& keys) = 0;
  /// Wipes all keys of the peer (suspend, changed private key).
  virtual Result<void> dropKeys(PeerId peer) = 0;
  /// Forgets staged packets: the handshake was given up.
  virtual void dropStaged(PeerId peer) = 0;

  /// Sends an in-tunnel control message under the current key, or drops it if there is none.
  virtual void sendControl(PeerId peer, std::span<const std::uint8_t> message) = 0;
  /// Sends a handshake datagram. `local` as learned from the datagram that is being answered.
  virtual Result<void> sendHandshake(std::span<const std::uint8_t> datagram,
                                     const Endpoint& destination,
                                     const std::optional<LocalAddress>& local) = 0;

  [[nodiscard]] virtual std::vector<PeerStats> peerStats() const = 0;
  [[nodiscard]] virtual DeviceStats deviceStats() const = 0;

  /// Becomes readable when dispatch() has something to do.
  [[nodiscard]] virtual int eventDescriptor() const = 0;
  /// Hands over what has been collected, a bounded amount per call.
  virtual void dispatch(EventSink& sink) = 0;
};

}  // namespace adit::dataplane
