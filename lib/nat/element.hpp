// The elements of the table's sets and maps: what changes when a mapping changes.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nat/mapping.hpp"

namespace adit::nat {

/// Names of the table's sets and maps. Those that end in 4 or 6 hold keys of that family: port,
/// protocol, and an address of the public side (all of them where a mapping listens on any).
namespace sets {
inline constexpr std::string_view kTarget = "target";          ///< key → target address
inline constexpr std::string_view kPortAt = "port_at";         ///< key of one port → target port
inline constexpr std::string_view kPort = "port";              ///< the same for any address
inline constexpr std::string_view kMasquerade = "masquerade";  ///< keys with Source = masquerade
inline constexpr std::string_view kHairpin = "hairpin";        ///< keys with Hairpin
inline constexpr std::string_view kRestricted = "restricted";  ///< keys with an Allow list
inline constexpr std::string_view kAllowed = "allowed";        ///< key . client network
inline constexpr std::string_view kRateIn = "rate_in";    ///< key → limit of what clients send
inline constexpr std::string_view kRateOut = "rate_out";  ///< key → limit of what they are sent
inline constexpr std::string_view kPaced = "paced";  ///< keys with a rate: never in the flow table
inline constexpr std::string_view kExposed = "exposed";  ///< port . protocol . address of a target
inline constexpr std::string_view kMasked = "masked";    ///< the same, of targets behind this host
inline constexpr std::string_view kAnswer = "answer";  ///< tunnel's address → home address (no key)
inline constexpr std::string_view kState = "state";    ///< what the table was built from
}  // namespace sets

struct Element {
  /// As libnftables takes and prints them; `value` is null in a set.
  nlohmann::json key;
  nlohmann::json value;
  std::string comment;
  /// Bytes per second of the limit that `value` names; 0 in other maps, and in a listing.
  std::uint64_t rate = 0;
  /// What it is about.
  std::uint8_t protocol = 0;
  std::uint16_t firstPort = 0;
  std::uint16_t lastPort = 0;

  /// The JSON of an "add element" command.
  [[nodiscard]] nlohmann::json toJson() const;
};

/// By set name and canonical key (see canonicalText()).
using Elements = std::map<std::pair<std::string, std::string>, Element>;

/// All elements that a spec makes.
Elements elementsOf(const RulesetSpec& spec);

/// The elements in a listing of our table by libnftables; `state` is left out. A form that
/// libnftables does not print today makes an element that equals none of ours.
Elements elementsOfListing(const nlohmann::json& listing);

struct ElementDiff {
  Elements removed;
  Elements added;
  [[nodiscard]] bool empty() const { return removed.empty() && added.empty(); }
};
/// What turns `actual` into `wanted`. An element with another value or comment is in both.
ElementDiff difference(const Elements& actual, const Elements& wanted);

/// One text for one meaning: a prefix, a range and a single value of the same extent, a protocol
/// by name and by number are equal.
std::string canonicalText(const nlohmann::json& value);

/// A label as a comment that nft(8) can print and read again: at most 128 bytes, whole UTF-8
/// characters (bytes that are none become "?"), no quotes and no control characters.
std::string commentText(std::string_view label);

}  // namespace adit::nat
