#include "control/state_store.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "util/file.hpp"

namespace adit::control {
namespace {

using nlohmann::json;

constexpr auto kDurableInterval = std::chrono::minutes(10);
constexpr mode_t kMode = 0600;
constexpr const char* kMarkFile = "timestamp";
constexpr const char* kPeersFile = "peers.json";
constexpr const char* kLeasesFile = "leases.json";

std::string labelText(const noise::Tai64n& label) {
  return fmt::format("{}.{:09}", label.seconds, label.nanoseconds);
}

std::optional<noise::Tai64n> labelFromText(const std::string& text) {
  noise::Tai64n label;
  int used = 0;
  if (std::sscanf(text.c_str(), "%20lu.%9u%n", &label.seconds, &label.nanoseconds, &used) != 2) {
    return std::nullopt;
  }
  return label;
}

json toJson(const StoredPeer& peer) {
  json object = json::object();
  if (peer.greatestTimestamp) {
    object["timestamp"] = labelText(*peer.greatestTimestamp);
  }
  if (peer.suite) {
    object["suite"] = crypto::suiteName(*peer.suite);
  }
  if (peer.endpoint) {
    object["endpoint"] = peer.endpoint->toString();
  }
  return object;
}

StoredPeer fromJson(const json& object) {
  StoredPeer peer;
  if (object.contains("timestamp")) {
    peer.greatestTimestamp = labelFromText(object.at("timestamp").get<std::string>());
  }
  if (object.contains("suite")) {
    peer.suite = crypto::suiteFromName(object.at("suite").get<std::string>());
  }
  if (object.contains("endpoint")) {
    // A zone that has gone makes this fail; the peer is then found by its configured endpoint.
    if (const auto endpoint = Endpoint::parse(object.at("endpoint").get<std::string>())) {
      peer.endpoint = *endpoint;
    }
  }
  return peer;
}

}  // namespace

StateStore::StateStore(const Clock& clock, std::filesystem::path durable,
                       std::filesystem::path runtime)
    : clock_(clock), durable_(std::move(durable)), runtime_(std::move(runtime)) {}

std::vector<std::string> StateStore::load() {
  std::vector<std::string> warnings;
  const auto note = [&](const Result<void>& loaded) {
    if (!loaded && loaded.error().code != ENOENT) {
      warnings.push_back(loaded.error().message);
    }
  };
  note(loadMark(durable_ / kMarkFile));
  note(loadPeers(durable_ / kPeersFile));
  note(loadPeers(runtime_ / kPeersFile));
  return warnings;
}

Result<void> StateStore::loadMark(const std::filesystem::path& path) {
  const auto text = readFile(path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  mark_ = labelFromText(*text);
  if (!mark_) {
    return fail("{} is damaged: peers may refuse handshakes while this machine's clock is behind",
                path.string());
  }
  return {};
}

Result<void> StateStore::loadPeers(const std::filesystem::path& path) {
  const auto text = readFile(path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  try {
    const json peers = json::parse(*text);
    for (const auto& [name, object] : peers.items()) {
      const auto key = crypto::PublicKey::fromBase64(name);
      if (!key) {
        return fail("{} is damaged: the timestamps of some peers are lost", path.string());
      }
      const StoredPeer read = fromJson(object);
      StoredPeer& kept = peers_[*key];
      kept.greatestTimestamp = std::max(kept.greatestTimestamp, read.greatestTimestamp);
      kept.suite = read.suite ? read.suite : kept.suite;
      kept.endpoint = read.endpoint ? read.endpoint : kept.endpoint;
    }
  } catch (const json::exception&) {
    return fail("{} is damaged: the timestamps of some peers are lost", path.string());
  }
  return {};
}

Result<void> StateStore::save(const noise::Tai64n& mark) {
  auto saved =
      replaceFile(durable_ / kMarkFile, labelText(mark) + "\n", kMode, Durability::PowerCut);
  if (saved) {
    mark_ = mark;
  }
  return saved;
}

StoredPeer StateStore::peer(const crypto::PublicKey& key) const {
  const auto found = peers_.find(key);
  return found == peers_.end() ? StoredPeer{} : found->second;
}

Result<void> StateStore::setPeer(const crypto::PublicKey& key, const StoredPeer& peer) {
  peers_[key] = peer;
  if (auto written = replaceFile(runtime_ / kPeersFile, peersText(), kMode, Durability::Process);
      !written) {
    return written;
  }
  if (lastDurable_ && clock_.now() - *lastDurable_ < kDurableInterval) {
    return {};
  }
  return flush();
}

void StateStore::removePeer(const crypto::PublicKey& key) {
  peers_.erase(key);
}

Result<void> StateStore::flush() {
  lastDurable_ = clock_.now();
  return replaceFile(durable_ / kPeersFile, peersText(), kMode, Durability::PowerCut);
}

StateStore::LeasesText StateStore::leases() const {
  if (auto text = readFile(runtime_ / kLeasesFile)) {
    return {std::move(*text), true};
  }
  return {readFile(durable_ / kLeasesFile).value_or(std::string()), false};
}

Result<void> StateStore::saveLeases(std::string_view text, Durability durability) {
  const auto& folder = durability == Durability::Process ? runtime_ : durable_;
  return replaceFile(folder / kLeasesFile, text, kMode, durability);
}

std::string StateStore::peersText() const {
  json object = json::object();
  for (const auto& [key, peer] : peers_) {
    object[key.toBase64()] = toJson(peer);
  }
  return object.dump(1) + "\n";
}

}  // namespace adit::control
