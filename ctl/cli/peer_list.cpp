#include "cli/peer_list.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/peer_file.hpp"
#include "cli/table.hpp"
#include "config/diagnostics.hpp"
#include "config/mapping_text.hpp"
#include "control/wg_format.hpp"

namespace adit::cli {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::seconds;

std::string placeText(const config::Location& location) {
  return location.file ? fmt::format("{}:{}", *location.file, location.line) : std::string();
}

/// As the file has it.
PeerRow rowOf(const Server& server, const config::PeerConfig& peer) {
  PeerRow row{server.named.interface, peer.name, peer.publicKey,          peer.allowedIps,
              std::nullopt,           {},        placeText(peer.location)};
  for (const config::MapConfig& map : server.config.maps) {
    if (leadsTo(map, peer)) row.maps.push_back(config::listenText(map));
  }
  return row;
}

void addLeases(PeerRow& row, const control::DeviceSnapshot& device) {
  for (const control::PortRequestSnapshot& request : device.requests) {
    const bool granted = request.role == control::PortRequestSnapshot::Role::Lease;
    const bool its = request.peer == row.name || request.peer == row.publicKey.toBase64();
    if (granted && its) row.maps.push_back(request.listen);
  }
}

seconds handshakeOf(const PeerRow& row) {
  return row.running ? std::chrono::duration_cast<seconds>(row.running->lastHandshake)
                     : seconds::zero();
}

std::string handshakeText(const PeerRow& row, seconds now) {
  if (!row.running) return "not up";
  const seconds then = handshakeOf(row);
  if (then <= seconds::zero()) return "never";
  return now <= then ? "now" : control::formatAgo(now, then);
}

std::string prefixesText(const std::vector<Prefix>& prefixes) {
  std::string text;
  for (const Prefix& prefix : prefixes) {
    text += (text.empty() ? "" : ", ") + prefix.toString();
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<PeerRow> peerRows(const Server& server) {
  std::vector<PeerRow> rows;
  for (const config::PeerConfig& peer : server.config.peers) {
    rows.push_back(rowOf(server, peer));
  }
  if (!server.view) return rows;
  std::vector<PeerRow> running;
  for (const control::PeerSnapshot& peer : server.view->device.peers) {
    const auto known = std::ranges::find(rows, peer.publicKey, &PeerRow::publicKey);
    PeerRow row = known != rows.end() ? *known : PeerRow{};
    row.interface = server.named.interface;
    row.name = peer.name;
    row.publicKey = peer.publicKey;
    row.allowedIps = peer.allowedIps;
    row.running = peer;
    addLeases(row, server.view->device);
    running.push_back(std::move(row));
  }
  return running;
}

std::string peersAsText(const std::vector<PeerRow>& rows, seconds now) {
  if (rows.empty()) return "no peers\n";
  std::vector<Row> lines{{"PEER", "ADDRESSES", "HANDSHAKE", "RECEIVED", "SENT", "MAPPINGS"}};
  for (const PeerRow& row : rows) {
    const bool up = row.running.has_value();
    lines.push_back({row.name.empty() ? row.publicKey.toBase64() : row.name,
                     prefixesText(row.allowedIps), handshakeText(row, now),
                     up ? control::formatBytes(row.running->rxBytes) : "-",
                     up ? control::formatBytes(row.running->txBytes) : "-",
                     row.maps.empty() ? "none" : fmt::format("{}", fmt::join(row.maps, ", "))});
  }
  return table(lines);
}

nlohmann::ordered_json peersAsJson(const std::vector<PeerRow>& rows, seconds now) {
  Json all = Json::array();
  for (const PeerRow& row : rows) {
    Json addresses = Json::array();
    for (const Prefix& prefix : row.allowedIps) {
      addresses.push_back(prefix.toString());
    }
    const seconds then = handshakeOf(row);
    const bool ever = then > seconds::zero();
    all.push_back(
        {{"interface", row.interface},
         {"name", row.name},
         {"public_key", row.publicKey.toBase64()},
         {"allowed_ips", std::move(addresses)},
         {"up", row.running.has_value()},
         {"latest_handshake", then.count()},
         {"latest_handshake_age", ever ? Json(std::max(now - then, seconds(0)).count()) : Json()},
         {"rx_bytes", row.running ? row.running->rxBytes : 0},
         {"tx_bytes", row.running ? row.running->txBytes : 0},
         {"maps", row.maps},
         {"file", row.place}});
  }
  return all;
}

}  // namespace adit::cli
