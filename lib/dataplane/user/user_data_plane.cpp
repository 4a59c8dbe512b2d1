#include "dataplane/user/user_data_plane.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "crypto/aead.hpp"
#include "wire/messages.h"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kEventsPerDispatch = 64;
// How soon what packet threads note without a wake-up (times of traffic, the device's MTU) is
// looked at. Short against every timeout that counts from it.
constexpr std::chrono::seconds kLookAfter{1};
constexpr std::chrono::seconds kMovesApart{1};
// AF41, as WireGuard marks handshakes.
constexpr std::uint8_t kHandshakeTos = 0x88;

const Clock& systemClock() {
  static const SystemClock clock;
  return clock;
}

// More of them have to share what the kernel does for a device under locks of its own.
constexpr std::size_t kMostLanes = 4;

// A lane is two threads; see lane.hpp. Each costs some MB of buffers.
std::size_t chooseLanes(std::size_t wanted) {
  if (wanted > 0) return wanted;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / Lane::kSeats, 1, kMostLanes);
}

}  // namespace

Result<std::unique_ptr<DataPlane>> createUserDataPlane(const UserOptions& options) {
  return UserDataPlane::create(options);
}

Result<std::unique_ptr<DataPlane>> UserDataPlane::create(const UserOptions& options) {
  if (const auto ready = crypto::initializeAead(); !ready) return tl::unexpected(ready.error());
  TunSettings settings;
  settings.name = options.interface;
  settings.mtu = options.mtu;
  settings.queues = chooseLanes(options.lanes);
  settings.offload = options.offload.tunSegmentation;
  settings.openDevice = options.openTun;
  auto tun = Tun::open(settings);
  if (!tun) return tl::unexpected(tun.error());
  const Clock& clock = options.clock != nullptr ? *options.clock : systemClock();
  std::unique_ptr<UserDataPlane> plane(new UserDataPlane(options, clock, std::move(*tun)));
  if (const auto opened = plane->openEvents(); !opened) return tl::unexpected(opened.error());
  plane->startLanes();
  return plane;
}

UserDataPlane::UserDataPlane(const UserOptions& options, const Clock& clock, Tun tun)
    : device_(clock, tun.queues() * Lane::kSeats),
      tun_(std::move(tun)),
      offload_(options.offload),
      own_(device_) {
  device_.mtu = readMtu(tun_.name());
  device_.mergeTcp = offload_.tunMerging && tun_.offload().tcp;
  device_.mergeUdp = offload_.tunMerging && tun_.offload().udp;
  sendsAreChanged_ = offload_.udpSegmentation && offload_.selfTest && !udpSegmentationIsSound();
  device_.segmentSends = offload_.udpSegmentation && !sendsAreChanged_;
}

UserDataPlane::~UserDataPlane() {
  stopLanes();
}

Result<void> UserDataPlane::openEvents() {
  timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  events_.reset(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {timer_.get(), device_.controlSignal.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return failErrno(errno, "cannot watch the events of {}", tun_.name());
    }
  }
  return {};
}

void UserDataPlane::startLanes() {
  for (std::size_t i = 0; i < tun_.queues(); ++i) {
    lanes_.push_back(std::make_unique<Lane>(device_, i, tun_.queue(i)));
  }
  // Each lane's sockets stay at one place; only what is in it changes.
  own_.setSockets(&sockets());
  for (const auto& lane : lanes_) {
    lane->start();
  }
}

void UserDataPlane::stopLanes() {
  for (const auto& lane : lanes_) {
    lane->stop();
  }
}

void UserDataPlane::destroyInterface() {
  stopLanes();
  tun_.destroy();
}

std::array<std::uint32_t, ADIT_SUITE_COUNT> UserDataPlane::suiteSpeeds() const {
  std::array<std::uint32_t, ADIT_SUITE_COUNT> speeds{};
  std::ranges::transform(crypto::aeadChoices(), speeds.begin(),
                         &crypto::AeadChoice::megabytesPerSecond);
  return speeds;
}

std::vector<std::string> UserDataPlane::remarks() const {
  std::vector<std::string> remarks;
  if (sendsAreChanged_) {
    remarks.emplace_back(
        "this kernel changes datagrams that are sent with UDP segmentation offload (self-test over "
        "loopback): each is sent by itself, which is slower");
  }
  if (offload_.tunSegmentation && !tun_.offload().tcp) {
    remarks.emplace_back(
        "this kernel's TUN devices have no segmentation offload: packets come and go one by one, "
        "which is slower");
  } else if (offload_.tunMerging && tun_.offload().tcp &&
             !device_.mergeTcp.load(std::memory_order_relaxed)) {
    remarks.emplace_back(
        "this kernel has refused a merged packet of the TUN device: packets are written one by "
        "one, which is slower");
  }
  return remarks;
}

SocketSettings UserDataPlane::socketSettings(const DeviceSettings& settings) const {
  return {.port = settings.listenPort,
          .bindAddress = settings.bindAddress,
          .firewallMark = settings.firewallMark,
          .receiveOffload = offload_.udpMerging};
}

Result<std::vector<UdpSockets>> UserDataPlane::openSockets(const DeviceSettings& settings) const {
  return UdpSockets::openGroup(socketSettings(settings), lanes_.size());
}

void UserDataPlane::adopt(std::vector<UdpSockets> sockets) {
  sockets.resize(lanes_.size());
  {
    const BatchGate::Exclusive guard(device_.gate);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i]->setSockets(std::move(sockets[i]));
    }
  }
  for (const auto& lane : lanes_) {
    lane->awaitSockets();
  }
}

Result<void> UserDataPlane::rebind(const DeviceSettings& settings) {
  auto opened = openSockets(settings);
  const bool samePort = settings.listenPort != 0 && settings.listenPort == sockets().port();
  if (!opened && samePort && opened.error().code == EADDRINUSE) {
    // Our own sockets hold the port: let go of them first, and take it back on failure.
    adopt({});
    opened = openSockets(settings);
    if (!opened) {
      DeviceSettings old = settings_;
      old.listenPort = settings.listenPort;
      if (auto again = openSockets(old)) adopt(std::move(*again));
    }
  }
  if (!opened) return tl::unexpected(opened.error());
  adopt(std::move(*opened));
  return {};
}

Result<void> UserDataPlane::configure(const DeviceSettings& settings) {
  const bool moved = settings.listenPort != settings_.listenPort ||
                     settings.bindAddress != settings_.bindAddress || !sockets().isOpen();
  if (moved) {
    if (const auto bound = rebind(settings); !bound) return bound;
  } else if (settings.firewallMark != settings_.firewallMark) {
    for (const auto& lane : lanes_) {
      if (const auto marked = lane->sockets().setFirewallMark(settings.firewallMark); !marked) {
        return marked;
      }
    }
  }
  if (settings.publicKey != settings_.publicKey) {
    const BatchGate::Exclusive guard(device_.gate);
    for (const auto& lane : lanes_) {
      lane->setPublicKey(settings.publicKey);
    }
  }
  settings_ = settings;
  return {};
}

Result<void> UserDataPlane::setPeer(const PeerSettings& settings) {
  if (const Peer* known = device_.table.peer(settings.id);
      known != nullptr && known->publicKey != settings.publicKey) {
    return fail("peer {} has another public key", settings.id);
  }
  const BatchGate::Exclusive guard(device_.gate);
  device_.table.set(settings);
  // Persistent keepalive may have been switched on.
  device_.controlSignal.notify();
  return {};
}

Result<void> UserDataPlane::removePeer(PeerId peer) {
  const BatchGate::Exclusive guard(device_.gate);
  device_.table.remove(peer);
  return {};
}

Result<void> UserDataPlane::setEndpoint(PeerId id, const Endpoint& endpoint,
                                        const std::optional<LocalAddress>& local) {
  Peer* peer = device_.table.peer(id);
  if (peer == nullptr) return fail("there is no peer {}", id);
  peer->endpoint.set(endpoint, local.value_or(LocalAddress{}));
  device_.controlSignal.notify();
  return {};
}

Result<void> UserDataPlane::installKeys(PeerId id, const crypto::PublicKey& peerKey,
                                        const noise::SessionKeys& keys) {
  Peer* peer = device_.table.peer(id);
  if (peer == nullptr) return fail("there is no peer {}", id);
  if (peer->publicKey != peerKey) return fail("peer {} has another public key", id);
  if (device_.table.indexInUse(keys.localIndex)) {
    return fail("session index {:#x} is in use", keys.localIndex);
  }
  if (!peer->history.add(keys)) return fail("peer {} had a session with these keys", id);
  auto session = std::make_unique<Session>(*peer, keys, device_.clock.now());
  const bool current = keys.slot == noise::KeySlot::Current;
  {
    const BatchGate::Exclusive guard(device_.gate);
    device_.table.addSession(std::move(session), keys.slot);
    // A handshake was answered: the other side is there.
    peer->activity.unansweredSince.clear();
    if (current) peer->activity.keyAged.clear();
  }
  peer->timers.keyInstalled();
  if (current && peer->staging.empty()) {
    sendOwn(*peer, {});
  } else if (current) {
    wakeTransmit(*peer);
  }
  device_.controlSignal.notify();
  return {};
}

Result<void> UserDataPlane::dropKeys(PeerId id) {
  Peer* peer = device_.table.peer(id);
  if (peer == nullptr) return fail("there is no peer {}", id);
  const BatchGate::Exclusive guard(device_.gate);
  peer->slots.clear();
  device_.table.freeRetired();
  peer->activity.keyAged.clear();
  return {};
}

void UserDataPlane::dropStaged(PeerId id) {
  if (Peer* peer = device_.table.peer(id); peer != nullptr) peer->staging.clear();
}

void UserDataPlane::wakeTransmit(Peer& peer) {
  peer.flushWanted.store(true, std::memory_order_release);
  lanes_.front()->wake();
}

void UserDataPlane::sendOwn(Peer& peer, std::span<const std::uint8_t> packet) {
  const BootTime now = device_.clock.now();
  Session* session = peer.slots.current();
  if (session == nullptr) return;
  if (!session->canSend(now)) {
    device_.drop(Drop::KeyExpired, &peer);
    return;
  }
  ownBuffer_.assign(packet.begin(), packet.end());
  ownBuffer_.resize(packet.size() + ADIT_PADDING_MULTIPLE);
  own_.setTime(now);
  own_.addPacket(*session, std::span(ownBuffer_).first(packet.size()), 0);
  own_.flush();
}

void UserDataPlane::sendControl(PeerId id, std::span<const std::uint8_t> message) {
  if (Peer* peer = device_.table.peer(id); peer != nullptr && !message.empty()) {
    sendOwn(*peer, message);
  }
}

Result<void> UserDataPlane::sendHandshake(std::span<const std::uint8_t> datagram,
                                          const Endpoint& endpoint,
                                          const std::optional<LocalAddress>& local) {
  if (!sockets().isOpen()) return fail("the device has no socket yet");
  Destination destination;
  destination.length = endpoint.toSockaddr(destination.address);
  destination.source = local.value_or(LocalAddress{});
  const SendOutcome outcome =
      sendDatagrams(sockets(), destination, datagram, datagram.size(), kHandshakeTos, false);
  if (outcome.error != 0) {
    device_.drop(Drop::SendFailed);
    return failErrno(outcome.error, "cannot send to {}", endpoint.toString());
  }
  return {};
}

std::vector<PeerStats> UserDataPlane::peerStats() const {
  std::vector<PeerStats> all;
  for (const auto& [id, peer] : device_.table.peers()) {
    PeerStats& stats = all.emplace_back();
    stats.id = id;
    stats.endpoint = peer->endpoint.endpoint();
    stats.rxBytes = peer->rxBytes.get();
    stats.txBytes = peer->txBytes.get();
    stats.rxPackets = peer->rxPackets.get();
    stats.txPackets = peer->txPackets.get();
    stats.lastReceive = peer->activity.lastReceived.get();
    if (const Session* session = peer->slots.current(); session != nullptr) {
      stats.suite = session->suite();
      stats.sessionStart = session->start();
      stats.sessionInitiator = session->initiator();
    }
    stats.drops = peer->drops.get();
  }
  return all;
}

DeviceStats UserDataPlane::deviceStats() const {
  return {.listenPort = sockets().port(), .drops = device_.drops.get()};
}

void UserDataPlane::dispatch(EventSink& sink) {
  device_.controlSignal.drain();
  std::size_t handled = 0;
  for (; handled < kEventsPerDispatch; ++handled) {
    const auto datagram = device_.handshakes.pop();
    if (!datagram) break;
    sink.handshake(datagram->datagram(), datagram->source, datagram->local, datagram->backlog);
  }
  for (; handled < 2 * kEventsPerDispatch; ++handled) {
    const auto message = device_.controls.pop();
    if (!message) break;
    sink.control(message->peer, message->bytes);
  }
  if (handled >= kEventsPerDispatch) device_.controlSignal.notify();

  const BootTime now = device_.clock.now();
  followMtu(now);
  wakeAt_.reset();
  // The sink may add and remove peers.
  std::vector<PeerId> ids;
  for (const auto& [id, peer] : device_.table.peers()) {
    ids.push_back(id);
  }
  for (const PeerId id : ids) {
    if (Peer* peer = device_.table.peer(id); peer != nullptr) evaluateTimers(*peer, now, sink);
    if (Peer* peer = device_.table.peer(id); peer != nullptr) tellPeerEvents(*peer, now, sink);
  }
  armTimer(now);
}

void UserDataPlane::followMtu(BootTime now) {
  if (now - mtuRead_ < kLookAfter) return;
  mtuRead_ = now;
  if (const unsigned mtu = readMtu(tun_.name()); mtu != 0) device_.mtu = mtu;
}

void UserDataPlane::evaluateTimers(Peer& peer, BootTime now, EventSink& sink) {
  PeerSessions sessions;
  for (const Session* session : peer.slots.all()) {
    if (session == nullptr) continue;
    sessions.any = true;
    if (session->start() >= sessions.newestStart) {
      sessions.newestStart = session->start();
      sessions.rejectAfter = session->limits().rejectAfter;
    }
  }
  Session* current = peer.slots.current();
  sessions.usable = current != nullptr && current->canSend(now);
  const PeerNeeds needs{.staged = !peer.staging.empty(),
                        .hasEndpoint = peer.endpoint.endpoint().has_value(),
                        .persistentKeepalive = peer.persistentKeepalive};
  const TimerActions actions = peer.timers.evaluate(now, peer.activity.snapshot(), sessions, needs);
  if (actions.next) wakeAt(*actions.next);
  if (sessions.any) wakeAt(now + kLookAfter);
  // Packets that were staged while the key arrived.
  if (needs.staged && sessions.usable) wakeTransmit(peer);
  if (actions.sendKeepalive) sendOwn(peer, {});
  const PeerId id = peer.id;
  if (actions.wipeKeys) {
    dropKeys(id);
    sink.keysExpired(id);
  }
  if (actions.handshake) sink.needHandshake(id, *actions.handshake);
}

void UserDataPlane::tellPeerEvents(Peer& peer, BootTime now, EventSink& sink) {
  const PeerId id = peer.id;
  if (peer.endpoint.moved()) {
    if (now - peer.lastMoveTold >= kMovesApart || peer.lastMoveTold == BootTime{}) {
      peer.lastMoveTold = now;
      if (const auto endpoint = peer.endpoint.takeMoved()) sink.endpointMoved(id, *endpoint);
    } else {
      wakeAt(peer.lastMoveTold + kMovesApart);
    }
  }
  if (Peer* still = device_.table.peer(id);
      still != nullptr && still->confirmed.exchange(false, std::memory_order_acquire)) {
    {
      const BatchGate::Exclusive guard(device_.gate);
      device_.table.freeRetired();
    }
    sink.keyConfirmed(id);
  }
}

void UserDataPlane::wakeAt(BootTime time) {
  wakeAt_ = wakeAt_ ? std::min(*wakeAt_, time) : time;
}

void UserDataPlane::armTimer(BootTime now) {
  itimerspec when{};
  if (wakeAt_) {
    // A zero time would disarm it.
    const auto delay =
        std::max<std::chrono::nanoseconds>(*wakeAt_ - now, std::chrono::milliseconds(1));
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(delay);
    when.it_value.tv_sec = whole.count();
    when.it_value.tv_nsec = (delay - whole).count();
  }
  // Setting it also takes back that it was readable.
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace adit::dataplane::user
