// Explicit congestion notification across the tunnel (RFC 6040, normal mode).
#pragma once

#include <cstdint>
#include <optional>

namespace adit::dataplane::user {

inline constexpr std::uint8_t kEcnMask = 3;
inline constexpr std::uint8_t kEcnNotCapable = 0;
inline constexpr std::uint8_t kEcnCapable1 = 1;
inline constexpr std::uint8_t kEcnCapable0 = 2;
inline constexpr std::uint8_t kEcnCongestion = 3;

/// The outer traffic class for an inner one: its ECN field, and no DSCP, which would show the kind
/// of traffic to the network (as in WireGuard).
constexpr std::uint8_t outerTos(std::uint8_t innerTos) {
  return innerTos & kEcnMask;
}

/// The inner traffic class after decapsulation (RFC 6040, figure 4), or nothing when the packet
/// must be dropped: congestion was signalled to a transport that would not understand it.
constexpr std::optional<std::uint8_t> decapsulatedTos(std::uint8_t innerTos, std::uint8_t outer) {
  const std::uint8_t inner = innerTos & kEcnMask;
  const std::uint8_t signal = outer & kEcnMask;
  if (signal == kEcnCongestion) {
    if (inner == kEcnNotCapable) return std::nullopt;
    return static_cast<std::uint8_t>(innerTos | kEcnCongestion);
  }
  if (signal == kEcnCapable1 && inner == kEcnCapable0) {
    return static_cast<std::uint8_t>((innerTos & ~kEcnMask) | kEcnCapable1);
  }
  return innerTos;
}

}  // namespace adit::dataplane::user
