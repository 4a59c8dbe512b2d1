// The keys of [Peer].
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/key_helpers.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

PeerConfig& peerOf(const EntryContext& c) {
  return c.peer->peer;
}

void parseName(const EntryContext& c) {
  c.store(parsePeerName(c.value), peerOf(c).name);
}
Lines formatName(const SectionView& v) {
  return textLines(v.peer->name);
}

void parsePublicKey(const EntryContext& c) {
  c.peer->hasPublicKey = storePublicKey(c, peerOf(c).publicKey);
}
Lines formatPublicKey(const SectionView& v) {
  return {v.peer->publicKey.toBase64()};
}

void parsePresharedKey(const EntryContext& c) {
  if (const auto bad = checkKeyText(c.value)) {
    c.error(bad->offset, bad->message);
    return;
  }
  auto key = crypto::presharedKeyFromBase64(c.value);
  if (!key) {
    c.error(0, "the key is not valid");
  } else if (!key->isZero() || c.dialect == Dialect::WireGuard) {
    peerOf(c).presharedKey = std::move(*key);
  } else {
    c.warning(0, "a preshared key of zeros is none; remove it, or make one with `adit genpsk`");
  }
}
Lines formatPresharedKey(const SectionView& v) {
  if (!v.peer->presharedKey || !v.peer->presharedKeyFile.empty()) return {};
  return {crypto::presharedKeyToBase64(*v.peer->presharedKey)};
}

void parsePresharedKeyFile(const EntryContext& c) {
  storePath(c, peerOf(c).presharedKeyFile);
}
Lines formatPresharedKeyFile(const SectionView& v) {
  return textLines(v.peer->presharedKeyFile);
}

void parsePeerEndpoint(const EntryContext& c) {
  c.store(parseEndpoint(c.value), peerOf(c).endpoint);
}
Lines formatEndpoint(const SectionView& v) {
  if (!v.peer->endpoint) return {};
  return {v.peer->endpoint->toString()};
}

void addPrefix(const EntryContext& c, const Item& item) {
  if (item.text.starts_with('+') || item.text.starts_with('-')) {
    c.error(item.offset, "a file lists the prefixes themselves; write them without + or -");
    return;
  }
  bool hadHostBits = false;
  const auto prefix = parsePrefix(item.text, &hadHostBits);
  if (!prefix) {
    c.error(item.offset + prefix.error().offset, prefix.error().message);
    return;
  }
  if (hadHostBits) {
    c.warning(item.offset, fmt::format("{} has bits set after its length; {} is meant",
                                       shown(item.text), prefix->toString()));
  }
  peerOf(c).allowedIps.push_back(*prefix);
  c.peer->prefixLocations.push_back(c.at(item.offset));
}

void parseAllowedIps(const EntryContext& c) {
  forEachItem(c, Separator::Comma, [&](const Item& item) { addPrefix(c, item); });
}
Lines formatAllowedIps(const SectionView& v) {
  return joined(v.peer->allowedIps);
}

void parseKeepalive(const EntryContext& c) {
  if (equalIgnoringCase(c.value, "off")) return;
  const auto seconds = parseNumber(c.value, 0, 65535, "an interval in seconds");
  if (!seconds) {
    c.error(seconds.error().offset, seconds.error().message + ", or off");
  } else {
    peerOf(c).persistentKeepalive = static_cast<std::uint16_t>(*seconds);
  }
}
Lines formatKeepalive(const SectionView& v) {
  if (v.peer->persistentKeepalive == 0) return {};
  return {std::to_string(v.peer->persistentKeepalive)};
}

void parseRoam(const EntryContext& c) {
  c.store(parseSwitch(c.value), peerOf(c).roam);
}
Lines formatRoam(const SectionView& v) {
  return switchLines(v.peer->roam, true);
}

void parseAllowMaps(const EntryContext& c) {
  storeGrants(c, peerOf(c).allowMaps, peerOf(c).allowThirdParty);
}
Lines formatAllowMaps(const SectionView& v) {
  return grantLines(v.peer->allowMaps, v.peer->allowThirdParty);
}

constexpr auto kKeys = std::to_array<KeySpec>({
    {"Name", Repeat::Once, Text::Strict, false, false, "NAME", "none", parseName, formatName},
    {"PublicKey", Repeat::Once, Text::Strict, true, false, "KEY", "required", parsePublicKey,
     formatPublicKey},
    {"PresharedKey", Repeat::Once, Text::Strict, true, true, "KEY", "none", parsePresharedKey,
     formatPresharedKey},
    {"PresharedKeyFile", Repeat::Once, Text::Free, false, false, "PATH", "none",
     parsePresharedKeyFile, formatPresharedKeyFile},
    {"Endpoint", Repeat::Once, Text::Strict, true, false, "HOST:PORT | [IPv6]:PORT",
     "learned from the peer", parsePeerEndpoint, formatEndpoint},
    {"AllowedIPs", Repeat::List, Text::Strict, true, false, "ADDRESS/LENGTH, …", "none",
     parseAllowedIps, formatAllowedIps},
    {"PersistentKeepalive", Repeat::Once, Text::Strict, true, false, "off | SECONDS", "off",
     parseKeepalive, formatKeepalive},
    {"Roam", Repeat::Once, Text::Strict, false, false, "on | off", "on", parseRoam, formatRoam},
    {"AllowMaps", Repeat::List, Text::Strict, false, false, "PROTO/PORT[-PORT] | third-party, …",
     "none", parseAllowMaps, formatAllowMaps},
});

}  // namespace

std::span<const KeySpec> peerKeys() {
  return kKeys;
}

}  // namespace adit::config
