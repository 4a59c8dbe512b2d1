#include "control/peer_mark.hpp"

#include <algorithm>

namespace adit::control {
namespace {

constexpr std::uint8_t kVersion = 1;

}  // namespace

PeerMark markOfTimestamp(const noise::Tai64n& timestamp) {
  PeerMark mark{kVersion};
  std::ranges::copy(timestamp.toBytes(), mark.begin() + 1);
  return mark;
}

std::optional<noise::Tai64n> timestampOfMark(std::span<const std::uint8_t> mark) {
  if (mark.size() != PeerMark().size() || mark[0] != kVersion) {
    return std::nullopt;
  }
  return noise::Tai64n::fromBytes(mark.subspan<1, ADIT_TIMESTAMP_LENGTH>());
}

}  // namespace adit::control
