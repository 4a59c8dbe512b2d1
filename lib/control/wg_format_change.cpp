#include "control/wg_format_change.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace adit::control {
namespace {

bool isSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string withoutBlanks(std::string_view text) {
  std::string out;
  std::ranges::copy_if(text, std::back_inserter(out), [](char c) { return !isSpace(c); });
  return out;
}

template <typename Number>
std::optional<Number> parseNumber(std::string_view text, int base = 10) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<std::uint16_t> parsePort(std::string_view text) {
  const auto port = parseNumber<std::uint16_t>(text);
  if (!port) return fail("listen-port takes 0 to 65535, not \"{}\"", text);
  return *port;
}

Result<std::uint32_t> parseMark(std::string_view text) {
  if (text == "off") return 0;
  const bool hex = text.starts_with("0x");
  const auto mark =
      hex ? parseNumber<std::uint32_t>(text.substr(2), 16) : parseNumber<std::uint32_t>(text);
  if (!mark) return fail("fwmark takes off or 0 to 0xffffffff, not \"{}\"", text);
  return *mark;
}

Result<std::uint16_t> parseKeepalive(std::string_view text) {
  if (text == "off") return 0;
  const auto interval = parseNumber<std::uint16_t>(text);
  if (!interval)
    return fail("persistent-keepalive takes off or 1 to 65535 seconds, not \"{}\"", text);
  return *interval;
}

/// The arguments of `set`, taken from the front one after the other.
class ArgumentParser {
 public:
  ArgumentParser(std::span<const std::string> arguments, const ChangeSources& sources,
                 std::vector<std::string>& remarks)
      : arguments_(arguments), sources_(sources), remarks_(remarks) {}

  Result<DeviceChange> parse() {
    while (!arguments_.empty()) {
      const std::string word = arguments_.front();
      arguments_ = arguments_.subspan(1);
      if (auto done = parseWord(word); !done) return tl::unexpected(done.error());
    }
    return std::move(change_);
  }

 private:
  using Setter = Result<void> (ArgumentParser::*)(const std::string& value);
  struct Word {
    std::string_view name;
    Setter set;
  };

  Result<void> parseWord(const std::string& word) {
    if (word == "remove" && inPeer()) {
      peer().remove = true;
      return {};
    }
    static constexpr std::array kDeviceWords{
        Word{"listen-port", &ArgumentParser::setListenPort},
        Word{"fwmark", &ArgumentParser::setMark},
        Word{"private-key", &ArgumentParser::setPrivateKey},
        Word{"peer", &ArgumentParser::addPeer},
    };
    static constexpr std::array kPeerWords{
        Word{"peer", &ArgumentParser::addPeer},
        Word{"preshared-key", &ArgumentParser::setPresharedKey},
        Word{"endpoint", &ArgumentParser::setEndpoint},
        Word{"persistent-keepalive", &ArgumentParser::setKeepalive},
        Word{"allowed-ips", &ArgumentParser::setAllowedIps},
    };
    return inPeer() ? dispatch(kPeerWords, word) : dispatch(kDeviceWords, word);
  }

  template <std::size_t Count>
  Result<void> dispatch(const std::array<Word, Count>& words, const std::string& word) {
    const auto found = std::ranges::find(words, word, &Word::name);
    if (found == words.end()) return refuse(word);
    if (arguments_.empty()) return fail("{} needs a value", word);
    const std::string& value = arguments_.front();
    arguments_ = arguments_.subspan(1);
    return (this->*found->set)(value);
  }

  /// A stray argument may be a key in the wrong place, so it is not repeated.
  [[nodiscard]] Result<void> refuse(std::string_view word) const {
    constexpr std::array<std::string_view, 3> kBeforePeers{"listen-port", "fwmark", "private-key"};
    constexpr std::array<std::string_view, 5> kInPeers{"remove", "preshared-key", "endpoint",
                                                       "persistent-keepalive", "allowed-ips"};
    if (std::ranges::find(kBeforePeers, word) != kBeforePeers.end()) {
      return fail("{} belongs before the first peer", word);
    }
    if (std::ranges::find(kInPeers, word) != kInPeers.end()) {
      return fail("{} belongs after `peer KEY`", word);
    }
    if (inPeer()) {
      return fail(
          "expected peer, remove, preshared-key, endpoint, persistent-keepalive or "
          "allowed-ips after the peer's key");
    }
    return fail("expected listen-port, fwmark, private-key or peer");
  }

  [[nodiscard]] bool inPeer() const { return !change_.peers.empty(); }
  PeerChange& peer() { return change_.peers.back(); }

  template <typename Value>
  static Result<void> store(Result<Value> value, std::optional<Value>& out) {
    return value.map([&](const Value& read) { out = read; });
  }

  Result<void> setListenPort(const std::string& value) {
    return store(parsePort(value), change_.listenPort);
  }
  Result<void> setMark(const std::string& value) {
    return store(parseMark(value), change_.firewallMark);
  }
  Result<void> setPrivateKey(const std::string& value) {
    return store(readKey(value), change_.privateKey);
  }
  Result<void> setPresharedKey(const std::string& value) {
    return store(readKey(value), peer().presharedKey);
  }
  Result<void> setEndpoint(const std::string& value) {
    return store(sources_.resolve(value), peer().endpoint);
  }
  Result<void> setKeepalive(const std::string& value) {
    return store(parseKeepalive(value), peer().persistentKeepalive);
  }

  Result<void> addPeer(const std::string& value) {
    const auto key = crypto::PublicKey::fromBase64(value);
    if (!key) return wrapError(key.error(), "peer");
    change_.peers.emplace_back().publicKey = *key;
    return {};
  }

  Result<Secret<32>> readKey(const std::string& path) const {
    const auto text = sources_.readFile(path);
    if (!text) return tl::unexpected(text.error());
    auto key = parseKeyFile(*text);
    if (!key) return wrapError(key.error(), path);
    return key;
  }

  Result<void> setAllowedIps(const std::string& value) {
    const std::string list = withoutBlanks(value);
    bool signs = false;
    if (!list.empty()) {
      std::string_view rest = list;
      for (bool more = true; more;) {
        const auto comma = rest.find(',');
        if (auto done = setAllowedIp(rest.substr(0, comma), signs); !done) return done;
        more = comma != std::string_view::npos;
        if (more) rest.remove_prefix(comma + 1);
      }
    }
    peer().replaceAllowedIps = !signs;
    return {};
  }

  Result<void> setAllowedIp(std::string_view entry, bool& signs) {
    const bool removes = entry.starts_with('-');
    if (removes || entry.starts_with('+')) {
      signs = true;
      entry.remove_prefix(1);
    }
    if (entry.empty()) return fail("allowed-ips has an empty entry");
    bool hostBits = false;
    const auto prefix = Prefix::parse(entry, &hostBits);
    if (!prefix) return wrapError(prefix.error(), "allowed-ips");
    if (hostBits) {
      remarks_.push_back(
          fmt::format("allowed-ips: {} has host bits; taken as {}", entry, prefix->toString()));
    }
    auto& list = removes ? peer().removeAllowedIps : peer().addAllowedIps;
    std::erase(removes ? peer().addAllowedIps : peer().removeAllowedIps, *prefix);
    if (std::ranges::find(list, *prefix) == list.end()) list.push_back(*prefix);
    return {};
  }

  std::span<const std::string> arguments_;
  const ChangeSources& sources_;
  std::vector<std::string>& remarks_;
  DeviceChange change_;
};

Result<PeerChange> peerFromConfig(const config::PeerConfig& peer, ConfMode mode,
                                  const ChangeSources& sources) {
  PeerChange change;
  change.publicKey = peer.publicKey;
  change.replaceAllowedIps = true;
  change.addAllowedIps = peer.allowedIps;
  if (peer.presharedKey || mode == ConfMode::Set) {
    change.presharedKey = peer.presharedKey.value_or(crypto::PresharedKey{});
  }
  if (peer.persistentKeepalive != 0 || mode == ConfMode::Set) {
    change.persistentKeepalive = peer.persistentKeepalive;
  }
  if (peer.endpoint) {
    const auto endpoint = sources.resolve(peer.endpoint->toString());
    if (!endpoint) return tl::unexpected(endpoint.error());
    change.endpoint = *endpoint;
  }
  return change;
}

bool samePrefixes(std::vector<Prefix> a, std::vector<Prefix> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

/// Drops from `wanted` what the peer already has; nothing may be left.
void dropUnchanged(const PeerSnapshot& running, PeerChange& wanted) {
  if (wanted.presharedKey == running.presharedKey) wanted.presharedKey.reset();
  if (wanted.endpoint == running.endpoint) wanted.endpoint.reset();
  if (wanted.persistentKeepalive == running.persistentKeepalive) {
    wanted.persistentKeepalive.reset();
  }
  if (wanted.replaceAllowedIps && samePrefixes(wanted.addAllowedIps, running.allowedIps)) {
    wanted.replaceAllowedIps = false;
    wanted.addAllowedIps.clear();
  }
}

bool isEmpty(const PeerChange& peer) {
  return !peer.remove && !peer.presharedKey && !peer.endpoint && !peer.persistentKeepalive &&
         !peer.replaceAllowedIps && peer.addAllowedIps.empty() && peer.removeAllowedIps.empty();
}

/// Compared by clamped key: the file may hold an unclamped one, and the device never does.
bool isSameKey(const std::optional<crypto::PrivateKey>& running, const Secret<32>& wanted) {
  if (wanted.isZero()) return !running.has_value();
  return running && *running == crypto::PrivateKey(wanted.bytes());
}

}  // namespace

Result<Secret<32>> parseKeyFile(std::string_view text) {
  if (text.empty()) return Secret<32>();
  while (!text.empty() && isSpace(text.back())) {
    text.remove_suffix(1);
  }
  return crypto::presharedKeyFromBase64(text);
}

Result<DeviceChange> changeFromArguments(std::span<const std::string> arguments,
                                         const ChangeSources& sources,
                                         std::vector<std::string>& remarks) {
  return ArgumentParser(arguments, sources, remarks).parse();
}

Result<DeviceChange> changeFromConfig(const config::Config& config, ConfMode mode,
                                      const ChangeSources& sources) {
  DeviceChange change;
  const config::InterfaceConfig& interface = config.interface;
  const bool whole = mode == ConfMode::Set;
  if (interface.privateKey) {
    change.privateKey = interface.privateKey->secret();
  } else if (whole) {
    change.privateKey.emplace();
  }
  if (interface.listenPort || whole) change.listenPort = interface.listenPort.value_or(0);
  if (interface.firewallMark || whole) change.firewallMark = interface.firewallMark.value_or(0);
  change.replacePeers = whole;
  for (const config::PeerConfig& peer : config.peers) {
    auto converted = peerFromConfig(peer, mode, sources);
    if (!converted) return tl::unexpected(converted.error());
    change.peers.push_back(std::move(*converted));
  }
  return change;
}

DeviceChange differenceTo(const DeviceView& running, DeviceChange wanted) {
  const DeviceSnapshot& device = running.device;
  if (wanted.privateKey && isSameKey(device.privateKey, *wanted.privateKey)) {
    wanted.privateKey.reset();
  }
  // 0 asks for any port, and the device has one: a new one would cut off every peer.
  if (wanted.listenPort == device.listenPort || wanted.listenPort == 0) wanted.listenPort.reset();
  if (wanted.firewallMark == device.firewallMark) wanted.firewallMark.reset();

  std::unordered_map<crypto::PublicKey, const PeerSnapshot*> present;
  for (const PeerSnapshot& peer : device.peers) {
    present.emplace(peer.publicKey, &peer);
  }
  std::vector<PeerChange> peers;
  for (PeerChange& peer : wanted.peers) {
    if (const auto found = present.find(peer.publicKey); found != present.end()) {
      dropUnchanged(*found->second, peer);
      present.erase(found);
      if (isEmpty(peer)) continue;
    }
    peers.push_back(std::move(peer));
  }
  if (wanted.replacePeers) {
    // Removals go first: a prefix of theirs may be wanted by another peer.
    std::vector<PeerChange> removals;
    for (const PeerSnapshot& peer : device.peers) {
      if (!present.contains(peer.publicKey)) continue;
      PeerChange& removal = removals.emplace_back();
      removal.publicKey = peer.publicKey;
      removal.remove = true;
    }
    std::ranges::move(peers, std::back_inserter(removals));
    peers = std::move(removals);
  }
  wanted.replacePeers = false;
  wanted.peers = std::move(peers);
  return wanted;
}

}  // namespace adit::control
