// Curve25519 keys and preshared keys, and their text form.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "crypto/random.hpp"
#include "util/result.hpp"
#include "util/secret.hpp"

namespace adit::crypto {

/// A static public key. Not secret: ordinary comparison, usable as a map key.
struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};

  /// 44 characters of canonical base64 (RFC 4648 section 4), nothing else. The error never
  /// repeats the text, since a private key pasted in the wrong place is a common slip.
  static Result<PublicKey> fromBase64(std::string_view text);
  [[nodiscard]] std::string toBase64() const;
  [[nodiscard]] bool isZero() const { return *this == PublicKey{}; }
  friend auto operator<=>(const PublicKey&, const PublicKey&) = default;
};

/// A static private key, clamped when it is made (RFC 7748 section 5).
class PrivateKey {
 public:
  /// Clamps `bytes`.
  explicit PrivateKey(std::span<const std::uint8_t, 32> bytes);
  /// From the system's random generator.
  static PrivateKey generate();
  static PrivateKey generate(RandomSource& random);
  /// As PublicKey::fromBase64.
  static Result<PrivateKey> fromBase64(std::string_view text);
  [[nodiscard]] std::string toBase64() const;
  [[nodiscard]] PublicKey publicKey() const;
  [[nodiscard]] const Secret<32>& secret() const { return secret_; }
  /// Constant time.
  friend bool operator==(const PrivateKey&, const PrivateKey&) = default;

 private:
  Secret<32> secret_;
};

/// A symmetric key mixed into the handshake; all zero means none.
using PresharedKey = Secret<32>;
Result<PresharedKey> presharedKeyFromBase64(std::string_view text);
std::string presharedKeyToBase64(const PresharedKey& key);

/// X25519 (RFC 7748). Nothing when the result is all zero, that is for a low-order point.
std::optional<Secret<32>> x25519(const Secret<32>& privateKey, const PublicKey& publicKey);

}  // namespace adit::crypto

template <>
struct std::hash<adit::crypto::PublicKey> {
  std::size_t operator()(const adit::crypto::PublicKey& key) const noexcept;
};
