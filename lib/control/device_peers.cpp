// Peers of a device: their endpoints, and the two interfaces through which handshakes and packets
// meet (dataplane::EventSink and noise::SessionActions).
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/device.hpp"
#include "control/device_peer.hpp"
#include "control/peer_mark.hpp"

namespace adit::control {

Device::Peer* Device::find(noise::PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

Device::Peer* Device::find(const crypto::PublicKey& key) {
  const auto found = byKey_.find(key);
  return found == byKey_.end() ? nullptr : find(found->second);
}

Device::Peer& Device::addPeer(const crypto::PublicKey& key) {
  if (Peer* known = find(key)) {
    return *known;
  }
  auto hasRoute = [this](const IpAddress& address) {
    return parts_.routing.lookupRoute(address, settings_.firewallMark).has_value();
  };
  const dataplane::KeptPeer* kept = keptPeer(key);
  const noise::PeerId id = kept != nullptr ? kept->stats.id : nextPeerId_++;
  auto peer =
      std::make_unique<Peer>(id, key, EndpointPolicy(std::move(hasRoute), options_.endpointTiming));
  byKey_[key] = id;
  return *peers_.emplace(id, std::move(peer)).first->second;
}

void Device::removePeer(const crypto::PublicKey& key) {
  Peer* peer = find(key);
  if (peer == nullptr) {
    return;
  }
  const noise::PeerId id = peer->id;
  sessions_.removePeer(id);
  if (auto removed = parts_.dataPlane.removePeer(id); !removed) {
    warnings_.push_back(removed.error().message);
    spdlog::warn("{}: peer {}: {}", options_.name, peer->label(), removed.error().message);
  }
  // Its timestamps are kept: a peer that is removed and added again must not accept a replay.
  trouble_.forget(id);
  byKey_.erase(key);
  peers_.erase(id);
}

void Device::configurePeer(Peer& peer, const config::PeerConfig& config) {
  peer.name = config.name;
  peer.presharedKey = config.presharedKey.value_or(crypto::PresharedKey{});
  peer.allowedIps = config.allowedIps;
  peer.persistentKeepalive = config.persistentKeepalive;
  peer.roam = config.roam;
  peer.configuredEndpoint = config.endpoint;
  const bool sameName = peer.endpointPolicy.name() == config.endpoint;
  peer.endpointPolicy.configure(config.endpoint);
  const dataplane::KeptPeer* kept = keptPeer(peer.publicKey);
  if (kept != nullptr) {
    adoptTimestamp(*kept);
  }
  pushPeer(peer);
  if (kept != nullptr) {
    adoptPeer(peer, *kept);
  }
  if (!peer.endpoint && peer.roam) {
    if (const auto stored = parts_.state.peer(peer.publicKey).endpoint;
        stored && options_.adopted && !started_) {
      setEndpoint(peer, *stored);
    }
  }
  if (config.endpoint && (!sameName || !peer.endpoint)) {
    startLookup(peer);
  }
}

/// Hands the peer's settings to the handshake and to the data plane.
void Device::pushPeer(Peer& peer) {
  const StoredPeer stored = parts_.state.peer(peer.publicKey);
  noise::PeerPolicy policy;
  policy.id = peer.id;
  policy.publicKey = peer.publicKey;
  policy.presharedKey = peer.presharedKey;
  policy.pinned = config_.interface.cipher;
  policy.extensions = config_.interface.extensions;
  policy.greatestTimestamp = stored.greatestTimestamp;
  policy.rememberedSuite = stored.suite;
  if (peer.invitation) {
    // Its only messages are those of the enrolment, and the token names its suite.
    policy.extensions = false;
  }
  if (auto set = sessions_.setPeer(policy); !set) {
    warnings_.push_back(set.error().message);
    spdlog::warn("{}: peer {}: {}", options_.name, peer.label(), set.error().message);
  }
  if (auto set = parts_.dataPlane.setPeer({.id = peer.id,
                                           .publicKey = peer.publicKey,
                                           .allowedIps = peer.allowedIps,
                                           .persistentKeepalive = peer.persistentKeepalive,
                                           .roam = peer.roam});
      !set) {
    warnings_.push_back(set.error().message);
    spdlog::warn("{}: peer {}: {}", options_.name, peer.label(), set.error().message);
  }
}

void Device::setEndpoint(Peer& peer, const Endpoint& endpoint) {
  peer.endpoint = endpoint;
  peer.endpointPolicy.endpointChanged(endpoint);
  if (auto set = parts_.dataPlane.setEndpoint(peer.id, endpoint, std::nullopt); !set) {
    spdlog::warn("{}: peer {}: {}", options_.name, peer.label(), set.error().message);
  }
}

void Device::startLookup(Peer& peer) {
  const config::EndpointName name = *peer.endpointPolicy.name();
  peer.endpointPolicy.lookupStarted();
  auto finished = [this, id = peer.id, name](const Resolution& resolution) {
    Peer* waiting = find(id);
    // The peer may have gone, or have been given another name, in the meantime.
    if (waiting == nullptr || waiting->endpointPolicy.name() != name) {
      return;
    }
    const bool first = !waiting->endpoint;
    if (!resolution) {
      spdlog::warn("{}: peer {}: {}; trying again", options_.name, waiting->label(),
                   resolution.error().message);
    }
    if (const auto use = waiting->endpointPolicy.lookupFinished(resolution, parts_.clock.now())) {
      spdlog::info("{}: peer {} is looked for at {}", options_.name, waiting->label(),
                   use->toString());
      setEndpoint(*waiting, *use);
      if (first && started_ && waiting->persistentKeepalive != 0) {
        sessions_.startHandshake(id);
      }
    }
    scheduleTimers();
  };
  if (!name.literal) {
    parts_.resolver.resolve(name, std::move(finished));
    return;
  }
  const auto endpoint = literalEndpoint(name);
  finished(endpoint ? Resolution(std::vector{*endpoint}) : tl::unexpected(endpoint.error()));
}

/// Lets peers know that we are there: those that want to hear from us regularly, and after a crash
/// those that had a session and would wait for an answer until their own timers fire. Where the
/// data plane has kept the session, it needs nobody to do that.
void Device::greetPeers() {
  for (const auto& [id, peer] : peers_) {
    if (peer->endpoint && !peer->invitation && !hasLiveSession(*peer) &&
        (peer->persistentKeepalive != 0 || options_.adopted)) {
      sessions_.startHandshake(id);
    }
  }
  scheduleTimers();
}

void Device::runTimers() {
  sessions_.runTimers();
  for (const auto& [id, peer] : peers_) {
    if (peer->endpointPolicy.wantsLookup(parts_.clock.now())) {
      startLookup(*peer);
    }
  }
  scheduleTimers();
}

void Device::scheduleTimers() {
  std::optional<BootTime> next = sessions_.nextDeadline();
  for (const auto& [id, peer] : peers_) {
    if (const auto lookup = peer->endpointPolicy.nextLookup();
        lookup && (!next || *lookup < *next)) {
      next = lookup;
    }
  }
  if (next) {
    timer_.schedule(*next);
  } else {
    timer_.cancel();
  }
}

void Device::storePeer(const Peer& peer) {
  if (peer.invitation) {
    return;
  }
  StoredPeer stored = parts_.state.peer(peer.publicKey);
  stored.endpoint = peer.endpoint;
  if (const auto state = sessions_.state(peer.id)) {
    stored.greatestTimestamp = std::max(stored.greatestTimestamp, state->greatestTimestamp);
  }
  if (auto written = parts_.state.setPeer(peer.publicKey, stored); !written) {
    spdlog::warn("{}: {}", options_.name, written.error().message);
  }
}

void Device::needHandshake(noise::PeerId id, dataplane::HandshakeReason) {
  if (const Peer* peer = find(id); peer != nullptr && !peer->invitation) {
    sessions_.needHandshake(id);
  }
}

void Device::keyConfirmed(noise::PeerId id) {
  if (!sessions_.keyConfirmed(id)) {
    adoptConfirmedSession(id);
  }
  // Several machines may try one token, and the clock of the next one may be behind.
  if (const Peer* peer = find(id); peer != nullptr && peer->invitation) {
    sessions_.resetTimestamp(id);
  }
}

void Device::endpointMoved(noise::PeerId id, const Endpoint& endpoint) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->endpoint == endpoint) {
    return;
  }
  spdlog::info("{}: peer {} is now at {}", options_.name, peer->label(), endpoint.toString());
  peer->endpoint = endpoint;
  peer->endpointPolicy.endpointChanged(endpoint);
  storePeer(*peer);
}

void Device::keysExpired(noise::PeerId peer) {
  sessions_.keysExpired(peer);
}

void Device::control(noise::PeerId id, std::span<const std::uint8_t> message) {
  if (Peer* peer = find(id); peer != nullptr && peer->invitation) {
    hearJoin(*peer, message);
  } else {
    sessions_.control(id, message);
  }
}

void Device::handshake(std::span<const std::uint8_t> datagram, const Endpoint& source,
                       const LocalAddress& local, std::size_t backlog) {
  sessions_.handshake(datagram, source, local, backlog);
}

Result<void> Device::installKeys(noise::PeerId peer, const crypto::PublicKey& peerKey,
                                 const noise::SessionKeys& keys) {
  return parts_.dataPlane.installKeys(peer, peerKey, keys);
}

Result<void> Device::sendInitiation(noise::PeerId id, std::span<const std::uint8_t> datagram) {
  Peer* peer = find(id);
  if (peer == nullptr || !peer->endpoint) {
    return fail("the peer has no endpoint yet");
  }
  peer->unansweredSince = peer->unansweredSince.value_or(parts_.clock.now());
  if (const auto next = peer->endpointPolicy.initiationSent(parts_.clock.now())) {
    spdlog::info("{}: peer {} does not answer; trying {}", options_.name, peer->label(),
                 next->toString());
    setEndpoint(*peer, *next);
  }
  if (peer->endpointPolicy.wantsLookup(parts_.clock.now())) {
    startLookup(*peer);
  }
  return parts_.dataPlane.sendHandshake(datagram, *peer->endpoint, std::nullopt);
}

void Device::sendReply(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                       const LocalAddress& local) {
  if (auto sent = parts_.dataPlane.sendHandshake(datagram, destination, local); !sent) {
    spdlog::debug("{}: {}", options_.name, sent.error().message);
  }
}

void Device::sendControl(noise::PeerId peer, std::span<const std::uint8_t> message) {
  parts_.dataPlane.sendControl(peer, message);
}

void Device::dropStaged(noise::PeerId peer) {
  parts_.dataPlane.dropStaged(peer);
}

void Device::dropKeys(noise::PeerId peer) {
  if (auto dropped = parts_.dataPlane.dropKeys(peer); !dropped) {
    spdlog::warn("{}: {}", options_.name, dropped.error().message);
  }
}

void Device::peerTimestampAccepted(noise::PeerId id, const noise::Tai64n& timestamp) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->invitation) {
    return;
  }
  if (auto kept = parts_.dataPlane.keepMark(id, markOfTimestamp(timestamp)); !kept) {
    spdlog::warn("{}: peer {}: {}", options_.name, peer->label(), kept.error().message);
  }
  StoredPeer stored = parts_.state.peer(peer->publicKey);
  stored.greatestTimestamp = timestamp;
  if (auto written = parts_.state.setPeer(peer->publicKey, stored); !written) {
    spdlog::warn("{}: {}", options_.name, written.error().message);
  }
}

void Device::suiteChosen(noise::PeerId id, crypto::Suite suite) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->invitation) {
    return;
  }
  StoredPeer stored = parts_.state.peer(peer->publicKey);
  stored.suite = suite;
  if (auto written = parts_.state.setPeer(peer->publicKey, stored); !written) {
    spdlog::warn("{}: {}", options_.name, written.error().message);
  }
}

void Device::handshakeCompleted(noise::PeerId id, noise::Role role, crypto::Suite suite) {
  Peer* peer = find(id);
  if (peer == nullptr) {
    return;
  }
  peer->endpointPolicy.handshakeCompleted(parts_.clock.now());
  peer->unansweredSince.reset();
  peer->silenceTold = false;
  trouble_.forget(id);
  storePeer(*peer);
  if (portServer_ && !peer->invitation) {
    portServer_->sessionUp(peer->publicKey.toBase64());
  }
  // A peer may finish dozens of handshakes a second, and shall not fill the log with them.
  constexpr auto kToldApart = std::chrono::seconds(2);
  const BootTime now = parts_.clock.now();
  const bool again = peer->sessionTold && now - *peer->sessionTold < kToldApart;
  if (!again) {
    peer->sessionTold = now;
  }
  spdlog::log(again ? spdlog::level::debug : spdlog::level::info,
              "{}: peer {}: session with {} ({})", options_.name, peer->label(),
              crypto::suiteName(suite),
              role == noise::Role::Initiator ? "we asked" : "the peer asked");
}

void Device::handshakeGivenUp(noise::PeerId id) {
  if (const Peer* peer = find(id)) {
    spdlog::warn(
        "{}: peer {} has not answered for {} s at {}", options_.name, peer->label(),
        std::chrono::duration_cast<std::chrono::seconds>(options_.timing.rekeyAttempt).count(),
        peer->endpoint ? peer->endpoint->toString() : "(no endpoint)");
  }
}

void Device::initiationFailed(noise::PeerId id, const Error& error) {
  if (const Peer* peer = find(id)) {
    spdlog::error("{}: peer {}: no handshake: {}", options_.name, peer->label(), error.message);
  }
}

}  // namespace adit::control
