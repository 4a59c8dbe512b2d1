#include "noise/timing.hpp"

#include <algorithm>

namespace adit::noise {
namespace {

constexpr std::uint32_t kBlockBytes = 16;
/// Up to this many blocks per packet the GCM counts hold as they stand.
constexpr std::uint64_t kBlocksPerPacket = 1U << 7;

}  // namespace

KeyLimits Timing::keyLimits(crypto::Suite suite, std::uint32_t mtu) const {
  if (suite == crypto::Suite::ChaCha20Poly1305) {
    return {rekeyAfter, rejectAfter, rekeyAfterMessagesChaCha, rejectAfterMessagesChaCha};
  }
  const std::uint64_t blocks = std::max<std::uint64_t>(
      kBlocksPerPacket, (std::uint64_t{mtu} + kBlockBytes - 1) / kBlockBytes);
  // In two steps, since the product of a count and kBlocksPerPacket may not fit.
  const auto scaled = [blocks](std::uint64_t count) {
    return count / blocks * kBlocksPerPacket + count % blocks * kBlocksPerPacket / blocks;
  };
  return {rekeyAfter, rejectAfter, scaled(rekeyAfterMessagesGcm), scaled(rejectAfterMessagesGcm)};
}

}  // namespace adit::noise
