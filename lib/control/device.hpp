// One tunnel interface: joins configuration, handshakes, data plane and network state.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "control/device_api.hpp"
#include "control/device_pcp_client.hpp"
#include "control/device_pcp_server.hpp"
#include "control/device_tune.hpp"
#include "control/endpoint_policy.hpp"
#include "control/event_loop.hpp"
#include "control/handshake_trouble.hpp"
#include "control/privileged.hpp"
#include "control/reconciler.hpp"
#include "control/resolver.hpp"
#include "control/state_store.hpp"
#include "control/undo_record.hpp"
#include "crypto/random.hpp"
#include "dataplane/dataplane.hpp"
#include "enrol/messages.hpp"
#include "nat/firewall.hpp"
#include "netlink/route.hpp"
#include "noise/sessions.hpp"

namespace adit::control {

/// Everything that a device works with; all of it must outlive the device.
struct DeviceParts {
  EventLoop& loop;
  const Clock& clock;
  crypto::RandomSource& random;
  Privileged& privileged;
  dataplane::DataPlane& dataPlane;
  netlink::Routing& routing;
  nat::Firewall& firewall;
  Resolver& resolver;
  StateStore& state;
};

struct DeviceOptions {
  std::string name;
  /// Why this data plane was taken.
  std::string backendReason;
  std::filesystem::path undoFile;
  /// The interface was left by a daemon that was killed: hooks have run, peers may be waiting.
  bool adopted = false;
  noise::Timing timing;
  EndpointTiming endpointTiming;
  pcp::ServerLimits portLimits = {};
  pcp::ClientTiming portTiming = {};
  /// What must hold before a configuration is applied, at start and at reload.
  std::function<Result<void>(const config::Config&)> check;
  /// Ends the daemon; called by down() after everything is undone.
  std::function<void()> finished;
};

class Device final : public DeviceApi, private dataplane::EventSink, private noise::SessionActions {
 public:
  Device(const DeviceParts& parts, DeviceOptions options, UndoRecord undo);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Brings everything up: port, peers, addresses, routes, rules, mappings, DNS, PostUp hooks. On
  /// failure the caller calls undo(). Not from within a callback of the loop, as undo(). `outcome`
  /// must be ok().
  Result<void> start(const config::Outcome& outcome);

  /// Compares the kernel with what is wanted and mends it; called on every kernel event.
  void reconcile();

  /// Takes everything back that start() did, PreDown hooks first; goes on after failures and
  /// returns them. The link itself goes with the data plane.
  std::vector<std::string> undo();

  /// What does not work now although the configuration asks for it.
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] DeviceSnapshot snapshot() const override;
  Result<std::vector<std::string>> apply(const DeviceChange& change) override;
  Result<std::vector<std::string>> reload() override;
  void saved(std::vector<config::FileStamp> files) override { files_ = std::move(files); }
  Result<std::vector<std::string>> down() override;

 private:
  struct Peer;
  using Peers = std::map<noise::PeerId, std::unique_ptr<Peer>>;

  // device.cpp
  Result<void> configureDataPlane(const config::InterfaceConfig& interface);
  Result<ReconcileReport> applyNetwork();
  [[nodiscard]] dataplane::DeviceSettings settingsOf(
      const config::InterfaceConfig& interface) const;
  [[nodiscard]] config::Config runningConfig() const;
  void takeConfig(const config::Outcome& outcome);
  /// A warning of it lasts until the next call.
  void setDns(const config::InterfaceConfig& interface);
  void saveUndo();
  /// Serves the sockets meanwhile: hooks like to call `adit show` and `wg set`.
  Result<void> runHooks(HookKind kind);
  void logReport(const ReconcileReport& report) const;

  // device_change.cpp: wg(8)'s set and friends
  Result<void> applyInterfaceChange(const DeviceChange& change);
  void applyPeerChange(const PeerChange& change, std::vector<std::string>& remarks);
  void moveAllowedIps(Peer& peer, std::vector<std::string>& remarks);

  // device_peers.cpp
  Peer* find(noise::PeerId id);
  Peer* find(const crypto::PublicKey& key);
  Peer& addPeer(const crypto::PublicKey& key);
  void removePeer(const crypto::PublicKey& key);
  void configurePeer(Peer& peer, const config::PeerConfig& config);
  void pushPeer(Peer& peer);
  void setEndpoint(Peer& peer, const Endpoint& endpoint);
  void startLookup(Peer& peer);
  void runTimers();
  void scheduleTimers();
  void storePeer(const Peer& peer);
  void greetPeers();

  // device_adoption.cpp: what a former daemon left in the data plane
  [[nodiscard]] const dataplane::KeptPeer* keptPeer(const crypto::PublicKey& key) const;
  void adoptTimestamp(const dataplane::KeptPeer& kept);
  void adoptPeer(Peer& peer, const dataplane::KeptPeer& kept);
  bool restoreSession(const Peer& peer, const dataplane::PeerStats& stats);
  [[nodiscard]] bool hasLiveSession(const Peer& peer) const;
  void removeForgottenPeers();
  void adoptConfirmedSession(noise::PeerId id);

  // device_enrol.cpp: machines that join by an invitation
  /// The enrolment peers that the configuration asks for at this time, and no others.
  void updateInvitations();
  void hearJoin(Peer& peer, std::span<const std::uint8_t> message);
  void answerJoin(noise::PeerId id, const std::vector<std::uint8_t>& message);
  [[nodiscard]] enrol::Verdict judgeJoin(Peer& peer, const crypto::PublicKey& joining);
  [[nodiscard]] enrol::Answer acceptedAnswer(const config::InvitationConfig& invitation,
                                             const crypto::PublicKey& joining) const;

  // dataplane::EventSink
  void needHandshake(noise::PeerId peer, dataplane::HandshakeReason reason) override;
  void keyConfirmed(noise::PeerId peer) override;
  void endpointMoved(noise::PeerId peer, const Endpoint& endpoint) override;
  void keysExpired(noise::PeerId peer) override;
  void control(noise::PeerId peer, std::span<const std::uint8_t> message) override;
  void handshake(std::span<const std::uint8_t> datagram, const Endpoint& source,
                 const LocalAddress& local, std::size_t backlog) override;

  // noise::SessionActions
  Result<void> installKeys(noise::PeerId peer, const crypto::PublicKey& peerKey,
                           const noise::SessionKeys& keys) override;
  Result<void> sendInitiation(noise::PeerId peer, std::span<const std::uint8_t> datagram) override;
  void sendReply(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                 const LocalAddress& local) override;
  void sendControl(noise::PeerId peer, std::span<const std::uint8_t> message) override;
  void dropStaged(noise::PeerId peer) override;
  void dropKeys(noise::PeerId peer) override;
  void peerTimestampAccepted(noise::PeerId peer, const noise::Tai64n& timestamp) override;
  void suiteChosen(noise::PeerId peer, crypto::Suite suite) override;
  void handshakeCompleted(noise::PeerId peer, noise::Role role, crypto::Suite suite) override;
  void handshakeGivenUp(noise::PeerId peer) override;
  void initiationFailed(noise::PeerId peer, const Error& error) override;
  void handshakeRefused(const noise::RefusedHandshake& refused) override;

  // device_handshakes.cpp: what goes wrong with handshakes, in words
  [[nodiscard]] std::string ownKeyText() const;
  /// Regularly: looks for peers that do not answer and for what the data plane has dropped.
  void watchHandshakes();
  [[nodiscard]] std::optional<std::string> silenceOf(const Peer& peer) const;
  [[nodiscard]] std::vector<TroubleSnapshot> handshakeTroubles() const;

  // device_snapshot.cpp
  [[nodiscard]] PeerSnapshot snapshotOf(const Peer& peer, const dataplane::PeerStats* stats) const;

  // device_maps.cpp
  [[nodiscard]] std::vector<MapSnapshot> mapSnapshots() const;
  [[nodiscard]] const Peer* peerFor(const IpAddress& address) const;
  /// Why a mapping that is in the kernel may not work all the same; empty when nothing is known.
  [[nodiscard]] std::string remarkOn(const nat::Mapping& mapping) const;
  [[nodiscard]] std::string remarkOnGateway(const nat::Mapping& mapping) const;

  // device_pcp.cpp: ports that peers ask for, and that this host asks for
  /// Before the network is derived: which leases still hold.
  void updatePortServer();
  /// Puts the leases of now into force, beside everything else that is.
  Result<void> applyLeases();
  /// After the network is there.
  void askForPorts();
  void withdrawPorts();
  [[nodiscard]] std::vector<nat::Mapping> leases() const;
  [[nodiscard]] PortServerFacts portServerFacts() const;
  /// The server can be heard, and does not answer: said once, while it lasts.
  void watchPorts();
  [[nodiscard]] std::string portTrouble() const;
  [[nodiscard]] std::vector<PortRequestSnapshot> portRequests() const;
  /// Fills in what the server says to a mapping of this host's own file.
  void describeRequest(const nat::Mapping& declared, MapSnapshot& map) const;

  DeviceParts parts_;
  DeviceOptions options_;
  UndoRecord undo_;
  noise::TimestampSource timestamps_;
  noise::Sessions sessions_;
  Reconciler reconciler_;
  DeviceTune tune_;

  config::Config config_;
  std::vector<config::FileStamp> files_;
  /// "FILE:LINE:COLUMN: what is doubtful" of the files that are in force.
  std::vector<std::string> fileWarnings_;
  /// What wg(8) or the file set last; the file's values until somebody changes them.
  std::optional<crypto::PrivateKey> privateKey_;
  dataplane::DeviceSettings settings_;
  NetworkFacts facts_;
  DesiredNetwork desired_;
  std::unique_ptr<PortServer> portServer_;
  std::unique_ptr<PortClient> portClient_;
  std::string portTroubleTold_;
  std::vector<std::string> warnings_;
  std::string dnsWarning_;
  HandshakeTrouble trouble_;
  Peers peers_;
  std::map<crypto::PublicKey, noise::PeerId> byKey_;
  noise::PeerId nextPeerId_ = 1;
  bool started_ = false;
  /// Start, reload, down or a hook is under way; what comes in meanwhile by the sockets or from the
  /// kernel must not change the network too.
  bool changing_ = false;
  /// down() has been through.
  bool undone_ = false;

  EventSource dataPlaneEvents_;
  EventSource timer_;
  EventSource suspendCheck_;
};

}  // namespace adit::control
