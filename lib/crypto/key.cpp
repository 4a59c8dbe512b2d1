#include "crypto/key.hpp"

#include <array>
#include <cstring>

#include "crypto/libraries.hpp"

namespace adit::crypto {
namespace {

constexpr std::size_t kKeySize = 32;
constexpr std::size_t kBase64Size = 44;

using Base64Text = std::array<char, kBase64Size + 1>;

void encodeBase64(std::span<const std::uint8_t, kKeySize> bytes, Base64Text& text) {
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
}

/// Its table-free codec, which does not leak the key through the cache, is why libsodium is used.
/// But its decoder takes bytes above 127 for digits (seen in 1.0.18), so the only text accepted is
/// the one that the decoded key encodes to.
Result<void> decodeBase64(std::string_view text, std::span<std::uint8_t, kKeySize> out) {
  if (text.size() != kBase64Size) {
    return fail("a key is {} characters of base64, not {}", kBase64Size, text.size());
  }
  std::size_t length = 0;
  bool valid = sodium_base642bin(out.data(), out.size(), text.data(), text.size(), nullptr, &length,
                                 nullptr, sodium_base64_VARIANT_ORIGINAL) == 0 &&
               length == kKeySize;
  if (valid) {
    Base64Text canonical;
    encodeBase64(out, canonical);
    valid = sodium_memcmp(canonical.data(), text.data(), kBase64Size) == 0;
    sodium_memzero(canonical.data(), canonical.size());
  }
  if (!valid) {
    sodium_memzero(out.data(), out.size());
    return fail("a key is {} characters of canonical base64; this text is not", kBase64Size);
  }
  return {};
}

std::string encodeBase64(std::span<const std::uint8_t, kKeySize> bytes) {
  Base64Text text;
  encodeBase64(bytes, text);
  std::string result(text.data(), kBase64Size);
  sodium_memzero(text.data(), text.size());
  return result;
}

}  // namespace

Result<PublicKey> PublicKey::fromBase64(std::string_view text) {
  PublicKey key;
  return decodeBase64(text, key.bytes).map([&] { return key; });
}

std::string PublicKey::toBase64() const {
  return encodeBase64(bytes);
}

PrivateKey::PrivateKey(std::span<const std::uint8_t, 32> bytes) : secret_(bytes) {
  const auto key = secret_.bytes();
  key[0] &= 0xf8;
  key[31] = static_cast<std::uint8_t>((key[31] & 0x7f) | 0x40);
}

PrivateKey PrivateKey::generate() {
  SystemRandom random;
  return generate(random);
}

PrivateKey PrivateKey::generate(RandomSource& random) {
  Secret<32> bytes;
  random.fill(bytes.bytes());
  return PrivateKey(bytes.bytes());
}

Result<PrivateKey> PrivateKey::fromBase64(std::string_view text) {
  Secret<32> bytes;
  return decodeBase64(text, bytes.bytes()).map([&] { return PrivateKey(bytes.bytes()); });
}

std::string PrivateKey::toBase64() const {
  return encodeBase64(secret_.bytes());
}

PublicKey PrivateKey::publicKey() const {
  ensureSodium();
  PublicKey key;
  crypto_scalarmult_curve25519_base(key.bytes.data(), secret_.data());
  return key;
}

Result<PresharedKey> presharedKeyFromBase64(std::string_view text) {
  PresharedKey key;
  return decodeBase64(text, key.bytes()).map([&] { return key; });
}

std::string presharedKeyToBase64(const PresharedKey& key) {
  return encodeBase64(key.bytes());
}

std::optional<Secret<32>> x25519(const Secret<32>& privateKey, const PublicKey& publicKey) {
  ensureSodium();
  Secret<32> shared;
  if (crypto_scalarmult_curve25519(shared.data(), privateKey.data(), publicKey.bytes.data()) != 0 ||
      shared.isZero()) {
    return std::nullopt;
  }
  return shared;
}

}  // namespace adit::crypto

std::size_t std::hash<adit::crypto::PublicKey>::operator()(
    const adit::crypto::PublicKey& key) const noexcept {
  // A public key is as good as random; only configured keys are ever put in a table.
  std::size_t value = 0;
  std::memcpy(&value, key.bytes.data(), sizeof(value));
  return value;
}
