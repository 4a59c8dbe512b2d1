// What comes from adit.ko, taken apart. Private to dataplane/kernel.
//
// Whatever the module says is checked before it is used: a message that lacks what it must have
// gives nothing, and attributes that this version does not know are ignored.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dataplane/dataplane.hpp"
#include "dataplane/kernel/requests.hpp"
#include "netlink/attributes.hpp"

namespace adit::dataplane::kernel {

struct DeviceAnswer {
  std::uint16_t listenPort = 0;
  std::uint32_t firewallMark = 0;
  IpAddress bindAddress;
  crypto::PublicKey publicKey;
  /// Netlink port of the daemon that serves it; 0 for none.
  std::uint32_t claimant = 0;
  std::string module;
  std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds{};
  DropCounts drops{};
  PeerId lastPeerId = 0;
};
std::optional<DeviceAnswer> deviceAnswer(const netlink::Attributes& message);

struct PeerAnswer {
  PeerSettings settings;
  PeerStats stats;
  std::vector<std::uint8_t> mark;
};
/// Adds one message of a dump to the peers before it: a peer, or more allowed IPs of the last one.
void addPeerAnswer(const netlink::Attributes& message, std::vector<PeerAnswer>& peers);

struct NeedHandshakeEvent {
  PeerId peer;
  HandshakeReason reason;
};
struct KeyConfirmedEvent {
  PeerId peer;
};
struct KeysExpiredEvent {
  PeerId peer;
};
struct EndpointMovedEvent {
  PeerId peer;
  Endpoint endpoint;
};
struct ControlEvent {
  PeerId peer;
  std::span<const std::uint8_t> message;
};
struct HandshakeEvent {
  std::span<const std::uint8_t> datagram;
  Endpoint source;
  LocalAddress local;
  std::size_t backlog;
};
using Event = std::variant<NeedHandshakeEvent, KeyConfirmedEvent, KeysExpiredEvent,
                           EndpointMovedEvent, ControlEvent, HandshakeEvent>;
/// Nothing for an event of another interface, of an unknown kind, or malformed. Spans point into
/// the message.
std::optional<Event> event(std::uint8_t command, const netlink::Attributes& message,
                           Interface interface);

}  // namespace adit::dataplane::kernel
