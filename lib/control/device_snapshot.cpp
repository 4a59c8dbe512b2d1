// A device as it is now, from the data plane and the kernel.
#include <algorithm>
#include <iterator>

#include "control/device.hpp"
#include "control/device_peer.hpp"

namespace adit::control {
namespace {

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

/// What both the data plane and the handshakes count has one name.
void addCount(Counts& counts, std::string_view name, std::uint64_t count) {
  if (count == 0) {
    return;
  }
  const auto known = std::ranges::find(counts, name, &Counts::value_type::first);
  if (known != counts.end()) {
    known->second += count;
  } else {
    counts.emplace_back(name, count);
  }
}

void addDataDrops(Counts& counts, const dataplane::DropCounts& drops) {
  for (std::size_t i = 0; i < drops.size(); ++i) {
    addCount(counts, dataplane::dropName(static_cast<dataplane::Drop>(i)), drops[i]);
  }
}

void addHandshakeDrops(Counts& counts, const noise::HandshakeDrops& drops) {
  for (std::size_t i = 0; i < drops.size(); ++i) {
    addCount(counts, noise::handshakeDropName(static_cast<noise::HandshakeDrop>(i)), drops[i]);
  }
}

}  // namespace

PeerSnapshot Device::snapshotOf(const Peer& peer, const dataplane::PeerStats* stats) const {
  PeerSnapshot snapshot;
  snapshot.name = peer.name;
  snapshot.publicKey = peer.publicKey;
  snapshot.presharedKey = peer.presharedKey;
  snapshot.allowedIps = peer.allowedIps;
  snapshot.persistentKeepalive = peer.persistentKeepalive;
  snapshot.endpoint = peer.endpoint;
  if (peer.configuredEndpoint) {
    snapshot.configuredEndpoint = peer.configuredEndpoint->toString();
  }
  if (peer.endpointPolicy.unresolved()) {
    snapshot.unresolvedEndpoint = peer.endpointPolicy.name()->toString();
  }
  if (stats != nullptr) {
    if (stats->endpoint) {
      snapshot.endpoint = stats->endpoint;
    }
    snapshot.rxBytes = stats->rxBytes;
    snapshot.txBytes = stats->txBytes;
    snapshot.suite = stats->suite;
    addDataDrops(snapshot.drops, stats->drops);
  }
  if (const auto state = sessions_.state(peer.id)) {
    snapshot.lastHandshake = state->lastHandshakeRealTime;
    if (state->clockBehind) {
      snapshot.clockBehindBy = std::chrono::ceil<std::chrono::seconds>(*state->clockBehind);
    }
    snapshot.handshakes = state->handshakesCompleted;
    if (peer.unansweredSince && state->handshakeUnderWay) {
      snapshot.unanswered = std::chrono::duration_cast<std::chrono::seconds>(parts_.clock.now() -
                                                                             *peer.unansweredSince);
    }
    if (state->peerOffer) {
      snapshot.suiteSpeeds = state->peerOffer->speeds;
    }
    snapshot.clockBehind = state->drops[static_cast<std::size_t>(noise::HandshakeDrop::Replayed)];
    addHandshakeDrops(snapshot.drops, state->drops);
  }
  return snapshot;
}

std::vector<std::string> Device::warnings() const {
  std::vector<std::string> all = warnings_;
  std::ranges::move(parts_.dataPlane.remarks(), std::back_inserter(all));
  if (!dnsWarning_.empty()) {
    all.push_back(dnsWarning_);
  }
  for (const auto& [id, peer] : peers_) {
    if (const std::string& error = peer->endpointPolicy.lastError(); !error.empty()) {
      all.push_back(fmt::format("peer {}: {}", peer->label(), error));
    }
  }
  for (const auto& [id, peer] : peers_) {
    if (peer->joinsRefused != 0) {
      all.push_back(fmt::format(
          "the token of {} was used {} times by another machine than the one that has joined: if "
          "that was not you, the token has leaked",
          peer->invitation->name, peer->joinsRefused));
    }
  }
  if (std::string trouble = portTrouble(); !trouble.empty()) {
    all.push_back(std::move(trouble));
  }
  for (TroubleSnapshot& trouble : handshakeTroubles()) {
    all.push_back(std::move(trouble.text));
  }
  return all;
}

DeviceSnapshot Device::snapshot() const {
  DeviceSnapshot snapshot;
  snapshot.name = options_.name;
  snapshot.privateKey = privateKey_;
  const dataplane::DeviceStats device = parts_.dataPlane.deviceStats();
  snapshot.listenPort = device.listenPort;
  snapshot.firewallMark = settings_.firewallMark;
  snapshot.configured = {.listenPort = config_.interface.listenPort,
                         .firewallMark = config_.interface.firewallMark,
                         .files = files_};
  snapshot.backend = parts_.dataPlane.name();
  snapshot.backendReason = options_.backendReason;
  if (const auto link = parts_.routing.findLink(options_.name); link && *link) {
    snapshot.mtu = (*link)->mtu;
    if (const auto addresses = parts_.routing.addresses((*link)->index)) {
      snapshot.addresses = *addresses;
    }
  }
  const std::vector<dataplane::PeerStats> stats = parts_.dataPlane.peerStats();
  if (stats.empty() && !peers_.empty()) {
    snapshot.warnings.push_back(fmt::format(
        "the {} data plane does not tell of its peers: counters are missing", snapshot.backend));
  }
  for (const auto& [id, peer] : peers_) {
    if (peer->invitation) {
      continue;
    }
    const auto found = std::ranges::find(stats, id, &dataplane::PeerStats::id);
    snapshot.peers.push_back(snapshotOf(*peer, found == stats.end() ? nullptr : &*found));
  }
  snapshot.maps = mapSnapshots();
  snapshot.requests = portRequests();
  const std::vector<std::string> lasting = warnings();
  snapshot.warnings.insert(snapshot.warnings.begin(), lasting.begin(), lasting.end());
  snapshot.warnings.insert(snapshot.warnings.begin(), fileWarnings_.begin(), fileWarnings_.end());
  snapshot.troubles = handshakeTroubles();
  snapshot.suiteSpeeds = parts_.dataPlane.suiteSpeeds();
  addDataDrops(snapshot.drops, device.drops);
  addHandshakeDrops(snapshot.drops, sessions_.drops());
  return snapshot;
}

}  // namespace adit::control
