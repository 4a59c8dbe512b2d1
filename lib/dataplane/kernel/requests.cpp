#include "dataplane/kernel/requests.hpp"

#include <algorithm>

#include "noise/cookie.hpp"
#include "uapi/adit.h"

namespace adit::dataplane::kernel {
namespace {

using netlink::GenlRequest;

/// A prefix takes 32 bytes at most, so that a message stays below 16 KiB: what every kernel
/// accepts, and far from the 64 KiB that an attribute can hold.
constexpr std::size_t kPrefixesPerMessage = 480;

/// Everything until the end of the scope is inside the attribute. The request must not be returned
/// within that scope: it may be moved away first.
class Nest {
 public:
  Nest(GenlRequest& request, std::uint16_t type)
      : request_(request), start_(request.beginNest(type)) {}
  ~Nest() { request_.endNest(start_); }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;

 private:
  GenlRequest& request_;
  std::size_t start_;
};

GenlRequest requestFor(std::uint8_t command, Interface interface) {
  GenlRequest request(command);
  request.putU32(ADIT_A_IFINDEX, interface);
  return request;
}

void putEndpoint(GenlRequest& request, std::uint16_t type, const Endpoint& endpoint) {
  const Nest nest(request, type);
  request.put(ADIT_A_ENDPOINT_ADDRESS, endpoint.address.bytes());
  request.putU16(ADIT_A_ENDPOINT_PORT, endpoint.port);
  if (endpoint.scopeId != 0) request.putU32(ADIT_A_ENDPOINT_IFINDEX, endpoint.scopeId);
}

/// An unspecified address leaves the choice to routing, as an absent attribute does.
void putLocal(GenlRequest& request, std::uint16_t type, const std::optional<LocalAddress>& local) {
  if (!local || local->address.isUnspecified()) return;
  const Nest nest(request, type);
  request.put(ADIT_A_ENDPOINT_ADDRESS, local->address.bytes());
  if (local->interfaceIndex != 0) {
    request.putU32(ADIT_A_ENDPOINT_IFINDEX, local->interfaceIndex);
  }
}

void putAllowedIps(GenlRequest& request, std::span<const Prefix> prefixes) {
  const Nest list(request, ADIT_A_PEER_ALLOWED_IPS);
  for (const Prefix& prefix : prefixes) {
    const Nest item(request, 0);
    request.put(ADIT_A_ALLOWED_IP_ADDRESS, prefix.address().bytes());
    request.putU8(ADIT_A_ALLOWED_IP_LENGTH, static_cast<std::uint8_t>(prefix.length()));
  }
}

std::uint32_t flagsOf(const PeerChange& change) {
  std::uint32_t flags = 0;
  if (!change.roam) flags |= ADIT_PEER_F_NO_ROAM;
  if (!change.publicKey) flags |= ADIT_PEER_F_UPDATE_ONLY;
  return flags;
}

/// Everything but the prefixes that did not fit.
GenlRequest firstPeerMessage(Interface interface, const PeerChange& change,
                             std::optional<std::span<const Prefix>> prefixes) {
  GenlRequest request = requestFor(ADIT_CMD_SET_PEER, interface);
  {
    const Nest peer(request, ADIT_A_PEER);
    request.putU64(ADIT_A_PEER_ID, change.id);
    if (change.publicKey) request.put(ADIT_A_PEER_PUBLIC_KEY, change.publicKey->bytes);
    request.putU32(ADIT_A_PEER_FLAGS, flagsOf(change));
    if (change.endpoint) putEndpoint(request, ADIT_A_PEER_ENDPOINT, *change.endpoint);
    putLocal(request, ADIT_A_PEER_LOCAL, change.local);
    if (change.persistentKeepalive) {
      request.putU16(ADIT_A_PEER_PERSISTENT_KEEPALIVE, *change.persistentKeepalive);
    }
    if (change.mark) request.put(ADIT_A_PEER_COOKIE, *change.mark);
    if (prefixes) putAllowedIps(request, *prefixes);
  }
  return request;
}

GenlRequest furtherPeerMessage(Interface interface, const PeerChange& change,
                               std::span<const Prefix> prefixes) {
  GenlRequest request = requestFor(ADIT_CMD_SET_PEER, interface);
  {
    const Nest peer(request, ADIT_A_PEER);
    request.putU64(ADIT_A_PEER_ID, change.id);
    request.putU32(ADIT_A_PEER_FLAGS,
                   flagsOf(change) | ADIT_PEER_F_UPDATE_ONLY | ADIT_PEER_F_APPEND_ALLOWED_IPS);
    putAllowedIps(request, prefixes);
  }
  return request;
}

}  // namespace

GenlRequest getDevice(Interface interface) {
  return requestFor(ADIT_CMD_GET_DEVICE, interface);
}

GenlRequest setDevice(Interface interface, const DeviceChange& change) {
  GenlRequest request = requestFor(ADIT_CMD_SET_DEVICE, interface);
  {
    const Nest device(request, ADIT_A_DEVICE);
    if (change.listenPort) request.putU16(ADIT_A_DEVICE_LISTEN_PORT, *change.listenPort);
    if (change.firewallMark) request.putU32(ADIT_A_DEVICE_FWMARK, *change.firewallMark);
    if (change.bindAddress) {
      request.put(ADIT_A_DEVICE_BIND_ADDRESS, change.bindAddress->isUnspecified()
                                                  ? std::span<const std::uint8_t>()
                                                  : change.bindAddress->bytes());
    }
    if (change.publicKey) {
      request.put(ADIT_A_DEVICE_MAC1_KEY, noise::mac1Key(*change.publicKey));
      request.put(ADIT_A_DEVICE_PUBLIC_KEY, change.publicKey->bytes);
    }
    if (change.claim) request.putU8(ADIT_A_DEVICE_CLAIM, *change.claim ? 1 : 0);
  }
  return request;
}

GenlRequest getPeers(Interface interface) {
  return requestFor(ADIT_CMD_GET_PEER, interface);
}

std::vector<GenlRequest> setPeer(Interface interface, const PeerChange& change) {
  std::vector<GenlRequest> requests;
  std::span<const Prefix> rest = change.allowedIps.value_or(std::span<const Prefix>());
  const auto takePrefixes = [&] {
    const auto taken = rest.first(std::min(rest.size(), kPrefixesPerMessage));
    rest = rest.subspan(taken.size());
    return taken;
  };
  requests.push_back(firstPeerMessage(
      interface, change, change.allowedIps ? std::optional(takePrefixes()) : std::nullopt));
  while (!rest.empty()) {
    requests.push_back(furtherPeerMessage(interface, change, takePrefixes()));
  }
  return requests;
}

GenlRequest peerCommand(std::uint8_t command, Interface interface, PeerId peer) {
  GenlRequest request = requestFor(command, interface);
  {
    const Nest nest(request, ADIT_A_PEER);
    request.putU64(ADIT_A_PEER_ID, peer);
  }
  return request;
}

GenlRequest newKey(Interface interface, PeerId peer, const crypto::PublicKey& peerKey,
                   const noise::SessionKeys& keys) {
  GenlRequest request = requestFor(ADIT_CMD_NEW_KEY, interface);
  {
    const Nest nest(request, ADIT_A_KEY);
    request.putU64(ADIT_A_KEY_PEER_ID, peer);
    request.put(ADIT_A_KEY_PEER_PUBLIC_KEY, peerKey.bytes);
    request.putU8(ADIT_A_KEY_SLOT, keys.slot == noise::KeySlot::Current ? ADIT_KEY_SLOT_CURRENT
                                                                        : ADIT_KEY_SLOT_NEXT);
    request.putU8(ADIT_A_KEY_SUITE, static_cast<std::uint8_t>(keys.suite));
    request.putU32(ADIT_A_KEY_LOCAL_INDEX, keys.localIndex);
    request.putU32(ADIT_A_KEY_REMOTE_INDEX, keys.remoteIndex);
    request.put(ADIT_A_KEY_SEND, keys.send.bytes());
    request.put(ADIT_A_KEY_RECEIVE, keys.receive.bytes());
    request.putU64(ADIT_A_KEY_REKEY_AFTER,
                   static_cast<std::uint64_t>(keys.limits.rekeyAfter.count()));
    request.putU64(ADIT_A_KEY_REJECT_AFTER,
                   static_cast<std::uint64_t>(keys.limits.rejectAfter.count()));
    request.putU64(ADIT_A_KEY_REKEY_AFTER_MESSAGES, keys.limits.rekeyAfterMessages);
    request.putU64(ADIT_A_KEY_REJECT_AFTER_MESSAGES, keys.limits.rejectAfterMessages);
  }
  return request;
}

GenlRequest sendControl(Interface interface, PeerId peer, std::span<const std::uint8_t> message) {
  GenlRequest request = peerCommand(ADIT_CMD_SEND_CONTROL, interface, peer);
  request.put(ADIT_A_PAYLOAD, message);
  return request;
}

GenlRequest sendHandshake(Interface interface, std::span<const std::uint8_t> datagram,
                          const Endpoint& destination, const std::optional<LocalAddress>& local) {
  GenlRequest request = requestFor(ADIT_CMD_SEND_HANDSHAKE, interface);
  request.put(ADIT_A_PAYLOAD, datagram);
  putEndpoint(request, ADIT_A_ENDPOINT, destination);
  putLocal(request, ADIT_A_LOCAL, local);
  return request;
}

}  // namespace adit::dataplane::kernel
