// The keys of [Invitation], which `adit invite` writes.
#include <algorithm>
#include <array>

#include "config/key_helpers.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

InvitationConfig& invitationOf(const EntryContext& c) {
  return c.invitation->invitation;
}

void parseName(const EntryContext& c) {
  c.store(parsePeerName(c.value), invitationOf(c).name);
}
Lines formatName(const SectionView& v) {
  return textLines(v.invitation->name);
}

void parsePublicKey(const EntryContext& c) {
  storePublicKey(c, invitationOf(c).publicKey);
}
Lines formatPublicKey(const SectionView& v) {
  return {v.invitation->publicKey.toBase64()};
}

void parsePresharedKey(const EntryContext& c) {
  if (const auto bad = checkKeyText(c.value)) {
    c.error(bad->offset, bad->message);
    return;
  }
  auto key = crypto::presharedKeyFromBase64(c.value);
  if (!key || key->isZero()) {
    c.error(0, "the key is not valid");
  } else {
    invitationOf(c).presharedKey = std::move(*key);
  }
}
Lines formatPresharedKey(const SectionView& v) {
  return {crypto::presharedKeyToBase64(v.invitation->presharedKey)};
}

void parseAddresses(const EntryContext& c) {
  forEachItem(c, Separator::Comma, [&](const Item& item) {
    const auto address = parseInterfaceAddress(item.text);
    auto& all = invitationOf(c).addresses;
    if (!address) {
      c.error(item.offset + address.error().offset, address.error().message);
    } else if (std::ranges::any_of(all, [&](const InterfaceAddress& other) {
                 return other.address.family() == address->address.family();
               })) {
      c.error(item.offset, "a peer that joins gets one address of each family");
    } else {
      all.push_back(*address);
    }
  });
}
Lines formatAddresses(const SectionView& v) {
  return joined(v.invitation->addresses);
}

void parseAllowMaps(const EntryContext& c) {
  storeGrants(c, invitationOf(c).allowMaps, invitationOf(c).allowThirdParty);
}
Lines formatAllowMaps(const SectionView& v) {
  return grantLines(v.invitation->allowMaps, v.invitation->allowThirdParty);
}

void parseExpires(const EntryContext& c) {
  c.store(parseUtcTime(c.value), invitationOf(c).expires);
}
Lines formatExpires(const SectionView& v) {
  return {formatUtcTime(v.invitation->expires)};
}

void parseBound(const EntryContext& c) {
  crypto::PublicKey key;
  if (storePublicKey(c, key)) invitationOf(c).bound = key;
}
Lines formatBound(const SectionView& v) {
  if (!v.invitation->bound) return {};
  return {v.invitation->bound->toBase64()};
}

constexpr auto kKeys = std::to_array<KeySpec>({
    {"Name", Repeat::Once, Text::Strict, false, false, "NAME", "required", parseName, formatName},
    {"PublicKey", Repeat::Once, Text::Strict, false, false, "KEY", "required", parsePublicKey,
     formatPublicKey},
    {"PresharedKey", Repeat::Once, Text::Strict, false, true, "KEY", "required", parsePresharedKey,
     formatPresharedKey},
    {"Address", Repeat::List, Text::Strict, false, false, "ADDRESS/LENGTH, …", "required",
     parseAddresses, formatAddresses},
    {"AllowMaps", Repeat::List, Text::Strict, false, false, "PROTO/PORT[-PORT] | third-party, …",
     "none", parseAllowMaps, formatAllowMaps},
    {"Expires", Repeat::Once, Text::Strict, false, false, "YYYY-MM-DDTHH:MM:SSZ", "required",
     parseExpires, formatExpires},
    {"Bound", Repeat::Once, Text::Strict, false, false, "KEY", "nobody has joined", parseBound,
     formatBound},
});

}  // namespace

std::span<const KeySpec> invitationKeys() {
  return kKeys;
}

}  // namespace adit::config
