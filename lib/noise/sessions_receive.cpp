// Handshake datagrams: cheap checks first, and no state changed before the sender is proven.
#include <endian.h>

#include <cstring>

#include "noise/sessions_peer.hpp"

namespace adit::noise {
namespace {

template <typename Message>
Message parse(std::span<const std::uint8_t> datagram) {
  Message message;
  std::memcpy(&message, datagram.data(), sizeof message);
  return message;
}

/// Length, suite and reserved bytes are those of a message of its type.
bool wellFormed(std::span<const std::uint8_t> datagram) {
  adit_message_header header;
  if (datagram.size() < sizeof header) return false;
  std::memcpy(&header, datagram.data(), sizeof header);
  if (header.reserved[0] != 0 || header.reserved[1] != 0) return false;
  switch (header.type) {
    case ADIT_MESSAGE_INITIATION:
      return datagram.size() == sizeof(adit_message_initiation) && header.suite < ADIT_SUITE_COUNT;
    case ADIT_MESSAGE_RESPONSE:
      return datagram.size() == sizeof(adit_message_response) && header.suite < ADIT_SUITE_COUNT;
    case ADIT_MESSAGE_COOKIE:
      return datagram.size() == sizeof(adit_message_cookie) && header.suite == 0;
    default:
      return false;
  }
}

}  // namespace

std::string_view handshakeDropName(HandshakeDrop drop) {
  switch (drop) {
    case HandshakeDrop::Malformed:
      return "handshake-malformed";
    case HandshakeDrop::NoIdentity:
      return "handshake-no-private-key";
    case HandshakeDrop::BadMac1:
      return "handshake-bad-mac";
    case HandshakeDrop::Mac2Missing:
      return "handshake-cookie-demanded";
    case HandshakeDrop::RateLimited:
      return "handshake-rate-limited";
    case HandshakeDrop::Authentication:
      return "handshake-wrong-keys";
    case HandshakeDrop::UnknownPeer:
      return "handshake-unknown-peer";
    case HandshakeDrop::SuiteRefused:
      return "handshake-suite-refused";
    case HandshakeDrop::Replayed:
      return "handshake-replayed";
    case HandshakeDrop::TooFrequent:
      return "handshake-too-frequent";
    case HandshakeDrop::UnknownIndex:
      return "handshake-unknown-index";
    case HandshakeDrop::DuplicateResponse:
      return "handshake-duplicate-response";
    case HandshakeDrop::BadResponse:
      return "handshake-bad-response";
    case HandshakeDrop::BadCookie:
      return "handshake-bad-cookie";
    case HandshakeDrop::InstallRefused:
      return "handshake-keys-refused";
  }
  return "unknown";
}

void Sessions::handshake(std::span<const std::uint8_t> datagram, const Endpoint& source,
                         const LocalAddress& local, std::size_t backlog) {
  const Incoming in{datagram, source, local, clock_.now()};
  if (backlog >= timing_.loadBacklog) loadUntil_ = in.now + timing_.loadHysteresis;
  if (!wellFormed(datagram)) return drop(HandshakeDrop::Malformed);
  if (!identity_) return drop(HandshakeDrop::NoIdentity);
  if (datagram[0] == ADIT_MESSAGE_COOKIE) return receiveCookie(in);
  if (!checker_->mac1Valid(datagram)) {
    return refuse({.reason = HandshakeDrop::BadMac1, .source = source});
  }
  if (datagram[0] == ADIT_MESSAGE_INITIATION) return receiveInitiation(in);
  receiveResponse(in);
}

bool Sessions::underLoad() const {
  return loadUntil_ && clock_.now() < *loadUntil_;
}

/// Under load only who has shown that it receives at its address may go on, and not too often.
bool Sessions::admit(const Incoming& in, std::uint32_t senderIndex) {
  if (!underLoad()) return true;
  if (!checker_->mac2Valid(in.datagram, in.source, in.now)) {
    // A reply costs more than a drop, and a source that asks more often than a peer would has its
    // cookie already or will not use it. Sources can be made up here, so a limit may not keep a
    // peer from its cookie: it counts ports apart and lets everybody pass when its table is full.
    if (!cookieLimiter_.allow(in.source, in.now)) {
      drop(HandshakeDrop::RateLimited);
      return false;
    }
    adit_message_cookie reply = checker_->reply(in.datagram, senderIndex, in.source, in.now);
    actions_.sendReply(bytesOf(reply), in.source, in.local);
    drop(HandshakeDrop::Mac2Missing);
    return false;
  }
  if (!limiter_.allow(in.source.address, in.now)) {
    drop(HandshakeDrop::RateLimited);
    return false;
  }
  return true;
}

void Sessions::receiveInitiation(const Incoming& in) {
  const auto message = parse<adit_message_initiation>(in.datagram);
  if (!admit(in, le32toh(message.sender_index))) return;
  auto received = openInitiation(*identity_, message);
  if (!received) return drop(HandshakeDrop::Authentication);
  const auto owner = byKey_.find(received->remoteStatic);
  if (owner == byKey_.end()) {
    return refuse(
        {.reason = HandshakeDrop::UnknownPeer, .source = in.source, .key = received->remoteStatic});
  }
  Peer& peer = *find(owner->second);
  if (!peer.remote) return drop(HandshakeDrop::Authentication, &peer);
  const auto timestamp = authenticateInitiation(*received, *peer.remote, message);
  if (!timestamp) return drop(HandshakeDrop::Authentication, &peer);
  if (!peer.allowed.contains(received->suite)) {
    return refuse({.reason = HandshakeDrop::SuiteRefused,
                   .source = in.source,
                   .peer = peer.policy.id,
                   .suite = received->suite},
                  &peer);
  }
  if (acceptTimestamp(peer, *timestamp)) respond(peer, *received, in);
}

/// Whether an authentic initiation is new and not too soon; remembers it if so.
bool Sessions::acceptTimestamp(Peer& peer, const Tai64n& timestamp) {
  const BootTime now = clock_.now();
  if (peer.greatestTimestamp && timestamp <= *peer.greatestTimestamp) {
    const bool fresh = timestamp < *peer.greatestTimestamp &&
                       (!peer.newestRejected || timestamp > *peer.newestRejected);
    if (fresh) {
      peer.newestRejected = timestamp;
      ++peer.freshRejected;
    }
    drop(HandshakeDrop::Replayed, &peer);
    return false;
  }
  if (peer.lastAccepted && now - *peer.lastAccepted < timing_.initiationInterval) {
    drop(HandshakeDrop::TooFrequent, &peer);
    return false;
  }
  peer.greatestTimestamp = timestamp;
  peer.lastAccepted = now;
  peer.newestRejected.reset();
  peer.freshRejected = 0;
  actions_.peerTimestampAccepted(peer.policy.id, timestamp);
  return true;
}

/// Installs before it answers: the first packet may come back at once. The keys may be used for
/// sending only after that packet.
void Sessions::respond(Peer& peer, const ReceivedInitiation& received, const Incoming& in) {
  // Both sides have begun. WireGuard peers forget their own initiation then and both wait for
  // their timers; that of the smaller key stays valid here, so that one of the two succeeds.
  if (identity_->publicKey > peer.policy.publicKey) clearInitiation(peer);

  std::optional<std::uint32_t> index = reserveIndex(peer);
  adit_message_response message;
  auto keys = createResponse(received, *peer.remote, *index, random_, message);
  if (!keys) {
    releaseIndex(index);
    return drop(HandshakeDrop::Authentication, &peer);
  }
  peer.cookies.addMacs(bytesOf(message), in.now);
  if (!install(peer, KeySlot::Next, received.suite, index, received.remoteIndex,
               std::move(*keys))) {
    return;
  }
  actions_.sendReply(bytesOf(message), in.source, in.local);
}

void Sessions::receiveResponse(const Incoming& in) {
  const auto message = parse<adit_message_response>(in.datagram);
  const std::uint32_t index = le32toh(message.receiver_index);
  const auto owner = indices_.find(index);
  if (owner == indices_.end()) return drop(HandshakeDrop::UnknownIndex);
  Peer& peer = *find(owner->second);
  if (peer.handshakeIndex != index) return drop(HandshakeDrop::DuplicateResponse, &peer);
  if (!admit(in, le32toh(message.sender_index))) return;
  auto keys = consumeResponse(*peer.handshake, *identity_, *peer.remote, message);
  if (!keys) {
    return refuse(
        {.reason = HandshakeDrop::BadResponse, .source = in.source, .peer = peer.policy.id}, &peer);
  }

  // From here on a second copy of this response finds nothing to complete.
  const crypto::Suite suite = peer.handshake->suite;
  const auto sessionIndex = std::exchange(peer.handshakeIndex, std::nullopt);
  endHandshake(peer);
  if (install(peer, KeySlot::Current, suite, sessionIndex, le32toh(message.sender_index),
              std::move(*keys))) {
    established(peer);
  } else {
    beginHandshake(peer, false);
  }
}

void Sessions::receiveCookie(const Incoming& in) {
  const auto message = parse<adit_message_cookie>(in.datagram);
  const auto owner = indices_.find(le32toh(message.receiver_index));
  if (owner == indices_.end()) return drop(HandshakeDrop::UnknownIndex);
  Peer& peer = *find(owner->second);
  if (!peer.cookies.consume(message, in.now)) drop(HandshakeDrop::BadCookie, &peer);
}

void Sessions::drop(HandshakeDrop reason, Peer* peer) {
  ++drops_[static_cast<std::size_t>(reason)];
  if (peer != nullptr) ++peer->drops[static_cast<std::size_t>(reason)];
}

void Sessions::refuse(const RefusedHandshake& refused, Peer* peer) {
  drop(refused.reason, peer);
  actions_.handshakeRefused(refused);
}

}  // namespace adit::noise
