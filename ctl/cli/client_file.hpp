// A stock WireGuard file for a phone or a laptop.
#pragma once

#include <string>

#include "config/model.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct ClientFile {
  crypto::PrivateKey privateKey;
  /// The device's own, as its [Interface] has them.
  std::vector<Prefix> addresses;
  crypto::PublicKey server;
  crypto::PresharedKey presharedKey;
  config::EndpointName endpoint;
  /// What the device sends through the tunnel.
  std::vector<Prefix> allowedIps;
};

/// In wg-quick's grammar, with keepalive 25 and nothing that WireGuard's own programs do not know.
std::string clientText(const ClientFile& file);

}  // namespace adit::cli
