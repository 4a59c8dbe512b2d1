// A peer of a device as the control plane knows it. Internal to lib/control.
#pragma once

#include "control/device.hpp"

namespace adit::control {

struct Device::Peer {
  Peer(noise::PeerId peerId, const crypto::PublicKey& key, EndpointPolicy policy)
      : id(peerId), publicKey(key), endpointPolicy(std::move(policy)) {}

  noise::PeerId id;
  crypto::PublicKey publicKey;
  std::string name;
  crypto::PresharedKey presharedKey;
  std::vector<Prefix> allowedIps;
  std::uint16_t persistentKeepalive = 0;
  bool roam = true;
  /// Of the file, or set last by wg(8) or `adit set`.
  std::optional<config::EndpointName> configuredEndpoint;
  EndpointPolicy endpointPolicy;
  /// Where datagrams go now.
  std::optional<Endpoint> endpoint;
  /// It is an invitation's enrolment peer, and no peer of the configuration: no allowed IPs, never
  /// called by us, shown and saved nowhere.
  std::optional<config::InvitationConfig> invitation;
  /// A request of it waits for its turn.
  bool joinWaits = false;
  /// Requests with another key than the one that has joined.
  std::uint64_t joinsRefused = 0;
  /// The first initiation since a handshake finished, and whether the log has told of the silence.
  std::optional<BootTime> unansweredSince;
  bool silenceTold = false;
  /// When the log last told of a session.
  std::optional<BootTime> sessionTold;

  /// The configured name, or something that a log line can name the peer by.
  [[nodiscard]] std::string label() const { return name.empty() ? publicKey.toBase64() : name; }
};

}  // namespace adit::control
