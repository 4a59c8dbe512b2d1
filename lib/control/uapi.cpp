#include "control/uapi.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <limits>

namespace adit::control {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::size_t kKeySize = 32;

tl::unexpected<Error> invalid(std::string_view key) {
  return tl::unexpected(Error{fmt::format("the value of {} is wrong", key), EINVAL});
}

/// Decimal digits and nothing else.
template <typename Number>
std::optional<Number> parseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-') {
    return std::nullopt;
  }
  return number;
}

bool parseKey(std::string_view text, std::span<std::uint8_t, kKeySize> key) {
  std::size_t size = 0;
  return text.size() == 2 * kKeySize &&
         sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &size,
                        nullptr) == 0 &&
         size == kKeySize;
}

std::string hexKey(std::span<const std::uint8_t, kKeySize> key) {
  // libsodium writes the terminating zero as well, which a string has room for.
  std::string text(2 * kKeySize, '\0');
  sodium_bin2hex(text.data(), text.size() + 1, key.data(), key.size());
  return text;
}

/// The last word on a prefix counts, whatever the order in which additions and removals came.
void moveTo(std::vector<Prefix>& list, std::vector<Prefix>& other, const Prefix& prefix) {
  std::erase(other, prefix);
  list.push_back(prefix);
}

Result<void> setAllowedIp(std::string_view value, PeerChange& peer) {
  const bool removes = value.starts_with('-');
  if (removes) value.remove_prefix(1);
  if (value.find('/') == std::string_view::npos) return invalid("allowed_ip");
  const auto prefix = Prefix::parse(value);
  if (!prefix) return invalid("allowed_ip");
  if (removes) {
    moveTo(peer.removeAllowedIps, peer.addAllowedIps, *prefix);
  } else {
    moveTo(peer.addAllowedIps, peer.removeAllowedIps, *prefix);
  }
  return {};
}

/// Flags can only be raised: their one value is "true".
Result<void> setFlag(std::string_view key, std::string_view value, bool& flag) {
  if (value != "true") return invalid(key);
  flag = true;
  return {};
}

template <typename Number>
Result<void> setNumber(std::string_view key, std::string_view value, std::optional<Number>& out) {
  const auto number = parseNumber<Number>(value);
  if (!number) return invalid(key);
  out = *number;
  return {};
}

Result<void> setSecret(std::string_view key, std::string_view value,
                       std::optional<Secret<kKeySize>>& out) {
  Secret<kKeySize> secret;
  if (!parseKey(value, secret.bytes())) return invalid(key);
  out = secret;
  return {};
}

Result<void> setDeviceLine(std::string_view key, std::string_view value, DeviceChange& change) {
  if (key == "private_key") return setSecret(key, value, change.privateKey);
  if (key == "listen_port") return setNumber(key, value, change.listenPort);
  if (key == "fwmark") return setNumber(key, value, change.firewallMark);
  if (key == "replace_peers") return setFlag(key, value, change.replacePeers);
  return tl::unexpected(Error{"a key that no device has", EINVAL});
}

Result<void> setPeerLine(std::string_view key, std::string_view value, PeerChange& peer) {
  if (key == "remove") return setFlag(key, value, peer.remove);
  if (key == "update_only") return setFlag(key, value, peer.updateOnly);
  if (key == "preshared_key") return setSecret(key, value, peer.presharedKey);
  if (key == "allowed_ip") return setAllowedIp(value, peer);
  if (key == "persistent_keepalive_interval") {
    return setNumber(key, value, peer.persistentKeepalive);
  }
  if (key == "endpoint") {
    const auto endpoint = Endpoint::parse(value);
    if (!endpoint) return invalid(key);
    peer.endpoint = *endpoint;
    return {};
  }
  if (key == "replace_allowed_ips") {
    // It empties the list at its place in the request: what was named before is gone as well.
    peer.addAllowedIps.clear();
    peer.removeAllowedIps.clear();
    return setFlag(key, value, peer.replaceAllowedIps);
  }
  if (key == "protocol_version") {
    if (value != "1") return invalid(key);
    return {};
  }
  return tl::unexpected(Error{"a key that no peer has", EINVAL});
}

Result<void> setLine(std::string_view line, DeviceChange& change) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) {
    return tl::unexpected(Error{"expected KEY=VALUE", EPROTO});
  }
  const std::string_view key = line.substr(0, equals);
  const std::string_view value = line.substr(equals + 1);
  if (key == "public_key") {
    PeerChange peer;
    if (!parseKey(value, peer.publicKey.bytes)) return invalid(key);
    change.peers.push_back(std::move(peer));
    return {};
  }
  return change.peers.empty() ? setDeviceLine(key, value, change)
                              : setPeerLine(key, value, change.peers.back());
}

void appendPeer(std::string& out, const PeerSnapshot& peer) {
  const auto line = std::back_inserter(out);
  const nanoseconds handshake = std::max(peer.lastHandshake, nanoseconds::zero());
  const auto whole = duration_cast<seconds>(handshake);
  fmt::format_to(line, "public_key={}\n", hexKey(peer.publicKey.bytes));
  fmt::format_to(line, "preshared_key={}\n", hexKey(peer.presharedKey.bytes()));
  fmt::format_to(line, "protocol_version=1\n");
  if (peer.endpoint) fmt::format_to(line, "endpoint={}\n", peer.endpoint->toString());
  fmt::format_to(line, "last_handshake_time_sec={}\n", whole.count());
  fmt::format_to(line, "last_handshake_time_nsec={}\n", (handshake - whole).count());
  fmt::format_to(line, "tx_bytes={}\nrx_bytes={}\n", peer.txBytes, peer.rxBytes);
  fmt::format_to(line, "persistent_keepalive_interval={}\n", peer.persistentKeepalive);
  for (const Prefix& prefix : peer.allowedIps) {
    fmt::format_to(line, "allowed_ip={}\n", prefix.toString());
  }
}

std::string describe(const DeviceSnapshot& device) {
  std::string out;
  const auto line = std::back_inserter(out);
  if (device.privateKey) {
    fmt::format_to(line, "private_key={}\n", hexKey(device.privateKey->secret().bytes()));
  }
  if (device.listenPort != 0) fmt::format_to(line, "listen_port={}\n", device.listenPort);
  if (device.firewallMark != 0) fmt::format_to(line, "fwmark={}\n", device.firewallMark);
  for (const PeerSnapshot& peer : device.peers) {
    appendPeer(out, peer);
  }
  return out;
}

std::string status(int code) {
  return fmt::format("errno={}\n\n", code == 0 ? 0 : -std::abs(code));
}

}  // namespace

Result<DeviceChange> parseUapiSet(std::string_view lines) {
  DeviceChange change;
  for (unsigned number = 2; !lines.empty(); ++number) {
    const auto end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    if (line.empty()) break;
    if (auto done = setLine(line, change); !done) {
      return wrapError(done.error(), fmt::format("line {}", number));
    }
  }
  return change;
}

std::string handleUapi(std::string_view request, DeviceApi& device) {
  if (request.size() > kMaxUapiRequest) return status(EMSGSIZE);
  const auto end = request.find('\n');
  const std::string_view operation = request.substr(0, end);
  request.remove_prefix(end == std::string_view::npos ? request.size() : end + 1);
  if (operation == "get=1") {
    if (!request.empty() && request != "\n") return status(EINVAL);
    return describe(device.snapshot()) + status(0);
  }
  if (operation == "set=1") {
    const auto change = parseUapiSet(request);
    if (!change) return status(change.error().code);
    const auto applied = device.apply(*change);
    if (applied) return status(0);
    return status(applied.error().code != 0 ? applied.error().code : EINVAL);
  }
  return status(EPROTO);
}

}  // namespace adit::control
