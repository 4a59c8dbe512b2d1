// The JSON forms of a device and of a change to it.
#include <sodium.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "control/control_protocol.hpp"
#include "control/control_protocol_members.hpp"
#include "control/device_pcp_json.hpp"

namespace adit::control {
namespace {

using Json = nlohmann::ordered_json;
using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
using std::chrono::nanoseconds;

Json countsToJson(const Counts& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) {
    json[name] = count;
  }
  return json;
}

Result<void> countsFromJson(const Json* json, Counts& out) {
  if (json == nullptr) return {};
  if (!json->is_object()) return fail("\"drops\": expected an object");
  for (const auto& member : json->items()) {
    if (!member.value().is_number_unsigned()) return fail("\"drops\": expected counts");
    out.emplace_back(member.key(), member.value().get<std::uint64_t>());
  }
  return {};
}

template <typename List>
Json textsToJson(const List& list) {
  Json json = Json::array();
  for (const auto& element : list) {
    json.push_back(element.toString());
  }
  return json;
}

/// Appends what `parse` makes of each text of an array.
template <typename Value, typename Parse>
auto appendParsed(std::vector<Value>& out, Parse parse) {
  return [&out, parse](const std::string& text) -> Result<void> {
    return parse(text).map([&](Value value) { out.push_back(std::move(value)); });
  };
}

Result<Prefix> parsePrefix(std::string_view text) {
  return Prefix::parse(text);
}

using SuiteSpeeds = std::array<std::uint32_t, ADIT_SUITE_COUNT>;

Json suiteSpeedsToJson(const SuiteSpeeds& speeds) {
  Json json;
  for (const crypto::Suite suite : crypto::kSuites) {
    json[std::string(crypto::suiteName(suite))] = speeds[static_cast<std::size_t>(suite)];
  }
  return json;
}

void readSuiteSpeeds(const Json& json, SuiteSpeeds& out) {
  Members speeds(json, "suite_speeds");
  for (const crypto::Suite suite : crypto::kSuites) {
    speeds.read(std::string(crypto::suiteName(suite)).c_str(),
                out[static_cast<std::size_t>(suite)]);
  }
}

Json peerToJson(const PeerSnapshot& peer, bool keys) {
  Json json;
  if (!peer.name.empty()) json["name"] = peer.name;
  json["public_key"] = peer.publicKey.toBase64();
  json["has_preshared_key"] = !peer.presharedKey.isZero();
  if (keys && !peer.presharedKey.isZero()) {
    json["preshared_key"] = crypto::presharedKeyToBase64(peer.presharedKey);
  }
  json["endpoint"] = peer.endpoint ? Json(peer.endpoint->toString()) : Json();
  if (!peer.unresolvedEndpoint.empty()) json["unresolved_endpoint"] = peer.unresolvedEndpoint;
  json["configured_endpoint"] =
      peer.configuredEndpoint.empty() ? Json() : Json(peer.configuredEndpoint);
  json["allowed_ips"] = textsToJson(peer.allowedIps);
  json["persistent_keepalive"] = peer.persistentKeepalive;
  const auto handshake = std::max(peer.lastHandshake, nanoseconds::zero());
  json["latest_handshake"] = static_cast<std::uint64_t>(handshake.count() / 1'000'000'000);
  json["latest_handshake_nsec"] = static_cast<std::uint64_t>(handshake.count() % 1'000'000'000);
  json["rx_bytes"] = peer.rxBytes;
  json["tx_bytes"] = peer.txBytes;
  json["cipher"] = peer.suite ? Json(crypto::suiteName(*peer.suite)) : Json();
  json["clock_behind"] = peer.clockBehind;
  if (peer.clockBehindBy) json["clock_behind_seconds"] = peer.clockBehindBy->count();
  json["handshakes"] = peer.handshakes;
  if (peer.unanswered) json["unanswered_seconds"] = peer.unanswered->count();
  if (peer.suiteSpeeds) json["suite_speeds"] = suiteSpeedsToJson(*peer.suiteSpeeds);
  json["drops"] = countsToJson(peer.drops);
  return json;
}

/// The zone of a link-local address may name an interface of the daemon's namespace alone; then
/// the text is still worth showing.
void readEndpoint(Members& members, PeerSnapshot& peer) {
  std::string text;
  members.read("endpoint", text);
  if (text.empty()) return;
  if (const auto endpoint = Endpoint::parse(text)) {
    peer.endpoint = *endpoint;
  } else {
    peer.unresolvedEndpoint = text;
  }
}

void readHandshake(Members& members, PeerSnapshot& peer) {
  std::uint32_t fraction = 0;
  std::uint64_t whole = 0;
  members.read("latest_handshake", whole);
  members.read("latest_handshake_nsec", fraction);
  // Beyond what nanoseconds can hold (the year 2262) nothing that was sent can be true.
  constexpr std::uint64_t kMostSeconds = 9'000'000'000;
  peer.lastHandshake = std::chrono::seconds(std::min(whole, kMostSeconds)) + nanoseconds(fraction);
}

Result<void> peerFromJson(const Json& json, DeviceView& view) {
  PeerSnapshot peer;
  Members members(json, "peer");
  std::optional<crypto::PublicKey> publicKey;
  std::optional<crypto::PresharedKey> presharedKey;
  std::string suite;
  bool hasPresharedKey = false;
  members.require("public_key");
  members.read("name", peer.name);
  members.parsed("public_key", publicKey, crypto::PublicKey::fromBase64);
  members.read("has_preshared_key", hasPresharedKey);
  members.parsed("preshared_key", presharedKey, crypto::presharedKeyFromBase64);
  members.read("unresolved_endpoint", peer.unresolvedEndpoint);
  members.read("configured_endpoint", peer.configuredEndpoint);
  readEndpoint(members, peer);
  members.texts("allowed_ips", appendParsed(peer.allowedIps, parsePrefix));
  members.read("persistent_keepalive", peer.persistentKeepalive);
  readHandshake(members, peer);
  members.read("rx_bytes", peer.rxBytes);
  members.read("tx_bytes", peer.txBytes);
  members.read("cipher", suite);
  members.read("clock_behind", peer.clockBehind);
  std::optional<std::uint64_t> behind;
  members.optional("clock_behind_seconds", behind);
  if (behind) peer.clockBehindBy = std::chrono::seconds(*behind);
  members.read("handshakes", peer.handshakes);
  std::optional<std::uint32_t> unanswered;
  members.optional("unanswered_seconds", unanswered);
  if (unanswered) peer.unanswered = std::chrono::seconds(*unanswered);
  if (const Json* speeds = members.find("suite_speeds")) {
    readSuiteSpeeds(*speeds, peer.suiteSpeeds.emplace());
  }
  if (auto done = members.finish(); !done) return done;
  if (auto done = countsFromJson(members.find("drops"), peer.drops); !done) return done;
  peer.publicKey = *publicKey;
  peer.presharedKey = presharedKey.value_or(crypto::PresharedKey{});
  peer.suite = crypto::suiteFromName(suite);
  view.device.peers.push_back(std::move(peer));
  view.hasPresharedKey.push_back(hasPresharedKey);
  return {};
}

Json usageToJson(const nat::MapUsage& usage) {
  return {{"connections", usage.connections}, {"open", usage.open},
          {"packets_in", usage.packetsIn},    {"bytes_in", usage.bytesIn},
          {"packets_out", usage.packetsOut},  {"bytes_out", usage.bytesOut}};
}

Result<nat::MapUsage> usageFromJson(const Json& json) {
  nat::MapUsage usage;
  Members members(json, "usage");
  members.read("connections", usage.connections);
  members.read("open", usage.open);
  members.read("packets_in", usage.packetsIn);
  members.read("bytes_in", usage.bytesIn);
  members.read("packets_out", usage.packetsOut);
  members.read("bytes_out", usage.bytesOut);
  return members.finish().map([&] { return usage; });
}

Json mapToJson(const MapSnapshot& map) {
  Json json{{"listen", map.listen}, {"to", map.to}, {"targets", map.targets}};
  json["target"] = map.target;
  json["source"] = map.source;
  json["active"] = map.active;
  if (!map.reason.empty()) json["reason"] = map.reason;
  if (map.usage) json["usage"] = usageToJson(*map.usage);
  return json;
}

Result<void> mapFromJson(const Json& json, std::vector<MapSnapshot>& maps) {
  MapSnapshot map;
  Members members(json, "map");
  members.read("listen", map.listen);
  members.read("target", map.target);
  members.read("to", map.to);
  members.texts("targets", [&](const std::string& target) -> Result<void> {
    map.targets.push_back(target);
    return {};
  });
  members.read("source", map.source);
  members.read("active", map.active);
  members.read("reason", map.reason);
  if (const Json* usage = members.find("usage")) {
    const auto read = usageFromJson(*usage);
    if (!read) return tl::unexpected(read.error());
    map.usage = *read;
  }
  maps.push_back(std::move(map));
  return members.finish();
}

Result<void> troubleFromJson(const Json& json, std::vector<TroubleSnapshot>& troubles) {
  TroubleSnapshot trouble;
  Members members(json, "trouble");
  members.read("kind", trouble.kind);
  members.read("peer", trouble.peer);
  members.read("text", trouble.text);
  troubles.push_back(std::move(trouble));
  return members.finish();
}

Json troublesToJson(const std::vector<TroubleSnapshot>& troubles) {
  Json json = Json::array();
  for (const TroubleSnapshot& trouble : troubles) {
    json.push_back(Json{{"kind", trouble.kind}, {"peer", trouble.peer}, {"text", trouble.text}});
  }
  return json;
}

template <typename Number>
Json optionalToJson(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

Json configuredToJson(const ConfiguredState& configured) {
  Json json;
  json["listen_port"] = optionalToJson(configured.listenPort);
  json["fwmark"] = optionalToJson(configured.firewallMark);
  json["files"] = stampsToJson(configured.files);
  return json;
}

void readConfigured(Members& device, ConfiguredState& out) {
  const Json* json = device.find("configured");
  if (json == nullptr) return;
  Members configured(*json, "configured");
  configured.optional("listen_port", out.listenPort);
  configured.optional("fwmark", out.firewallMark);
  configured.elements("files", [&](const Json& file) -> Result<void> {
    return stampFromJson(file).map(
        [&](config::FileStamp stamp) { out.files.push_back(std::move(stamp)); });
  });
}

void readDevice(Members& members, DeviceView& view) {
  DeviceSnapshot& device = view.device;
  members.require("name");
  members.read("name", device.name);
  members.parsed("public_key", view.publicKey, crypto::PublicKey::fromBase64);
  members.read("has_private_key", view.hasPrivateKey);
  members.parsed("private_key", device.privateKey, crypto::PrivateKey::fromBase64);
  members.read("listen_port", device.listenPort);
  members.read("fwmark", device.firewallMark);
  readConfigured(members, device.configured);
  members.read("backend", device.backend);
  members.read("backend_reason", device.backendReason);
  members.read("mtu", device.mtu);
  members.texts("addresses", appendParsed(device.addresses, InterfaceAddress::parse));
  members.elements("maps", [&](const Json& map) { return mapFromJson(map, device.maps); });
  members.elements("requests", [&](const Json& request) {
    return requestFromJson(request).map(
        [&](PortRequestSnapshot read) { device.requests.push_back(std::move(read)); });
  });
  members.texts("warnings", [&](const std::string& warning) -> Result<void> {
    device.warnings.push_back(warning);
    return {};
  });
  members.elements("troubles",
                   [&](const Json& trouble) { return troubleFromJson(trouble, device.troubles); });
  if (const Json* speeds = members.find("suite_speeds")) {
    readSuiteSpeeds(*speeds, device.suiteSpeeds);
  }
  members.elements("peers", [&](const Json& peer) { return peerFromJson(peer, view); });
}

Json peerChangeToJson(const PeerChange& peer) {
  Json json;
  json["public_key"] = peer.publicKey.toBase64();
  if (peer.remove) json["remove"] = true;
  if (peer.updateOnly) json["update_only"] = true;
  if (peer.presharedKey) {
    json["preshared_key"] = crypto::presharedKeyToBase64(*peer.presharedKey);
  }
  if (peer.endpoint) json["endpoint"] = peer.endpoint->toString();
  if (peer.persistentKeepalive) json["persistent_keepalive"] = *peer.persistentKeepalive;
  if (peer.replaceAllowedIps) json["replace_allowed_ips"] = true;
  if (!peer.addAllowedIps.empty()) json["add_allowed_ips"] = textsToJson(peer.addAllowedIps);
  if (!peer.removeAllowedIps.empty()) {
    json["remove_allowed_ips"] = textsToJson(peer.removeAllowedIps);
  }
  return json;
}

Result<void> peerChangeFromJson(const Json& json, std::vector<PeerChange>& peers) {
  PeerChange peer;
  Members members(json, "peer");
  std::optional<crypto::PublicKey> publicKey;
  members.require("public_key");
  members.parsed("public_key", publicKey, crypto::PublicKey::fromBase64);
  members.read("remove", peer.remove);
  members.read("update_only", peer.updateOnly);
  members.parsed("preshared_key", peer.presharedKey, crypto::presharedKeyFromBase64);
  members.parsed("endpoint", peer.endpoint, Endpoint::parse);
  members.optional("persistent_keepalive", peer.persistentKeepalive);
  members.read("replace_allowed_ips", peer.replaceAllowedIps);
  members.texts("add_allowed_ips", appendParsed(peer.addAllowedIps, parsePrefix));
  members.texts("remove_allowed_ips", appendParsed(peer.removeAllowedIps, parsePrefix));
  members.refuseUnknown();
  if (auto done = members.finish(); !done) return done;
  peer.publicKey = *publicKey;
  peers.push_back(std::move(peer));
  return {};
}

}  // namespace

Json stampsToJson(const std::vector<config::FileStamp>& files) {
  Json json = Json::array();
  for (const config::FileStamp& file : files) {
    std::string hash(file.hash.size() * 2 + 1, '\0');
    sodium_bin2hex(hash.data(), hash.size(), file.hash.data(), file.hash.size());
    hash.pop_back();
    json.push_back(Json{{"path", file.path.string()}, {"size", file.size}, {"hash", hash}});
  }
  return json;
}

Result<config::FileStamp> stampFromJson(const Json& json) {
  config::FileStamp file;
  std::string path;
  std::string hash;
  Members members(json, "file");
  members.require("path");
  members.read("path", path);
  members.read("size", file.size);
  members.read("hash", hash);
  members.refuseUnknown();
  if (auto done = members.finish(); !done) return tl::unexpected(done.error());
  std::size_t length = 0;
  if (sodium_hex2bin(file.hash.data(), file.hash.size(), hash.data(), hash.size(), nullptr, &length,
                     nullptr) != 0 ||
      length != file.hash.size() || hash.size() != 2 * file.hash.size()) {
    return fail("\"hash\": expected {} hexadecimal digits", 2 * file.hash.size());
  }
  file.path = path;
  return file;
}

DeviceView viewOf(DeviceSnapshot snapshot) {
  DeviceView view;
  view.hasPrivateKey = snapshot.privateKey.has_value();
  if (snapshot.privateKey) view.publicKey = snapshot.privateKey->publicKey();
  for (const PeerSnapshot& peer : snapshot.peers) {
    view.hasPresharedKey.push_back(!peer.presharedKey.isZero());
  }
  view.device = std::move(snapshot);
  return view;
}

Json snapshotToJson(const DeviceSnapshot& device, bool keys) {
  Json json;
  json["name"] = device.name;
  json["public_key"] = device.privateKey ? Json(device.privateKey->publicKey().toBase64()) : Json();
  json["has_private_key"] = device.privateKey.has_value();
  if (keys && device.privateKey) json["private_key"] = device.privateKey->toBase64();
  json["listen_port"] = device.listenPort;
  json["fwmark"] = device.firewallMark;
  json["configured"] = configuredToJson(device.configured);
  json["backend"] = device.backend;
  json["backend_reason"] = device.backendReason;
  json["mtu"] = device.mtu;
  json["addresses"] = textsToJson(device.addresses);
  json["maps"] = Json::array();
  for (const MapSnapshot& map : device.maps) {
    json["maps"].push_back(mapToJson(map));
  }
  json["requests"] = requestsToJson(device.requests);
  json["warnings"] = device.warnings;
  json["troubles"] = troublesToJson(device.troubles);
  json["suite_speeds"] = suiteSpeedsToJson(device.suiteSpeeds);
  json["drops"] = countsToJson(device.drops);
  json["peers"] = Json::array();
  for (const PeerSnapshot& peer : device.peers) {
    json["peers"].push_back(peerToJson(peer, keys));
  }
  return json;
}

Result<DeviceView> viewFromJson(const Json& json) {
  DeviceView view;
  Members members(json, "device");
  readDevice(members, view);
  if (auto done = members.finish(); !done) return tl::unexpected(done.error());
  if (auto done = countsFromJson(members.find("drops"), view.device.drops); !done) {
    return tl::unexpected(done.error());
  }
  return view;
}

Json changeToJson(const DeviceChange& change) {
  Json json = Json::object();
  if (change.privateKey) json["private_key"] = crypto::presharedKeyToBase64(*change.privateKey);
  if (change.listenPort) json["listen_port"] = *change.listenPort;
  if (change.firewallMark) json["fwmark"] = *change.firewallMark;
  if (change.replacePeers) json["replace_peers"] = true;
  json["peers"] = Json::array();
  for (const PeerChange& peer : change.peers) {
    json["peers"].push_back(peerChangeToJson(peer));
  }
  return json;
}

Result<DeviceChange> changeFromJson(const Json& json) {
  DeviceChange change;
  Members members(json, "change");
  // Unlike a PrivateKey, this one may be all zero, which takes the key away.
  members.parsed("private_key", change.privateKey, crypto::presharedKeyFromBase64);
  members.optional("listen_port", change.listenPort);
  members.optional("fwmark", change.firewallMark);
  members.read("replace_peers", change.replacePeers);
  members.elements("peers",
                   [&](const Json& peer) { return peerChangeFromJson(peer, change.peers); });
  members.refuseUnknown();
  if (auto done = members.finish(); !done) return tl::unexpected(done.error());
  return change;
}

}  // namespace adit::control
