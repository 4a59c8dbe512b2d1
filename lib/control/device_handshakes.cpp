// What goes wrong with a device's handshakes, told in the log and in the warnings.
#include <spdlog/spdlog.h>

#include "control/device.hpp"
#include "control/device_peer.hpp"

namespace adit::control {
namespace {

/// Three tries: one or two are lost on a bad line.
constexpr auto kWorthTelling = std::chrono::seconds(15);

}  // namespace

std::string Device::ownKeyText() const {
  return privateKey_ ? privateKey_->publicKey().toBase64() : "(none)";
}

void Device::handshakeRefused(const noise::RefusedHandshake& refused) {
  const Peer* peer = refused.peer ? find(*refused.peer) : nullptr;
  const std::string name = peer != nullptr ? peer->label() : "";
  if (const auto told = trouble_.refused(refused, name, ownKeyText(), parts_.clock.now())) {
    spdlog::warn("{}: {}", options_.name, *told);
  }
}

std::optional<std::string> Device::silenceOf(const Peer& peer) const {
  const BootTime now = parts_.clock.now();
  if (!peer.unansweredSince || now - *peer.unansweredSince < kWorthTelling || !peer.endpoint ||
      trouble_.concerns(peer.id, now)) {
    return std::nullopt;
  }
  // A peer that only calls us is silent because it sleeps.
  const auto state = sessions_.state(peer.id);
  if (!peer.endpointPolicy.name() && !(state && state->handshakeUnderWay)) {
    return std::nullopt;
  }
  return silenceText(peer.label(), now - *peer.unansweredSince, peer.endpoint->toString());
}

void Device::watchHandshakes() {
  const auto foreign =
      parts_.dataPlane.deviceStats().drops[static_cast<std::size_t>(dataplane::Drop::BadMac)];
  if (const auto told = trouble_.foreignHandshakes(foreign, ownKeyText(), parts_.clock.now())) {
    spdlog::warn("{}: {}", options_.name, *told);
  }
  for (const auto& [id, peer] : peers_) {
    const auto silence = peer->silenceTold ? std::nullopt : silenceOf(*peer);
    if (silence) {
      peer->silenceTold = true;
      spdlog::warn("{}: {}", options_.name, *silence);
    }
  }
}

std::vector<TroubleSnapshot> Device::handshakeTroubles() const {
  std::vector<TroubleSnapshot> troubles = trouble_.recent(parts_.clock.now());
  for (const auto& [id, peer] : peers_) {
    if (auto silence = silenceOf(*peer)) {
      troubles.push_back({"silence", peer->label(), std::move(*silence)});
    }
  }
  return troubles;
}

}  // namespace adit::control
