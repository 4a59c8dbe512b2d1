// All peers and sessions of a device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/user/allowed_ips.hpp"
#include "dataplane/user/peer.hpp"
#include "dataplane/user/session.hpp"

namespace adit::dataplane::user {

/// Looked at in batches or by the control thread; changed by the control thread while no batch
/// runs (see BatchGate). Sessions are numbered by random indices of our own choice, so that nobody
/// can make them collide in the hash table.
class PeerTable {
 public:
  [[nodiscard]] Peer* peer(PeerId id) const {
    const auto found = peers_.find(id);
    return found == peers_.end() ? nullptr : found->second.get();
  }
  /// Null for an unknown index, and for a retired session.
  [[nodiscard]] Session* session(std::uint32_t localIndex) const {
    const auto found = sessions_.find(localIndex);
    return found == sessions_.end() || found->second->retired() ? nullptr : found->second.get();
  }
  [[nodiscard]] const AllowedIps& allowedIps() const { return allowedIps_; }
  [[nodiscard]] const std::map<PeerId, std::unique_ptr<Peer>>& peers() const { return peers_; }
  [[nodiscard]] bool indexInUse(std::uint32_t localIndex) const {
    return sessions_.contains(localIndex);
  }

  /// Adds the peer or replaces what is set of it.
  Peer& set(const PeerSettings& settings) {
    auto& peer = peers_[settings.id];
    if (!peer) peer = std::make_unique<Peer>(settings.id, settings.publicKey);
    peer->publicKey = settings.publicKey;
    peer->persistentKeepalive = settings.persistentKeepalive;
    peer->roam = settings.roam;
    allowedIps_.removePeer(peer.get());
    for (const Prefix& prefix : settings.allowedIps) {
      allowedIps_.insert(prefix, peer.get());
    }
    return *peer;
  }

  void remove(PeerId id) {
    Peer* peer = this->peer(id);
    if (peer == nullptr) return;
    allowedIps_.removePeer(peer);
    std::erase_if(sessions_, [peer](const auto& entry) { return &entry.second->peer() == peer; });
    peers_.erase(id);
  }

  void addSession(std::unique_ptr<Session> session, noise::KeySlot slot) {
    Session* raw = session.get();
    sessions_.emplace(raw->localIndex(), std::move(session));
    KeySlots& slots = raw->peer().slots;
    if (slot == noise::KeySlot::Current) {
      slots.installCurrent(raw);
    } else {
      slots.installNext(raw);
    }
    freeRetired();
  }

  /// Wipes and frees sessions that are in no slot any more.
  void freeRetired() {
    std::erase_if(sessions_, [](const auto& entry) { return entry.second->retired(); });
  }

 private:
  // Declared before sessions, which refer to them.
  std::map<PeerId, std::unique_ptr<Peer>> peers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Session>> sessions_;
  AllowedIps allowedIps_;
};

}  // namespace adit::dataplane::user
