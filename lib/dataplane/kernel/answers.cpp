#include "dataplane/kernel/answers.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/kernel/endpoint.hpp"
#include "uapi/adit.h"

namespace adit::dataplane::kernel {
namespace {

using netlink::Attributes;

static_assert(static_cast<int>(Drop::Malformed) == ADIT_DROP_MALFORMED);
static_assert(static_cast<int>(Drop::BadMac) == ADIT_DROP_BAD_MAC);
static_assert(static_cast<int>(Drop::Replay) == ADIT_DROP_REPLAY);
static_assert(static_cast<int>(Drop::NoPeer) == ADIT_DROP_NO_PEER);
static_assert(static_cast<int>(Drop::Congestion) == ADIT_DROP_CONGESTION);

/// As many elements of an array in an attribute as both sides know.
template <typename T, std::size_t Size>
std::array<T, Size> arrayOf(std::span<const std::uint8_t> payload) {
  std::array<T, Size> values{};
  const std::size_t known = std::min(payload.size() / sizeof(T), Size) * sizeof(T);
  if (known != 0) std::memcpy(values.data(), payload.data(), known);
  return values;
}

std::optional<crypto::PublicKey> publicKey(std::span<const std::uint8_t> payload) {
  crypto::PublicKey key;
  if (payload.size() != key.bytes.size()) return std::nullopt;
  std::ranges::copy(payload, key.bytes.begin());
  return key;
}

void addAllowedIps(const Attributes& peer, std::vector<Prefix>& prefixes) {
  netlink::forEachAttribute(peer.bytes(ADIT_A_PEER_ALLOWED_IPS),
                            [&](std::span<const std::uint8_t> payload) {
                              const Attributes item(payload);
                              const auto address = item.address(ADIT_A_ALLOWED_IP_ADDRESS);
                              const auto length = item.u8(ADIT_A_ALLOWED_IP_LENGTH);
                              if (address && length && *length <= address->bits())
                                prefixes.emplace_back(*address, *length);
                            });
}

PeerStats statsOf(const Attributes& peer, PeerId id) {
  PeerStats stats;
  stats.id = id;
  stats.endpoint = endpoint(peer.nest(ADIT_A_PEER_ENDPOINT));
  stats.rxBytes = peer.u64(ADIT_A_PEER_RX_BYTES).value_or(0);
  stats.txBytes = peer.u64(ADIT_A_PEER_TX_BYTES).value_or(0);
  stats.rxPackets = peer.u64(ADIT_A_PEER_RX_PACKETS).value_or(0);
  stats.txPackets = peer.u64(ADIT_A_PEER_TX_PACKETS).value_or(0);
  stats.lastReceive = BootTime(peer.u64(ADIT_A_PEER_LAST_RECEIVE).value_or(0));
  const auto suite = peer.u8(ADIT_A_PEER_SUITE);
  const auto start = peer.u64(ADIT_A_PEER_SESSION_START);
  if (suite && start) {
    stats.suite = crypto::suiteFromWire(*suite);
    stats.sessionStart = BootTime(*start);
    stats.sessionInitiator = peer.u8(ADIT_A_PEER_SESSION_INITIATOR).value_or(0) != 0;
  }
  stats.drops = arrayOf<std::uint64_t, kDropCount>(peer.bytes(ADIT_A_PEER_DROPS));
  return stats;
}

}  // namespace

std::optional<Endpoint> endpoint(const std::optional<Attributes>& nest) {
  if (!nest) return std::nullopt;
  const auto address = nest->address(ADIT_A_ENDPOINT_ADDRESS);
  const auto port = nest->u16(ADIT_A_ENDPOINT_PORT);
  if (!address || port.value_or(0) == 0) return std::nullopt;
  return Endpoint{*address, *port, nest->u32(ADIT_A_ENDPOINT_IFINDEX).value_or(0)};
}

LocalAddress localAddress(const std::optional<Attributes>& nest) {
  if (!nest) return {};
  const auto address = nest->address(ADIT_A_ENDPOINT_ADDRESS);
  if (!address) return {};
  return {*address, nest->u32(ADIT_A_ENDPOINT_IFINDEX).value_or(0)};
}

std::optional<DeviceAnswer> deviceAnswer(const Attributes& message) {
  const auto device = message.nest(ADIT_A_DEVICE);
  if (!device) return std::nullopt;
  DeviceAnswer answer;
  answer.listenPort = device->u16(ADIT_A_DEVICE_LISTEN_PORT).value_or(0);
  answer.firewallMark = device->u32(ADIT_A_DEVICE_FWMARK).value_or(0);
  answer.bindAddress = device->address(ADIT_A_DEVICE_BIND_ADDRESS).value_or(IpAddress());
  answer.publicKey =
      publicKey(device->bytes(ADIT_A_DEVICE_PUBLIC_KEY)).value_or(crypto::PublicKey());
  answer.claimant = device->u32(ADIT_A_DEVICE_CLAIMANT).value_or(0);
  answer.module = device->string(ADIT_A_DEVICE_MODULE).value_or("");
  answer.suiteSpeeds =
      arrayOf<std::uint32_t, ADIT_SUITE_COUNT>(device->bytes(ADIT_A_DEVICE_SUITE_SPEEDS));
  answer.drops = arrayOf<std::uint64_t, kDropCount>(device->bytes(ADIT_A_DEVICE_DROPS));
  answer.lastPeerId = device->u64(ADIT_A_DEVICE_LAST_PEER_ID).value_or(0);
  return answer;
}

void addPeerAnswer(const Attributes& message, std::vector<PeerAnswer>& peers) {
  const auto peer = message.nest(ADIT_A_PEER);
  if (!peer) return;
  const auto id = peer->u64(ADIT_A_PEER_ID);
  if (!id) return;
  const auto key = publicKey(peer->bytes(ADIT_A_PEER_PUBLIC_KEY));
  if (!key) {
    if (!peers.empty() && peers.back().settings.id == *id) {
      addAllowedIps(*peer, peers.back().settings.allowedIps);
    }
    return;
  }
  PeerAnswer& answer = peers.emplace_back();
  answer.settings.id = *id;
  answer.settings.publicKey = *key;
  answer.settings.persistentKeepalive = peer->u16(ADIT_A_PEER_PERSISTENT_KEEPALIVE).value_or(0);
  answer.settings.roam = (peer->u32(ADIT_A_PEER_FLAGS).value_or(0) & ADIT_PEER_F_NO_ROAM) == 0;
  addAllowedIps(*peer, answer.settings.allowedIps);
  answer.stats = statsOf(*peer, *id);
  const auto mark = peer->bytes(ADIT_A_PEER_COOKIE);
  answer.mark.assign(mark.begin(), mark.end());
}

}  // namespace adit::dataplane::kernel
