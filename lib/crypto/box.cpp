#include "crypto/box.hpp"

#include <algorithm>
#include <stdexcept>

#include "crypto/libraries.hpp"
#include "crypto/nonce.hpp"

namespace adit::crypto {
namespace {

void requireSealedSize(Bytes plaintext, std::span<std::uint8_t> out) {
  if (out.size() != plaintext.size() + kBoxTagSize) {
    throw std::invalid_argument("sealed box: wrong size of output");
  }
}

/// False, with `out` cleared, when `sealed` cannot hold a tag.
bool holdsTag(Bytes sealed, std::span<std::uint8_t> out) {
  if (sealed.size() < kBoxTagSize) {
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    return false;
  }
  if (out.size() != sealed.size() - kBoxTagSize) {
    throw std::invalid_argument("opened box: wrong size of output");
  }
  return true;
}

}  // namespace

void sealBox(BoxKey key, std::uint64_t counter, Bytes associated, Bytes plaintext,
             std::span<std::uint8_t> out) {
  ensureSodium();
  requireSealedSize(plaintext, out);
  const Nonce12 nonce = nonceFromCounter(counter);
  crypto_aead_chacha20poly1305_ietf_encrypt(out.data(), nullptr, plaintext.data(), plaintext.size(),
                                            associated.data(), associated.size(), nullptr,
                                            nonce.data(), key.data());
}

bool openBox(BoxKey key, std::uint64_t counter, Bytes associated, Bytes sealed,
             std::span<std::uint8_t> out) {
  ensureSodium();
  if (!holdsTag(sealed, out)) {
    return false;
  }
  const Nonce12 nonce = nonceFromCounter(counter);
  return crypto_aead_chacha20poly1305_ietf_decrypt(
             out.data(), nullptr, nullptr, sealed.data(), sealed.size(), associated.data(),
             associated.size(), nonce.data(), key.data()) == 0;
}

void sealXBox(BoxKey key, BoxNonce24 nonce, Bytes associated, Bytes plaintext,
              std::span<std::uint8_t> out) {
  ensureSodium();
  requireSealedSize(plaintext, out);
  crypto_aead_xchacha20poly1305_ietf_encrypt(out.data(), nullptr, plaintext.data(),
                                             plaintext.size(), associated.data(), associated.size(),
                                             nullptr, nonce.data(), key.data());
}

bool openXBox(BoxKey key, BoxNonce24 nonce, Bytes associated, Bytes sealed,
              std::span<std::uint8_t> out) {
  ensureSodium();
  if (!holdsTag(sealed, out)) {
    return false;
  }
  return crypto_aead_xchacha20poly1305_ietf_decrypt(
             out.data(), nullptr, nullptr, sealed.data(), sealed.size(), associated.data(),
             associated.size(), nonce.data(), key.data()) == 0;
}

}  // namespace adit::crypto
