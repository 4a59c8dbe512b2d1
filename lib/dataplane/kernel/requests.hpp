// What goes to adit.ko, as messages of its family. Private to dataplane/kernel.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "dataplane/dataplane.hpp"
#include "netlink/genl.hpp"

namespace adit::dataplane::kernel {

/// Interface index of a device.
using Interface = std::uint32_t;

/// What is absent stays as it is.
struct DeviceChange {
  std::optional<std::uint16_t> listenPort;
  std::optional<std::uint32_t> firewallMark;
  std::optional<IpAddress> bindAddress;
  std::optional<crypto::PublicKey> publicKey;
  std::optional<bool> claim;
  [[nodiscard]] bool empty() const {
    return !listenPort && !firewallMark && !bindAddress && !publicKey && !claim;
  }
};

/// What is absent stays as it is.
struct PeerChange {
  PeerId id = 0;
  /// Given, the peer is created where it does not exist; otherwise that is an error.
  std::optional<crypto::PublicKey> publicKey;
  bool roam = true;
  std::optional<std::uint16_t> persistentKeepalive;
  std::optional<std::span<const Prefix>> allowedIps;
  std::optional<Endpoint> endpoint;
  std::optional<LocalAddress> local;
  std::optional<std::span<const std::uint8_t>> mark;
};

netlink::GenlRequest getDevice(Interface interface);
netlink::GenlRequest setDevice(Interface interface, const DeviceChange& change);
netlink::GenlRequest getPeers(Interface interface);
/// More than one message where the allowed IPs do not fit into one; to be sent in this order.
std::vector<netlink::GenlRequest> setPeer(Interface interface, const PeerChange& change);
/// One of the commands that take nothing but the peer.
netlink::GenlRequest peerCommand(std::uint8_t command, Interface interface, PeerId peer);
netlink::GenlRequest newKey(Interface interface, PeerId peer, const crypto::PublicKey& peerKey,
                            const noise::SessionKeys& keys);
netlink::GenlRequest sendControl(Interface interface, PeerId peer,
                                 std::span<const std::uint8_t> message);
netlink::GenlRequest sendHandshake(Interface interface, std::span<const std::uint8_t> datagram,
                                   const Endpoint& destination,
                                   const std::optional<LocalAddress>& local);

}  // namespace adit::dataplane::kernel
