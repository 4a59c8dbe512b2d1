#include "dataplane/dataplane.hpp"

namespace adit::dataplane {

const Inheritance& DataPlane::inheritance() const {
  static const Inheritance nothing;
  return nothing;
}

Result<void> DataPlane::keepMark(PeerId, std::span<const std::uint8_t>) {
  return {};
}

std::string_view dropName(Drop drop) {
  switch (drop) {
    case Drop::Malformed:
      return "malformed";
    case Drop::UnknownIndex:
      return "unknown-index";
    case Drop::BadMac:
      return "handshake-bad-mac";
    case Drop::HandshakeQueue:
      return "handshake-queue";
    case Drop::Authentication:
      return "authentication";
    case Drop::Replay:
      return "replay";
    case Drop::KeyExpired:
      return "key-expired";
    case Drop::NotIp:
      return "not-ip";
    case Drop::SourceNotAllowed:
      return "source-not-allowed";
    case Drop::NoPeer:
      return "no-peer";
    case Drop::NoEndpoint:
      return "no-endpoint";
    case Drop::QueueFull:
      return "queue-full";
    case Drop::SendFailed:
      return "send-failed";
    case Drop::ReceiveFailed:
      return "receive-failed";
    case Drop::Congestion:
      return "congestion";
  }
  return "unknown";
}

}  // namespace adit::dataplane
