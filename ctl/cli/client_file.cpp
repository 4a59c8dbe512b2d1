#include "cli/client_file.hpp"

#include "config/writer.hpp"

namespace adit::cli {

std::string clientText(const ClientFile& file) {
  constexpr std::uint16_t kKeepalive = 25;
  config::Config config;
  config.interface.privateKey = file.privateKey;
  for (const Prefix& prefix : file.addresses) {
    config.interface.addresses.push_back({prefix.address(), prefix.length()});
  }
  config::PeerConfig& peer = config.peers.emplace_back();
  peer.publicKey = file.server;
  peer.presharedKey = file.presharedKey;
  peer.endpoint = file.endpoint;
  peer.allowedIps = file.allowedIps;
  peer.persistentKeepalive = kKeepalive;
  return config::write(config);
}

}  // namespace adit::cli
