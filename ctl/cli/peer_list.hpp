// What `adit peer list` tells, as text and as JSON.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/server.hpp"

namespace adit::cli {

struct PeerRow {
  std::string interface;
  std::string name;
  crypto::PublicKey publicKey;
  std::vector<Prefix> allowedIps;
  /// Nothing while the interface is down.
  std::optional<control::PeerSnapshot> running;
  /// "tcp/18080": of the files, and what the peer has asked for.
  std::vector<std::string> maps;
  /// "FILE:LINE"; empty for a peer that no file has.
  std::string place;
};

/// The peers of the running interface, or of its file while it is down.
std::vector<PeerRow> peerRows(const Server& server);

/// `now` since the epoch.
std::string peersAsText(const std::vector<PeerRow>& rows, std::chrono::seconds now);
nlohmann::ordered_json peersAsJson(const std::vector<PeerRow>& rows, std::chrono::seconds now);

}  // namespace adit::cli
