// The nonce of the handshake and of every transport suite; internal to this folder.
#pragma once

#include <array>
#include <cstdint>

namespace adit::crypto {

using Nonce12 = std::array<std::uint8_t, 12>;

/// 4 zero bytes, then `counter` in little-endian order.
constexpr Nonce12 nonceFromCounter(std::uint64_t counter) {
  Nonce12 nonce{};
  for (unsigned i = 0; i < 8; ++i) {
    nonce[4 + i] = static_cast<std::uint8_t>(counter >> (8 * i));
  }
  return nonce;
}

}  // namespace adit::crypto
