#include "control/handshake_trouble.hpp"

#include <fmt/format.h>

namespace adit::control {
namespace {

using noise::HandshakeDrop;

/// Handshakes are tried again every 5 s, so trouble that lasts is heard of again soon.
constexpr auto kFresh = std::chrono::minutes(3);
constexpr auto kToldApart = std::chrono::minutes(1);

std::string foreignText(const std::string& ownKey) {
  return fmt::format(
      "handshakes arrive that are meant for another public key than ours: set PublicKey = {} on "
      "the other side",
      ownKey);
}

std::string kindOf(HandshakeDrop reason) {
  switch (reason) {
    case HandshakeDrop::UnknownPeer:
      return "unknown-key";
    case HandshakeDrop::SuiteRefused:
      return "cipher";
    case HandshakeDrop::BadResponse:
      return "preshared-key";
    default:
      return "foreign-key";
  }
}

std::string refusalText(const noise::RefusedHandshake& handshake, const std::string& peer,
                        const std::string& ownKey) {
  const std::string source = handshake.source.toString();
  switch (handshake.reason) {
    case HandshakeDrop::UnknownPeer:
      return fmt::format(
          "{} asks for a session with the public key {}, which no [Peer] here has: add it, or "
          "correct the PrivateKey of the other side",
          source, handshake.key ? handshake.key->toBase64() : std::string("?"));
    case HandshakeDrop::SuiteRefused:
      return fmt::format(
          "peer {} at {} asks for the cipher {}, which our Cipher rules out: both sides need the "
          "same, or Cipher = auto",
          peer, source, handshake.suite ? crypto::suiteName(*handshake.suite) : "?");
    case HandshakeDrop::BadResponse:
      return fmt::format(
          "peer {} answers at {}, but not with the keys that we have of it: PresharedKey must be "
          "the same on both sides",
          peer, source);
    default:
      return foreignText(ownKey);
  }
}

}  // namespace

std::optional<std::string> HandshakeTrouble::note(std::pair<HandshakeDrop, noise::PeerId> about,
                                                  const std::string& peer, std::string text,
                                                  BootTime now) {
  Entry& entry = entries_[about];
  entry.peer = peer;
  entry.text = std::move(text);
  entry.last = now;
  if (entry.told && now - *entry.told < kToldApart) {
    return std::nullopt;
  }
  entry.told = now;
  return entry.text;
}

std::optional<std::string> HandshakeTrouble::refused(const noise::RefusedHandshake& handshake,
                                                     const std::string& peer,
                                                     const std::string& ownKey, BootTime now) {
  return note({handshake.reason, handshake.peer.value_or(0)}, peer,
              refusalText(handshake, peer, ownKey), now);
}

std::optional<std::string> HandshakeTrouble::foreignHandshakes(std::uint64_t total,
                                                               const std::string& ownKey,
                                                               BootTime now) {
  if (total <= foreign_) {
    foreign_ = total;
    return std::nullopt;
  }
  foreign_ = total;
  return note({HandshakeDrop::BadMac1, 0}, "", foreignText(ownKey), now);
}

void HandshakeTrouble::forget(noise::PeerId peer) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.second == peer; });
}

bool HandshakeTrouble::concerns(noise::PeerId peer, BootTime now) const {
  for (const auto& [about, entry] : entries_) {
    if (about.second == peer && now - entry.last < kFresh) {
      return true;
    }
  }
  return false;
}

std::vector<TroubleSnapshot> HandshakeTrouble::recent(BootTime now) const {
  std::vector<TroubleSnapshot> troubles;
  for (const auto& [about, entry] : entries_) {
    if (now - entry.last < kFresh) {
      troubles.push_back({kindOf(about.first), entry.peer, entry.text});
    }
  }
  return troubles;
}

std::string silenceText(const std::string& peer, std::chrono::nanoseconds silence,
                        const std::string& endpoint) {
  return fmt::format(
      "peer {} has not answered for {} s at {}: check its PublicKey here, our key there, the "
      "Endpoint, and that the firewalls on the way let its UDP port through",
      peer, std::chrono::duration_cast<std::chrono::seconds>(silence).count(), endpoint);
}

}  // namespace adit::control
