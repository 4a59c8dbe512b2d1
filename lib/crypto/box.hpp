// Authenticated encryption of single short messages, for the handshake and its cookies.
// Packets go through aead.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "crypto/hash.hpp"
#include "util/secret.hpp"

namespace adit::crypto {

/// What a box adds to its plaintext.
inline constexpr std::size_t kBoxTagSize = 16;

/// The key of a box; a Secret<32>'s bytes() or a Hash converts.
using BoxKey = std::span<const std::uint8_t, 32>;
using BoxNonce24 = std::span<const std::uint8_t, 24>;

/// ChaCha20-Poly1305 (RFC 8439) under the nonce 4 zero bytes, 64-bit little-endian `counter`.
/// `out` must have plaintext.size() + 16 bytes and may start where `plaintext` does.
void sealBox(BoxKey key, std::uint64_t counter, Bytes associated, Bytes plaintext,
             std::span<std::uint8_t> out);

/// The reverse. False when `sealed` is shorter than a tag or not authentic; `out`, which must have
/// sealed.size() - 16 bytes, then holds zeros.
[[nodiscard]] bool openBox(BoxKey key, std::uint64_t counter, Bytes associated, Bytes sealed,
                           std::span<std::uint8_t> out);

/// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) with a random nonce. Sizes as sealBox().
void sealXBox(BoxKey key, BoxNonce24 nonce, Bytes associated, Bytes plaintext,
              std::span<std::uint8_t> out);

/// As openBox().
[[nodiscard]] bool openXBox(BoxKey key, BoxNonce24 nonce, Bytes associated, Bytes sealed,
                            std::span<std::uint8_t> out);

}  // namespace adit::crypto
