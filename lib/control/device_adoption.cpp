// What a former daemon left in the data plane: peers with their endpoints and running sessions.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/device.hpp"
#include "control/device_peer.hpp"
#include "control/peer_mark.hpp"

namespace adit::control {

const dataplane::KeptPeer* Device::keptPeer(const crypto::PublicKey& key) const {
  // Later, a peer of this key is one that was removed and added again.
  if (started_) {
    return nullptr;
  }
  const auto& kept = parts_.dataPlane.inheritance().peers;
  const auto found = std::ranges::find(kept, key, &dataplane::KeptPeer::publicKey);
  return found == kept.end() ? nullptr : &*found;
}

/// Before the peer is handed to the handshake, which must know the greatest timestamp.
void Device::adoptTimestamp(const dataplane::KeptPeer& kept) {
  const auto marked = timestampOfMark(kept.mark);
  StoredPeer stored = parts_.state.peer(kept.publicKey);
  if (!marked || (stored.greatestTimestamp && *stored.greatestTimestamp >= *marked)) {
    return;
  }
  stored.greatestTimestamp = marked;
  if (auto written = parts_.state.setPeer(kept.publicKey, stored); !written) {
    spdlog::warn("{}: {}", options_.name, written.error().message);
  }
}

/// After the peer was handed to the handshake, and before its endpoint is looked up.
void Device::adoptPeer(Peer& peer, const dataplane::KeptPeer& kept) {
  const bool restored = kept.stats.suite && restoreSession(peer, kept.stats);
  if (kept.stats.suite && !restored) {
    spdlog::info("{}: peer {}: its session is not for this configuration; a new one follows",
                 options_.name, peer.label());
    dropKeys(peer.id);
  }
  if (kept.stats.endpoint) {
    peer.endpoint = kept.stats.endpoint;
    peer.endpointPolicy.endpointChanged(*kept.stats.endpoint);
    // A session that works says more of the peer's place than the file does.
    if (restored && peer.roam) {
      peer.endpointPolicy.handshakeCompleted(kept.stats.sessionStart);
    }
  }
  if (restored) {
    spdlog::info("{}: peer {}: its session goes on ({})", options_.name, peer.label(),
                 crypto::suiteName(*kept.stats.suite));
  }
}

bool Device::restoreSession(const Peer& peer, const dataplane::PeerStats& stats) {
  const crypto::PublicKey& own = parts_.dataPlane.inheritance().publicKey;
  if (!stats.suite || !privateKey_ || (!started_ && privateKey_->publicKey() != own)) {
    return false;
  }
  return sessions_.restoreSession(
      peer.id, {.suite = *stats.suite,
                .role = stats.sessionInitiator ? noise::Role::Initiator : noise::Role::Responder,
                .start = stats.sessionStart});
}

bool Device::hasLiveSession(const Peer& peer) const {
  const auto state = sessions_.state(peer.id);
  return state && state->suite && state->lastHandshake &&
         parts_.clock.now() - *state->lastHandshake < options_.timing.rejectAfter;
}

/// Peers that the configuration does not name any more, last: until then they keep their traffic.
void Device::removeForgottenPeers() {
  for (const dataplane::KeptPeer& kept : parts_.dataPlane.inheritance().peers) {
    if (find(kept.stats.id) != nullptr) {
      continue;
    }
    spdlog::info("{}: peer {} is not configured any more", options_.name,
                 kept.publicKey.toBase64());
    if (auto removed = parts_.dataPlane.removePeer(kept.stats.id); !removed) {
      spdlog::warn("{}: {}", options_.name, removed.error().message);
    }
  }
}

/// The first packet under a key that a former daemon had installed, or that this one has no record
/// of: what the data plane has now counts.
void Device::adoptConfirmedSession(noise::PeerId id) {
  const Peer* peer = find(id);
  if (peer == nullptr) {
    return;
  }
  const auto state = sessions_.state(id);
  for (const dataplane::PeerStats& stats : parts_.dataPlane.peerStats()) {
    if (stats.id == id && stats.suite && state && state->lastHandshake != stats.sessionStart &&
        !restoreSession(*peer, stats)) {
      dropKeys(id);
    }
  }
}

}  // namespace adit::control
