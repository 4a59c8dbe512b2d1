// wg(8)'s set, setconf, addconf and syncconf on a running device.
#include <algorithm>

#include "config/values.hpp"
#include "control/device.hpp"
#include "control/device_peer.hpp"

namespace adit::control {

Result<void> Device::applyInterfaceChange(const DeviceChange& change) {
  config::InterfaceConfig wanted = config_.interface;
  wanted.privateKey = privateKey_;
  if (change.privateKey) {
    wanted.privateKey = change.privateKey->isZero()
                            ? std::nullopt
                            : std::optional(crypto::PrivateKey(change.privateKey->bytes()));
  }
  if (change.listenPort) {
    wanted.listenPort = *change.listenPort;
  }
  if (change.firewallMark) {
    wanted.firewallMark = *change.firewallMark;
  }
  if (auto configured = configureDataPlane(wanted); !configured) {
    return configured;
  }
  // What follows (routes of a mark, the port that is never mapped) is derived from the same
  // values; the file itself is not touched.
  config_.interface.listenPort = wanted.listenPort;
  config_.interface.firewallMark = wanted.firewallMark;
  return {};
}

void Device::moveAllowedIps(Peer& owner, std::vector<std::string>& remarks) {
  for (const auto& [id, other] : peers_) {
    if (other.get() == &owner) {
      continue;
    }
    const auto taken = std::erase_if(other->allowedIps, [&](const Prefix& prefix) {
      if (std::ranges::find(owner.allowedIps, prefix) == owner.allowedIps.end()) {
        return false;
      }
      remarks.push_back(
          fmt::format("{} was taken from peer {}", prefix.toString(), other->label()));
      return true;
    });
    if (taken != 0) {
      pushPeer(*other);
    }
  }
}

void Device::applyPeerChange(const PeerChange& change, std::vector<std::string>& remarks) {
  const Peer* known = find(change.publicKey);
  if (known == nullptr && change.updateOnly) {
    return;
  }
  if (known != nullptr && known->invitation) {
    remarks.push_back(
        fmt::format("{} cannot be changed: `adit invite --revoke` removes it", known->label()));
    return;
  }
  if (change.remove) {
    removePeer(change.publicKey);
    return;
  }
  if (privateKey_ && privateKey_->publicKey() == change.publicKey) {
    // As WireGuard does: a peer of our own key is left out, so that one list of peers can serve
    // all hosts.
    remarks.emplace_back("a peer with this interface's own public key was left out");
    return;
  }
  Peer& peer = addPeer(change.publicKey);
  if (change.presharedKey) {
    peer.presharedKey = *change.presharedKey;
  }
  if (change.persistentKeepalive) {
    peer.persistentKeepalive = *change.persistentKeepalive;
  }
  if (change.replaceAllowedIps) {
    peer.allowedIps.clear();
  }
  for (const Prefix& prefix : change.addAllowedIps) {
    if (std::ranges::find(peer.allowedIps, prefix) == peer.allowedIps.end()) {
      peer.allowedIps.push_back(prefix);
    }
  }
  std::erase_if(peer.allowedIps, [&](const Prefix& prefix) {
    return std::ranges::find(change.removeAllowedIps, prefix) != change.removeAllowedIps.end();
  });
  moveAllowedIps(peer, remarks);
  pushPeer(peer);
  if (change.endpoint) {
    if (const auto name = config::parseEndpoint(change.endpoint->toString())) {
      peer.configuredEndpoint = *name;
    }
    peer.endpointPolicy.configure(std::nullopt);
    setEndpoint(peer, *change.endpoint);
  }
  if (change.persistentKeepalive.value_or(0) != 0 && peer.endpoint) {
    sessions_.startHandshake(peer.id);
  }
}

Result<std::vector<std::string>> Device::apply(const DeviceChange& change) {
  std::vector<std::string> remarks;
  if (change.privateKey || change.listenPort || change.firewallMark) {
    // The only part that can fail comes first, so that the whole is applied or nothing.
    if (auto applied = applyInterfaceChange(change); !applied) {
      return tl::unexpected(applied.error());
    }
    if (change.privateKey && privateKey_) {
      removePeer(privateKey_->publicKey());
    }
  }
  if (change.replacePeers) {
    std::vector<crypto::PublicKey> gone;
    for (const auto& [id, peer] : peers_) {
      const auto kept = [&](const PeerChange& other) {
        return !other.remove && other.publicKey == peer->publicKey;
      };
      if (!peer->invitation && std::ranges::none_of(change.peers, kept)) {
        gone.push_back(peer->publicKey);
      }
    }
    for (const crypto::PublicKey& key : gone) {
      removePeer(key);
    }
  }
  for (const PeerChange& peer : change.peers) {
    applyPeerChange(peer, remarks);
  }
  reconcile();
  scheduleTimers();
  return remarks;
}

}  // namespace adit::control
