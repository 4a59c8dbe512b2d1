// Finding or making the interface, claiming it, and taking over what a former daemon left in it.
#include <algorithm>
#include <cerrno>

#include "dataplane/kernel/kernel_data_plane.hpp"
#include "uapi/adit.h"

namespace adit::dataplane::kernel {

const std::uint32_t kOldestVersion = ADIT_GENL_VERSION;
const std::uint32_t kNewestVersion = ADIT_GENL_VERSION + 1;
const std::string_view kLinkKind = ADIT_LINK_KIND;

namespace {

/// An interface, and whether it has just been made.
struct FoundLink {
  netlink::Link link;
  bool created = false;
};

Result<FoundLink> findOrCreate(netlink::Routing& routing, const KernelOptions& options) {
  const std::string& name = options.interface;
  auto link = routing.findLink(name);
  if (!link) return tl::unexpected(link.error());
  FoundLink found;
  if (!*link) {
    if (auto created = routing.createLink(name, kLinkKind); !created) {
      return tl::unexpected(created.error());
    }
    found.created = true;
    link = routing.findLink(name);
    if (!link) return tl::unexpected(link.error());
    if (!*link) return failErrno(ENODEV, "the interface {} has vanished", name);
  }
  found.link = **link;
  if (found.link.kind != kLinkKind) {
    return tl::unexpected(
        Error{fmt::format("there is an interface {} already, of type {}", name, found.link.kind),
              EEXIST});
  }
  return found;
}

Result<DeviceAnswer> readDevice(netlink::GenlChannel& channel, Interface interface) {
  std::optional<DeviceAnswer> found;
  const auto done = channel.query(
      netlink::GenlChannel::Query::One, getDevice(interface), [&] { found.reset(); },
      [&](std::uint8_t, const netlink::Attributes& message) { found = deviceAnswer(message); });
  if (!done) return tl::unexpected(done.error());
  if (!found) return failErrno(EBADMSG, "adit.ko");
  return *std::move(found);
}

}  // namespace

Error versionMismatch(std::uint32_t version) {
  return {fmt::format("adit.ko speaks version {} of its interface, too {} for this adit, which "
                      "knows {} to {}",
                      version, version < kOldestVersion ? "old" : "new", kOldestVersion,
                      kNewestVersion),
          EPROTONOSUPPORT};
}

Result<std::unique_ptr<netlink::GenlChannel>> openChannel() {
  auto opened = netlink::GenlSocket::open(ADIT_GENL_NAME, {.oldest = kOldestVersion,
                                                           .newest = kNewestVersion,
                                                           .own = ADIT_GENL_VERSION,
                                                           .groups = {},
                                                           .receiveBuffer = 4 << 20});
  if (!opened && opened.error().code == EPROTONOSUPPORT) {
    const auto family = netlink::findGenlFamily(ADIT_GENL_NAME);
    return tl::unexpected(family ? versionMismatch(family->version) : opened.error());
  }
  if (!opened) return tl::unexpected(opened.error());
  return std::unique_ptr<netlink::GenlChannel>(std::move(*opened));
}

Result<bool> isClaimed(netlink::GenlChannel& channel, std::uint32_t interface) {
  const auto device = readDevice(channel, interface);
  if (!device) return tl::unexpected(device.error());
  return device->claimant != 0;
}

Result<std::unique_ptr<DataPlane>> KernelDataPlane::create(
    std::unique_ptr<netlink::GenlChannel> channel, netlink::Routing& routing,
    const KernelOptions& options) {
  auto found = findOrCreate(routing, options);
  if (!found) return tl::unexpected(found.error());
  std::unique_ptr<KernelDataPlane> plane(
      new KernelDataPlane(std::move(channel), routing, options, found->link));
  auto ready = plane->claim();
  if (ready) ready = plane->adopt();
  if (ready && found->created && options.mtu != 0) {
    ready = routing.setLinkMtu(plane->interface_, options.mtu);
  }
  if (!ready) {
    if (found->created) plane->destroyInterface();
    return tl::unexpected(ready.error());
  }
  return plane;
}

Result<void> KernelDataPlane::claim() {
  DeviceChange change;
  change.claim = true;
  auto claimed = repeatable(setDevice(interface_, change));
  if (claimed) return {};
  if (claimed.error().code == EBUSY) {
    return tl::unexpected(Error{fmt::format("interface {} is in use by another program: {}", name_,
                                            claimed.error().message),
                                EBUSY});
  }
  return wrapError(claimed.error(), fmt::format("claim the device {}", name_));
}

Result<void> KernelDataPlane::adopt() {
  const auto device = readDevice();
  if (!device) return tl::unexpected(device.error());
  const auto peers = readPeers();
  if (!peers) return tl::unexpected(peers.error());
  settings_ = {.listenPort = device->listenPort,
               .firewallMark = device->firewallMark,
               .bindAddress = device->bindAddress,
               .publicKey = device->publicKey};
  module_ = device->module;
  suiteSpeeds_ = device->suiteSpeeds;
  inheritance_.publicKey = device->publicKey;
  inheritance_.nextId = device->lastPeerId + 1;
  for (const PeerAnswer& answer : *peers) {
    const PeerId id = answer.settings.id;
    inheritance_.peers.push_back({answer.settings.publicKey, answer.mark, answer.stats});
    inheritance_.nextId = std::max(inheritance_.nextId, id + 1);
    Peer& peer = peers_[id];
    peer.settings = answer.settings;
    peer.endpoint = answer.stats.endpoint;
    peer.hasKeys = answer.stats.suite.has_value();
  }
  return {};
}

Result<std::vector<PeerAnswer>> KernelDataPlane::readPeers() const {
  std::vector<PeerAnswer> peers;
  const auto done = channel_->query(
      netlink::GenlChannel::Query::Dump, getPeers(interface_), [&] { peers.clear(); },
      [&](std::uint8_t, const netlink::Attributes& message) { addPeerAnswer(message, peers); });
  if (!done) return wrapError(done.error(), fmt::format("read the peers of {}", name_));
  return peers;
}

}  // namespace adit::dataplane::kernel
