#include "dataplane/kernel/kernel_data_plane.hpp"

#include <algorithm>
#include <cerrno>

#include "uapi/adit.h"

namespace adit::dataplane::kernel {
namespace {

constexpr int kAttempts = 3;

const Clock& systemClock() {
  static const SystemClock clock;
  return clock;
}

tl::unexpected<Error> portError(const Error& error, std::uint16_t port) {
  if (error.code != EADDRINUSE) return tl::unexpected(error);
  return tl::unexpected(Error{
      port == 0 ? "every UDP port is in use"
                : fmt::format("UDP port {} is in use by another program: address in use", port),
      error.code});
}

}  // namespace

Result<std::unique_ptr<DataPlane>> createKernelDataPlane(
    std::unique_ptr<netlink::GenlChannel> channel, netlink::Routing& routing,
    const KernelOptions& options) {
  return KernelDataPlane::create(std::move(channel), routing, options);
}

KernelDataPlane::KernelDataPlane(std::unique_ptr<netlink::GenlChannel> channel,
                                 netlink::Routing& routing, const KernelOptions& options,
                                 const netlink::Link& link)
    : channel_(std::move(channel)),
      routing_(routing),
      clock_(options.clock != nullptr ? *options.clock : systemClock()),
      name_(link.name),
      interface_(link.index) {}

void KernelDataPlane::destroyInterface() {
  // Nobody is left to hear of a failure; the interface then shows in `ip link`.
  static_cast<void>(routing_.deleteLink(interface_));
}

Result<void> KernelDataPlane::repeatable(const netlink::GenlRequest& request) {
  Result<void> result;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    result = channel_->change(request);
    if (result || result.error().code != ENOBUFS) break;
  }
  return result;
}

Result<void> KernelDataPlane::configure(const DeviceSettings& settings) {
  DeviceChange change;
  // A port that was found with the interface is as good as any that the system would choose.
  const bool keepsPort = !configured_ && settings.listenPort == 0;
  if (settings.listenPort != settings_.listenPort && !keepsPort &&
      (settings.listenPort == 0 || settings.listenPort != deviceStats().listenPort)) {
    change.listenPort = settings.listenPort;
  }
  if (settings.firewallMark != settings_.firewallMark) change.firewallMark = settings.firewallMark;
  if (settings.bindAddress != settings_.bindAddress) change.bindAddress = settings.bindAddress;
  if (settings.publicKey != settings_.publicKey) change.publicKey = settings.publicKey;
  if (!change.empty()) {
    if (const auto done = repeatable(setDevice(interface_, change)); !done) {
      return portError(done.error(), settings.listenPort);
    }
  }
  settings_ = settings;
  if (!configured_) {
    if (auto up = bringUp(settings.listenPort); !up) return up;
    configured_ = true;
  }
  return {};
}

Result<void> KernelDataPlane::bringUp(std::uint16_t listenPort) {
  const auto link = routing_.findLink(name_);
  if (!link) return tl::unexpected(link.error());
  if (*link && (*link)->up) return {};
  if (auto silent = routing_.setLinkSilent(interface_); !silent) return silent;
  if (const auto up = routing_.setLinkUp(interface_, true); !up) {
    return portError(up.error(), listenPort);
  }
  return {};
}

KernelDataPlane::Peer* KernelDataPlane::find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

PeerChange KernelDataPlane::changesOf(const Peer* known, const PeerSettings& settings) const {
  PeerChange change;
  change.id = settings.id;
  change.publicKey = settings.publicKey;
  change.roam = settings.roam;
  const bool everything = known == nullptr || known->uncertain;
  if (everything || known->settings.persistentKeepalive != settings.persistentKeepalive) {
    change.persistentKeepalive = settings.persistentKeepalive;
  }
  // The kernel's list has an order of its own.
  if (everything || !std::ranges::is_permutation(known->settings.allowedIps, settings.allowedIps)) {
    change.allowedIps = settings.allowedIps;
  }
  return change;
}

Result<void> KernelDataPlane::setPeer(const PeerSettings& settings) {
  Peer* known = find(settings.id);
  if (known != nullptr && known->settings.publicKey != settings.publicKey) {
    return fail("peer {} has another public key", settings.id);
  }
  const PeerChange change = changesOf(known, settings);
  const bool same = known != nullptr && !change.persistentKeepalive && !change.allowedIps &&
                    known->settings.roam == settings.roam;
  if (same) return {};
  for (const netlink::GenlRequest& request : kernel::setPeer(interface_, change)) {
    if (auto done = repeatable(request); !done) {
      if (known != nullptr) known->uncertain = true;
      return wrapError(done.error(), "the kernel refuses the peer");
    }
  }
  Peer& peer = peers_[settings.id];
  peer.settings = settings;
  peer.uncertain = false;
  if (change.allowedIps) takeFromOthers(settings);
  return {};
}

void KernelDataPlane::takeFromOthers(const PeerSettings& owner) {
  for (auto& [id, other] : peers_) {
    if (id == owner.id) continue;
    std::erase_if(other.settings.allowedIps, [&](const Prefix& prefix) {
      return std::ranges::find(owner.allowedIps, prefix) != owner.allowedIps.end();
    });
  }
}

Result<void> KernelDataPlane::removePeer(PeerId id) {
  peers_.erase(id);
  auto done = repeatable(peerCommand(ADIT_CMD_DEL_PEER, interface_, id));
  if (!done && done.error().code != ENOENT) return wrapError(done.error(), "remove a peer");
  return {};
}

Result<void> KernelDataPlane::setEndpoint(PeerId id, const Endpoint& endpoint,
                                          const std::optional<LocalAddress>& local) {
  Peer* peer = find(id);
  if (peer == nullptr) return fail("there is no peer {}", id);
  PeerChange change;
  change.id = id;
  change.roam = peer->settings.roam;
  change.endpoint = endpoint;
  change.local = local;
  if (auto done = repeatable(kernel::setPeer(interface_, change).front()); !done) {
    return wrapError(done.error(), fmt::format("set the endpoint {}", endpoint.toString()));
  }
  peer->endpoint = endpoint;
  return {};
}

Result<void> KernelDataPlane::keepMark(PeerId id, std::span<const std::uint8_t> mark) {
  const Peer* peer = find(id);
  if (peer == nullptr) return fail("there is no peer {}", id);
  PeerChange change;
  change.id = id;
  change.roam = peer->settings.roam;
  change.mark = mark;
  return repeatable(kernel::setPeer(interface_, change).front());
}

Result<void> KernelDataPlane::installKeys(PeerId id, const crypto::PublicKey& peerKey,
                                          const noise::SessionKeys& keys) {
  Peer* peer = find(id);
  if (peer == nullptr) return fail("there is no peer {}", id);
  const BootTime before = clock_.now();
  // Once only, whatever becomes of it: the same keys must never start twice.
  if (auto done = channel_->change(newKey(interface_, id, peerKey, keys)); !done) {
    return wrapError(done.error(), "the kernel refuses the keys");
  }
  peer->hasKeys = true;
  peer->unconfirmedSince = keys.slot == noise::KeySlot::Next ? std::optional(before) : std::nullopt;
  return {};
}

Result<void> KernelDataPlane::dropKeys(PeerId id) {
  if (Peer* peer = find(id)) {
    peer->hasKeys = false;
    peer->unconfirmedSince.reset();
  }
  if (auto done = repeatable(peerCommand(ADIT_CMD_DEL_KEYS, interface_, id)); !done) {
    return wrapError(done.error(), "wipe the keys of a peer");
  }
  return {};
}

void KernelDataPlane::dropStaged(PeerId id) {
  // Without an acknowledgement the packets stay until there is a key, or until their queue is full.
  static_cast<void>(repeatable(peerCommand(ADIT_CMD_DROP_STAGED, interface_, id)));
}

void KernelDataPlane::sendControl(PeerId id, std::span<const std::uint8_t> message) {
  // It is a datagram, which may be lost on the way as well.
  static_cast<void>(channel_->change(kernel::sendControl(interface_, id, message)));
}

Result<void> KernelDataPlane::sendHandshake(std::span<const std::uint8_t> datagram,
                                            const Endpoint& destination,
                                            const std::optional<LocalAddress>& local) {
  if (auto done = channel_->change(kernel::sendHandshake(interface_, datagram, destination, local));
      !done) {
    return wrapError(done.error(), fmt::format("cannot send to {}", destination.toString()));
  }
  return {};
}

Result<DeviceAnswer> KernelDataPlane::readDevice() const {
  std::optional<DeviceAnswer> found;
  const auto done = channel_->query(
      netlink::GenlChannel::Query::One, getDevice(interface_), [&] { found.reset(); },
      [&](std::uint8_t, const netlink::Attributes& message) { found = deviceAnswer(message); });
  if (!done) return wrapError(done.error(), fmt::format("read the device {}", name_));
  if (!found) return failErrno(EBADMSG, "read the device {}", name_);
  return *std::move(found);
}

std::vector<PeerStats> KernelDataPlane::peerStats() const {
  std::vector<PeerStats> all;
  const auto peers = readPeers();
  if (!peers) return all;
  all.reserve(peers->size());
  std::ranges::transform(*peers, std::back_inserter(all), &PeerAnswer::stats);
  return all;
}

DeviceStats KernelDataPlane::deviceStats() const {
  const auto device = readDevice();
  if (!device) return {};
  return {.listenPort = device->listenPort, .drops = device->drops};
}

}  // namespace adit::dataplane::kernel
