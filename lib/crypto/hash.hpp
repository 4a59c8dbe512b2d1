// BLAKE2s (RFC 7693), HMAC over it (RFC 2104) and the handshake's key derivation.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "util/secret.hpp"

namespace adit::crypto {

using Bytes = std::span<const std::uint8_t>;
using Hash = std::array<std::uint8_t, 32>;
using Mac = std::array<std::uint8_t, 16>;

/// BLAKE2s-256 over the concatenation of `parts`.
Hash blake2s(std::initializer_list<Bytes> parts);

/// Keyed BLAKE2s with a 16-byte result (the paper's MAC). `key` is 1 to 32 bytes.
Mac keyedBlake2s(Bytes key, std::initializer_list<Bytes> parts);

/// Keyed BLAKE2s with one key for many messages, for mac1 on the receive path: no allocation after
/// construction. Not thread-safe; one per thread.
class KeyedBlake2s {
 public:
  explicit KeyedBlake2s(Bytes key);
  ~KeyedBlake2s();
  KeyedBlake2s(const KeyedBlake2s&) = delete;
  KeyedBlake2s& operator=(const KeyedBlake2s&) = delete;
  [[nodiscard]] Mac operator()(Bytes message);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The paper's KDF_1, KDF_2 and KDF_3 (HKDF, RFC 5869, over HMAC-BLAKE2s). An output may be the
/// chaining key itself; the outputs must be distinct.
void kdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& out1);
void kdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& out1, Secret<32>& out2);
void kdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& out1, Secret<32>& out2,
         Secret<32>& out3);

}  // namespace adit::crypto
