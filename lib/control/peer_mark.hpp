// What is kept with a peer in the data plane for the next daemon, beside what the state store has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "noise/timestamp.hpp"

namespace adit::control {

/// One byte of version, and the greatest timestamp accepted from the peer.
using PeerMark = std::array<std::uint8_t, 1 + ADIT_TIMESTAMP_LENGTH>;

PeerMark markOfTimestamp(const noise::Tai64n& timestamp);
/// Nothing for a mark of another version, or none.
std::optional<noise::Tai64n> timestampOfMark(std::span<const std::uint8_t> mark);

}  // namespace adit::control
