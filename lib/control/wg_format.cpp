#include "control/wg_format.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>

namespace adit::control {
namespace {

using std::chrono::seconds;

/// A stretch of text in a colour, or as it is.
class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}

  [[nodiscard]] std::string reset() const { return color_ ? "\x1b[0m" : ""; }
  [[nodiscard]] std::string bold(std::string_view text) const { return paint("\x1b[1m", text); }
  [[nodiscard]] std::string red(std::string_view text) const { return paint("\x1b[31m", text); }
  [[nodiscard]] std::string green(std::string_view text) const { return paint("\x1b[32m", text); }
  [[nodiscard]] std::string yellow(std::string_view text) const { return paint("\x1b[33m", text); }
  [[nodiscard]] std::string cyan(std::string_view text) const { return paint("\x1b[36m", text); }
  /// "  LABEL: VALUE"
  [[nodiscard]] std::string line(std::string_view label, std::string_view value) const {
    return fmt::format("  {}: {}\n", bold(label), value);
  }

 private:
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const {
    return color_ ? fmt::format("{}{}\x1b[0m", code, text) : std::string(text);
  }
  bool color_;
};

constexpr std::string_view kNone = "(none)";
constexpr std::string_view kHidden = "(hidden)";

std::string optionalKey(const std::optional<crypto::PublicKey>& key) {
  return key ? key->toBase64() : std::string(kNone);
}

std::string optionalKey(const std::optional<crypto::PrivateKey>& key) {
  return key ? key->toBase64() : std::string(kNone);
}

std::string optionalKey(const crypto::PresharedKey& key) {
  return key.isZero() ? std::string(kNone) : crypto::presharedKeyToBase64(key);
}

std::string endpointText(const PeerSnapshot& peer) {
  return peer.endpoint ? peer.endpoint->toString() : std::string(kNone);
}

std::string markText(std::uint32_t mark) {
  return mark != 0 ? fmt::format("{:#x}", mark) : "off";
}

std::string keepaliveText(std::uint16_t interval) {
  return interval != 0 ? fmt::format("{}", interval) : "off";
}

/// Whole seconds, as wg prints; nothing that is before the epoch.
std::uint64_t handshakeSeconds(const PeerSnapshot& peer) {
  const auto whole = std::chrono::duration_cast<seconds>(peer.lastHandshake).count();
  return static_cast<std::uint64_t>(std::max<seconds::rep>(whole, 0));
}

std::string prefixList(const std::vector<Prefix>& prefixes, std::string_view separator) {
  std::string text;
  for (const Prefix& prefix : prefixes) {
    if (!text.empty()) text += separator;
    text += prefix.toString();
  }
  return text.empty() ? std::string(kNone) : text;
}

/// Indices into `peers`: the latest handshake first, those without one last, else as they came.
std::vector<std::size_t> byHandshake(const std::vector<PeerSnapshot>& peers) {
  std::vector<std::size_t> order(peers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return peers[i].lastHandshake; });
  return order;
}

std::string prettyPrefixes(const std::vector<Prefix>& prefixes, const Painter& paint) {
  std::string text;
  for (const Prefix& prefix : prefixes) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}{}{}", prefix.address().toString(), paint.cyan("/"), prefix.length());
  }
  return text.empty() ? std::string(kNone) : text;
}

std::string prettyInterface(const DeviceView& view, const ShowStyle& style) {
  const Painter paint(style.color);
  const DeviceSnapshot& device = view.device;
  std::string out = paint.reset();
  const std::string heading = style.color ? "\x1b[32m\x1b[1minterface\x1b[0m" : "interface";
  out += fmt::format("{}: {}\n", heading, paint.green(device.name));
  if (view.publicKey) out += paint.line("public key", view.publicKey->toBase64());
  if (view.hasPrivateKey) {
    const bool show = !style.hideKeys && device.privateKey;
    out += paint.line("private key", show ? device.privateKey->toBase64() : kHidden);
  }
  if (device.listenPort != 0) {
    out += paint.line("listening port", fmt::format("{}", device.listenPort));
  }
  if (device.firewallMark != 0) out += paint.line("fwmark", markText(device.firewallMark));
  return out;
}

/// What WireGuard does not know of.
std::string prettyExtras(const PeerSnapshot& peer, const Painter& paint) {
  std::string out;
  if (!peer.name.empty()) out += paint.line("name", peer.name);
  if (!peer.endpoint && !peer.unresolvedEndpoint.empty()) {
    out += paint.line("unresolved endpoint", peer.unresolvedEndpoint);
  }
  if (peer.suite && *peer.suite != crypto::Suite::ChaCha20Poly1305) {
    out += paint.line("cipher", crypto::suiteName(*peer.suite));
  }
  if (peer.clockBehind != 0) {
    out += paint.line("peer clock behind",
                      fmt::format("{} handshakes refused; set the peer's clock", peer.clockBehind));
  }
  return out;
}

std::string prettyPeer(const PeerSnapshot& peer, bool hasPresharedKey, const ShowStyle& style) {
  const Painter paint(style.color);
  const std::string heading = style.color ? "\x1b[33m\x1b[1mpeer\x1b[0m" : "peer";
  std::string out = fmt::format("{}: {}\n", heading, paint.yellow(peer.publicKey.toBase64()));
  if (hasPresharedKey) {
    const bool show = !style.hideKeys && !peer.presharedKey.isZero();
    out += paint.line("preshared key",
                      show ? crypto::presharedKeyToBase64(peer.presharedKey) : kHidden);
  }
  if (peer.endpoint) out += paint.line("endpoint", peer.endpoint->toString());
  out += paint.line("allowed ips", prettyPrefixes(peer.allowedIps, paint));
  if (const auto then = handshakeSeconds(peer); then != 0) {
    out += paint.line("latest handshake",
                      formatAgo(style.now, seconds(static_cast<seconds::rep>(then)), style.color));
  }
  if (peer.rxBytes != 0 || peer.txBytes != 0) {
    out += paint.line("transfer",
                      fmt::format("{} received, {} sent", formatBytes(peer.rxBytes, style.color),
                                  formatBytes(peer.txBytes, style.color)));
  }
  if (peer.persistentKeepalive != 0) {
    out += paint.line("persistent keepalive",
                      "every " + formatDuration(seconds(peer.persistentKeepalive), style.color));
  }
  return out + prettyExtras(peer, paint);
}

std::string dump(const DeviceView& view, std::string_view prefix) {
  const DeviceSnapshot& device = view.device;
  std::string out;
  const auto line = std::back_inserter(out);
  fmt::format_to(line, "{}{}\t{}\t{}\t{}\n", prefix, optionalKey(device.privateKey),
                 optionalKey(view.publicKey), device.listenPort, markText(device.firewallMark));
  for (const PeerSnapshot& peer : device.peers) {
    fmt::format_to(line, "{}{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", prefix, peer.publicKey.toBase64(),
                   optionalKey(peer.presharedKey), endpointText(peer),
                   prefixList(peer.allowedIps, ","), handshakeSeconds(peer), peer.rxBytes,
                   peer.txBytes, keepaliveText(peer.persistentKeepalive));
  }
  return out;
}

using DeviceText = std::string (*)(const DeviceView&);
using PeerText = std::string (*)(const PeerSnapshot&);

/// A field of one value for the device, or of one value for each peer after its public key.
struct Field {
  std::string_view name;
  DeviceText device;
  PeerText peer;
  bool keys = false;
};

/// In the order in which wg(8) lists them. "dump" has a shape of its own.
constexpr std::array kFields{
    Field{"public-key", [](const DeviceView& view) { return optionalKey(view.publicKey); },
          nullptr},
    Field{"private-key", [](const DeviceView& view) { return optionalKey(view.device.privateKey); },
          nullptr, true},
    Field{"listen-port",
          [](const DeviceView& view) { return fmt::format("{}", view.device.listenPort); },
          nullptr},
    Field{"fwmark", [](const DeviceView& view) { return markText(view.device.firewallMark); },
          nullptr},
    Field{"peers", nullptr, [](const PeerSnapshot&) { return std::string(); }},
    Field{"preshared-keys", nullptr,
          [](const PeerSnapshot& peer) { return '\t' + optionalKey(peer.presharedKey); }, true},
    Field{"endpoints", nullptr, [](const PeerSnapshot& peer) { return '\t' + endpointText(peer); }},
    Field{"allowed-ips", nullptr,
          [](const PeerSnapshot& peer) { return '\t' + prefixList(peer.allowedIps, " "); }},
    Field{"latest-handshakes", nullptr,
          [](const PeerSnapshot& peer) { return fmt::format("\t{}", handshakeSeconds(peer)); }},
    Field{"transfer", nullptr,
          [](const PeerSnapshot& peer) {
            return fmt::format("\t{}\t{}", peer.rxBytes, peer.txBytes);
          }},
    Field{"persistent-keepalive", nullptr,
          [](const PeerSnapshot& peer) { return '\t' + keepaliveText(peer.persistentKeepalive); }},
    Field{"dump", nullptr, nullptr, true},
};

const Field* findField(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &Field::name);
  return found == kFields.end() ? nullptr : found;
}

}  // namespace

std::string formatDuration(seconds duration, bool color) {
  struct Unit {
    std::string_view name;
    std::int64_t length;
  };
  constexpr std::array kUnits{Unit{"year", 365 * 24 * 3600}, Unit{"day", 24 * 3600},
                              Unit{"hour", 3600}, Unit{"minute", 60}, Unit{"second", 1}};
  const Painter paint(color);
  std::int64_t left = std::max<std::int64_t>(duration.count(), 0);
  std::string text;
  for (const Unit& unit : kUnits) {
    const std::int64_t count = left / unit.length;
    left %= unit.length;
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", count,
                        paint.cyan(fmt::format("{}{}", unit.name, count == 1 ? "" : "s")));
  }
  return text;
}

std::string formatAgo(seconds now, seconds then, bool color) {
  if (now == then) return "Now";
  if (now < then) {
    return '(' + Painter(color).red("System clock wound backward; connection problems may ensue.") +
           ')';
  }
  return formatDuration(now - then, color) + " ago";
}

std::string formatBytes(std::uint64_t bytes, bool color) {
  constexpr std::array<std::string_view, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  constexpr double kStep = 1024;
  const Painter paint(color);
  if (bytes < 1024) return fmt::format("{} {}", bytes, paint.cyan("B"));
  std::size_t unit = 0;
  double amount = static_cast<double>(bytes) / kStep;
  // The whole number decides on the unit, so that rounding cannot: 1048575 is 1024.00 KiB.
  for (std::uint64_t rest = bytes >> 20; rest != 0 && unit + 1 < kUnits.size(); rest >>= 10) {
    amount /= kStep;
    ++unit;
  }
  return fmt::format("{:.2f} {}", amount, paint.cyan(kUnits[unit]));
}

std::string formatPretty(const DeviceView& view, const ShowStyle& style) {
  std::string out = prettyInterface(view, style);
  for (const std::size_t i : byHandshake(view.device.peers)) {
    const bool hasPresharedKey = i < view.hasPresharedKey.size() && view.hasPresharedKey[i];
    out += '\n' + prettyPeer(view.device.peers[i], hasPresharedKey, style);
  }
  return out;
}

Result<std::string> formatField(const DeviceView& view, std::string_view name, bool withInterface) {
  const Field* field = findField(name);
  if (field == nullptr) {
    std::string names;
    for (const Field& each : kFields) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    }
    return fail("there is no field \"{}\"; there are {}", name, names);
  }
  const std::string prefix = withInterface ? view.device.name + '\t' : "";
  if (field->device != nullptr) return prefix + field->device(view) + '\n';
  if (field->peer == nullptr) return dump(view, prefix);
  std::string out;
  for (const PeerSnapshot& peer : view.device.peers) {
    out += prefix + peer.publicKey.toBase64() + field->peer(peer) + '\n';
  }
  return out;
}

bool fieldShowsKeys(std::string_view name) {
  const Field* field = findField(name);
  return field != nullptr && field->keys;
}

std::string formatConf(const DeviceView& view) {
  const DeviceSnapshot& device = view.device;
  std::string out = "[Interface]\n";
  const auto line = std::back_inserter(out);
  if (device.listenPort != 0) fmt::format_to(line, "ListenPort = {}\n", device.listenPort);
  if (device.firewallMark != 0) {
    fmt::format_to(line, "FwMark = {}\n", markText(device.firewallMark));
  }
  if (device.privateKey) {
    fmt::format_to(line, "PrivateKey = {}\n", device.privateKey->toBase64());
  }
  for (const PeerSnapshot& peer : device.peers) {
    fmt::format_to(line, "\n[Peer]\nPublicKey = {}\n", peer.publicKey.toBase64());
    if (!peer.presharedKey.isZero()) {
      fmt::format_to(line, "PresharedKey = {}\n", crypto::presharedKeyToBase64(peer.presharedKey));
    }
    if (!peer.allowedIps.empty()) {
      fmt::format_to(line, "AllowedIPs = {}\n", prefixList(peer.allowedIps, ", "));
    }
    if (peer.endpoint) fmt::format_to(line, "Endpoint = {}\n", peer.endpoint->toString());
    if (peer.persistentKeepalive != 0) {
      fmt::format_to(line, "PersistentKeepalive = {}\n", peer.persistentKeepalive);
    }
  }
  // wg(8) ends the first section with an empty line even where no peer follows.
  if (device.peers.empty()) out += '\n';
  return out;
}

}  // namespace adit::control
