#include "cli/saving.hpp"

#include <algorithm>

#include "config/values.hpp"

namespace adit::cli {
namespace {

using config::Config;
using config::InterfaceConfig;
using config::PeerConfig;

void takePrivateKey(InterfaceConfig& interface, const control::DeviceSnapshot& device,
                    std::vector<std::string>& remarks) {
  if (!interface.privateKeyCommand.empty()) {
    remarks.emplace_back("the private key comes from PrivateKeyCommand and is not saved");
  } else if (!interface.privateKey) {
    remarks.emplace_back("the private key is not in the file and is not saved");
  } else {
    interface.privateKey = device.privateKey;
  }
}

/// The same prefixes in another order are no change.
void takeAllowedIps(PeerConfig& peer, const std::vector<Prefix>& running) {
  if (!std::ranges::is_permutation(peer.allowedIps, running)) {
    peer.allowedIps = running;
  }
}

Result<PeerConfig> peerOf(const Config& loaded, const control::PeerSnapshot& running) {
  const auto known = std::ranges::find(loaded.peers, running.publicKey, &PeerConfig::publicKey);
  PeerConfig peer = known == loaded.peers.end() ? PeerConfig{} : *known;
  peer.publicKey = running.publicKey;
  peer.presharedKey =
      running.presharedKey.isZero() ? std::nullopt : std::optional(running.presharedKey);
  takeAllowedIps(peer, running.allowedIps);
  peer.persistentKeepalive = running.persistentKeepalive;
  peer.endpoint.reset();
  if (!running.configuredEndpoint.empty()) {
    const auto endpoint = config::parseEndpoint(running.configuredEndpoint);
    if (!endpoint)
      return fail("peer {}: {}", running.publicKey.toBase64(), endpoint.error().message);
    peer.endpoint = *endpoint;
  }
  return peer;
}

}  // namespace

Result<Config> withRunningState(const Config& loaded, const control::DeviceView& running,
                                std::vector<std::string>& remarks) {
  Config wanted = loaded;
  const control::DeviceSnapshot& device = running.device;
  takePrivateKey(wanted.interface, device, remarks);
  wanted.interface.listenPort = device.configured.listenPort;
  wanted.interface.firewallMark = device.configured.firewallMark;
  if (wanted.interface.firewallMark == 0U) {
    wanted.interface.firewallMark.reset();
  }
  wanted.peers.clear();
  for (const control::PeerSnapshot& peer : device.peers) {
    auto entry = peerOf(loaded, peer);
    if (!entry) return tl::unexpected(entry.error());
    wanted.peers.push_back(std::move(*entry));
  }
  return wanted;
}

}  // namespace adit::cli
