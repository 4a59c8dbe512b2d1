// Two ends in virtual time: Sessions on a fake data plane each, joined by a network that loses,
// duplicates, delays and reorders. What must never happen is checked on every step and collected
// in World::violations.
//
//   A: Sessions ── FakePlane ──┐                  ┌── FakePlane ── Sessions :B
//      192.0.2.1:1001          └───── network ────┘          192.0.2.2:1002
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "fakes.hpp"
#include "noise/sessions.hpp"

namespace adit::noise::test {

using Datagram = std::vector<std::uint8_t>;
using KeyBytes = std::array<std::uint8_t, 32>;

/// A transport datagram; that the receiver knows `key` stands for a right tag.
struct Packet {
  std::uint32_t receiverIndex;
  std::uint64_t counter;
  crypto::Suite suite;
  KeyBytes key;
  enum class Kind { Keepalive, App, Control } kind;
  std::vector<std::uint8_t> payload;
};

class World;
class Side;

/// The data plane's part of the protocol, for one peer: slots, staging, keepalives, key ages.
class FakePlane {
 public:
  explicit FakePlane(Side& side) : side_(side) {}

  Result<void> install(const SessionKeys& keys);
  void dropKeys();
  void dropStaged() { staged = 0; }
  void sendApp();
  void sendControl(std::span<const std::uint8_t> message);
  void receive(const Packet& packet);
  /// Once a second: expiry, repeated events, keepalives.
  void tick();
  [[nodiscard]] bool hasIndex(std::uint32_t index) const;
  [[nodiscard]] std::optional<crypto::Suite> currentSuite() const;

  unsigned staged = 0;
  unsigned delivered = 0;
  unsigned appSent = 0;
  unsigned unknownDropped = 0;
  unsigned replayDropped = 0;
  std::vector<SessionKeys> installed;
  /// The next install fails.
  bool refuse = false;
  /// How long the event of a confirmed key takes; packets behind it may be handed over before.
  std::chrono::nanoseconds confirmDelay{};

 private:
  struct Key {
    SessionKeys keys;
    BootTime created;
    std::uint64_t counter = 0;
    std::set<std::uint64_t> seen;
  };
  [[nodiscard]] bool usable(const std::optional<Key>& key) const;
  void transmit(Packet::Kind kind, std::span<const std::uint8_t> payload);
  void flush();
  void need();
  void askForKeyIfAging();

  Side& side_;
  std::optional<Key> current_;
  std::optional<Key> previous_;
  std::optional<Key> next_;
  std::optional<BootTime> keepaliveAt_;
  std::optional<BootTime> replyDue_;
  std::optional<BootTime> lastNeed_;
};

/// One end. Keeps what a daemon would persist, so that it can restart.
class Side final : public SessionActions {
 public:
  static constexpr PeerId kPeer = 7;

  Side(World& world, std::string name, crypto::PrivateKey key, Endpoint endpoint,
       std::uint64_t seed);
  void connect(Side& other);
  /// A new daemon: sessions' state comes from what was persisted; the data plane is new too.
  void restart();
  /// A new daemon on a data plane that was never away; its session is restored.
  bool restartDaemon();
  void startDaemon();
  [[nodiscard]] PeerState state() const { return *sessions->state(kPeer); }
  [[nodiscard]] std::uint64_t drops(HandshakeDrop reason) const {
    return sessions->drops()[static_cast<std::size_t>(reason)];
  }

  Result<void> installKeys(PeerId peer, const crypto::PublicKey& peerKey,
                           const SessionKeys& keys) override;
  Result<void> sendInitiation(PeerId peer, std::span<const std::uint8_t> datagram) override;
  void sendReply(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                 const LocalAddress& local) override;
  void sendControl(PeerId peer, std::span<const std::uint8_t> message) override;
  void dropStaged(PeerId peer) override;
  void dropKeys(PeerId peer) override;
  void peerTimestampAccepted(PeerId peer, const Tai64n& timestamp) override;
  void suiteChosen(PeerId peer, crypto::Suite suite) override;
  void handshakeCompleted(PeerId peer, Role role, crypto::Suite suite) override;
  void handshakeGivenUp(PeerId peer) override;
  void initiationFailed(PeerId peer, const Error& error) override;

  World& world;
  const std::string name;
  const crypto::PrivateKey key;
  const Endpoint endpoint;
  LocalAddress local;
  Side* other = nullptr;
  FakeClock clock;
  SeededRandom random;
  MemoryStore store;
  std::unique_ptr<TimestampSource> timestamps;
  std::unique_ptr<FakePlane> plane;
  std::unique_ptr<Sessions> sessions;
  PeerPolicy policy;
  SuiteSpeeds speeds{1000, 4000, 4500};
  /// What the data plane reports to wait behind a handshake datagram.
  std::size_t backlog = 0;
  bool hasEndpoint = true;

  std::vector<Datagram> initiations;
  std::vector<BootTime> initiationTimes;
  /// Of this daemon; one that has just started does not know of an earlier one.
  std::optional<BootTime> lastInitiation;
  std::vector<Datagram> responses;
  std::vector<Datagram> cookieReplies;
  std::vector<std::vector<std::uint8_t>> controls;
  struct Completed {
    Role role;
    crypto::Suite suite;
  };
  std::vector<Completed> completed;
  std::optional<Tai64n> greatestAccepted;
  unsigned givenUp = 0;
  unsigned failed = 0;
  unsigned keysDropped = 0;
  unsigned stagedDropped = 0;
  unsigned suitesChosen = 0;
  std::set<KeyBytes> keysEver;
};

class World {
 public:
  explicit World(std::uint64_t seed = 1, const Timing& timing = {});

  void runFor(std::chrono::nanoseconds duration);
  void at(BootTime time, std::function<void()> action);
  /// Puts a datagram on the wire from `from` to the other side.
  void send(Side& from, std::variant<Datagram, Packet> datagram);
  /// Sends an application packet on each given side every `interval` from now on.
  void traffic(Side& side, std::chrono::nanoseconds interval, std::chrono::nanoseconds duration);
  void violation(const std::string& what) { violations.push_back(what); }

  const Timing timing;
  BootTime now = 1000s;
  std::mt19937_64 rng;
  double loss = 0;
  double duplicate = 0;
  std::chrono::nanoseconds delay = 10ms;
  std::chrono::nanoseconds delayJitter = 0ms;
  /// May change a datagram; false loses it. Handshakes and packets.
  std::function<bool(Side& from, Datagram&)> onHandshake;
  std::function<bool(Side& from, Packet&)> onPacket;
  std::vector<std::string> violations;
  Side a;
  Side b;

 private:
  struct Event {
    BootTime time;
    std::uint64_t order;
    std::function<void()> action;
    bool operator>(const Event& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };
  bool chance(double probability);
  void moveTo(BootTime time);
  std::optional<BootTime> nextTime() const;
  void tick();

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
};

}  // namespace adit::noise::test
