// Machines that join by an invitation: their enrolment peers, and the answers to their requests
// (docs/onboarding.md).
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/device.hpp"
#include "control/device_peer.hpp"

namespace adit::control {
namespace {

using config::InvitationConfig;
using enrol::Verdict;

const config::PeerConfig* peerWith(const config::Config& config, const crypto::PublicKey& key) {
  const auto found = std::ranges::find(config.peers, key, &config::PeerConfig::publicKey);
  return found == config.peers.end() ? nullptr : &*found;
}

enrol::Grant grantOf(const config::PortGrant& grant) {
  using Protocol = config::PortGrant::Protocol;
  return {grant.protocol != Protocol::Udp, grant.protocol != Protocol::Tcp, grant.first,
          grant.last};
}

}  // namespace

void Device::updateInvitations() {
  std::vector<crypto::PublicKey> open;
  for (const InvitationConfig& invitation : config_.invitations) {
    // Who has joined may ask again until the invitation expires: its answer may have been lost.
    const bool withdrawn = invitation.bound && peerWith(config_, *invitation.bound) == nullptr;
    if (withdrawn || parts_.clock.realTime() >= invitation.expires) {
      continue;
    }
    open.push_back(invitation.publicKey);
    const Peer* known = find(invitation.publicKey);
    Peer& peer = addPeer(invitation.publicKey);
    peer.invitation = invitation;
    if (known == nullptr || known->presharedKey != invitation.presharedKey) {
      config::PeerConfig config;
      config.name = "invited " + invitation.name;
      config.publicKey = invitation.publicKey;
      config.presharedKey = invitation.presharedKey;
      configurePeer(peer, config);
    }
  }
  std::vector<crypto::PublicKey> over;
  for (const auto& [id, peer] : peers_) {
    if (peer->invitation && std::ranges::find(open, peer->publicKey) == open.end()) {
      over.push_back(peer->publicKey);
    }
  }
  for (const crypto::PublicKey& key : over) {
    spdlog::info("{}: the invitation of {} is over", options_.name, find(key)->invitation->name);
    removePeer(key);
  }
}

/// An answer needs a new configuration, which must not come while the data plane hands over events.
/// One request at a time: a peer cannot pile up work.
void Device::hearJoin(Peer& peer, std::span<const std::uint8_t> message) {
  if (peer.joinWaits) {
    return;
  }
  peer.joinWaits = true;
  parts_.loop.post([this, id = peer.id, copy = std::vector(message.begin(), message.end())] {
    answerJoin(id, copy);
  });
}

void Device::answerJoin(noise::PeerId id, const std::vector<std::uint8_t>& message) {
  Peer* peer = find(id);
  if (peer == nullptr) {
    return;
  }
  peer->joinWaits = false;
  // While PostUp runs, for one; who joins asks again.
  if (!started_ || !privateKey_) {
    return;
  }
  const auto request = enrol::decodeRequest(message, *privateKey_, peer->publicKey);
  if (!request) {
    spdlog::debug("{}: {}: not a request to join", options_.name, peer->label());
    return;
  }
  enrol::Answer answer;
  answer.verdict = judgeJoin(*peer, request->joining);
  // The new configuration may have ended the invitation.
  peer = find(id);
  if (peer == nullptr) {
    return;
  }
  if (answer.verdict == Verdict::Accepted) {
    answer = acceptedAnswer(*peer->invitation, request->joining);
  }
  parts_.dataPlane.sendControl(id, enrol::encodeAnswer(answer, request->keys, parts_.random));
}

Verdict Device::judgeJoin(Peer& peer, const crypto::PublicKey& joining) {
  const std::string name = peer.invitation->name;
  // Not while hooks run: a new configuration could not be applied.
  const auto verdict = changing_ ? Result<Verdict>(Verdict::NotNow)
                                 : parts_.privileged.completeInvitation(peer.publicKey, joining);
  if (!verdict) {
    spdlog::error("{}: {} cannot join: {}", options_.name, name, verdict.error().message);
    return Verdict::NotNow;
  }
  if (*verdict == Verdict::Taken) {
    if (++peer.joinsRefused == 1) {
      spdlog::warn("{}: another machine, at {}, has the token of {}, which has joined already",
                   options_.name, peer.endpoint ? peer.endpoint->toString() : "(unknown)", name);
    }
    return *verdict;
  }
  if (*verdict != Verdict::Accepted || peerWith(config_, joining) != nullptr) {
    return *verdict;
  }
  if (const auto reloaded = reload(); !reloaded) {
    spdlog::error("{}: {} cannot join: {}", options_.name, name, reloaded.error().message);
    return Verdict::NotNow;
  }
  spdlog::info("{}: {} has joined with the key {}", options_.name, name, joining.toBase64());
  return peerWith(config_, joining) != nullptr ? Verdict::Accepted : Verdict::NotNow;
}

enrol::Answer Device::acceptedAnswer(const InvitationConfig& invitation,
                                     const crypto::PublicKey& joining) const {
  const config::PeerConfig& peer = *peerWith(config_, joining);
  enrol::Answer answer;
  answer.verdict = Verdict::Accepted;
  answer.presharedKey = peer.presharedKey.value_or(crypto::PresharedKey{});
  answer.addresses = invitation.addresses;
  answer.mtu = config_.interface.mtu.value_or(0);
  for (const config::PortGrant& grant : peer.allowMaps) {
    if (answer.grants.size() < enrol::kMaxGrants) {
      answer.grants.push_back(grantOf(grant));
    }
  }
  answer.thirdParty = peer.allowThirdParty;
  return answer;
}

}  // namespace adit::control
