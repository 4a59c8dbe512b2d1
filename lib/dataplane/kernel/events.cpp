// Events of adit.ko, taken apart.
#include "dataplane/kernel/answers.hpp"
#include "dataplane/kernel/endpoint.hpp"
#include "uapi/adit.h"

namespace adit::dataplane::kernel {
namespace {

using netlink::Attributes;

/// A reason that only a newer module knows is as good as any.
HandshakeReason reasonOf(const Attributes& message) {
  switch (message.u8(ADIT_A_HANDSHAKE_REASON).value_or(ADIT_HANDSHAKE_STAGED)) {
    case ADIT_HANDSHAKE_KEY_AGING:
      return HandshakeReason::KeyAging;
    case ADIT_HANDSHAKE_NO_REPLY:
      return HandshakeReason::NoReply;
    case ADIT_HANDSHAKE_KEEPALIVE:
      return HandshakeReason::Keepalive;
    default:
      return HandshakeReason::Staged;
  }
}

std::optional<Event> handshakeEvent(const Attributes& message) {
  const auto datagram = message.bytes(ADIT_A_PAYLOAD);
  const auto source = endpoint(message.nest(ADIT_A_ENDPOINT));
  if (datagram.empty() || datagram.size() > ADIT_UAPI_HANDSHAKE_MAX || !source) {
    return std::nullopt;
  }
  return HandshakeEvent{datagram, *source, localAddress(message.nest(ADIT_A_LOCAL)),
                        message.u32(ADIT_A_BACKLOG).value_or(0)};
}

std::optional<Event> controlEvent(const Attributes& message, PeerId peer) {
  const auto payload = message.bytes(ADIT_A_PAYLOAD);
  if (payload.empty() || payload.size() > ADIT_UAPI_CONTROL_MAX) return std::nullopt;
  return ControlEvent{peer, payload};
}

std::optional<Event> endpointEvent(const Attributes& peer, PeerId id) {
  const auto moved = endpoint(peer.nest(ADIT_A_PEER_ENDPOINT));
  if (!moved) return std::nullopt;
  return EndpointMovedEvent{id, *moved};
}

}  // namespace

std::optional<Event> event(std::uint8_t command, const Attributes& message, Interface interface) {
  if (message.u32(ADIT_A_IFINDEX) != interface) return std::nullopt;
  if (command == ADIT_CMD_EVENT_HANDSHAKE) return handshakeEvent(message);
  const auto peer = message.nest(ADIT_A_PEER);
  const auto id = peer ? peer->u64(ADIT_A_PEER_ID) : std::nullopt;
  if (!id) return std::nullopt;
  switch (command) {
    case ADIT_CMD_EVENT_NEED_HANDSHAKE:
      return NeedHandshakeEvent{*id, reasonOf(message)};
    case ADIT_CMD_EVENT_KEY_CONFIRMED:
      return KeyConfirmedEvent{*id};
    case ADIT_CMD_EVENT_KEYS_EXPIRED:
      return KeysExpiredEvent{*id};
    case ADIT_CMD_EVENT_ENDPOINT_MOVED:
      return endpointEvent(*peer, *id);
    case ADIT_CMD_EVENT_CONTROL:
      return controlEvent(message, *id);
    default:
      return std::nullopt;
  }
}

}  // namespace adit::dataplane::kernel
