// libsodium: ChaCha20-Poly1305 everywhere, AES-256-GCM where the CPU has AES instructions.
#include "crypto/aead_backend.hpp"
#include "crypto/libraries.hpp"

namespace adit::crypto {
namespace {

class SodiumChaChaKey final : public SaltedAeadKey {
 public:
  SodiumChaChaKey(const Secret<32>& key, const NonceSalt& salt)
      : SaltedAeadKey(Suite::ChaCha20Poly1305, AeadBackend::Sodium, salt), key_(key) {}
  [[nodiscard]] const std::uint8_t* key() const { return key_.data(); }

 private:
  Secret<32> key_;
};

class SodiumGcmKey final : public SaltedAeadKey {
 public:
  SodiumGcmKey(const Secret<32>& key, const NonceSalt& salt)
      : SaltedAeadKey(Suite::Aes256Gcm, AeadBackend::Sodium, salt) {
    crypto_aead_aes256gcm_beforenm(&state_, key.data());
  }
  ~SodiumGcmKey() override { sodium_memzero(&state_, sizeof(state_)); }
  SodiumGcmKey(const SodiumGcmKey&) = delete;
  SodiumGcmKey& operator=(const SodiumGcmKey&) = delete;
  [[nodiscard]] const crypto_aead_aes256gcm_state* state() const { return &state_; }

 private:
  crypto_aead_aes256gcm_state state_;
};

// The library's own calls write ciphertext and tag side by side, compare tags in constant time
// before they decrypt, and clear the output when the tag is wrong.

void sealChaCha(const SodiumChaChaKey& key, AeadJob& job) {
  const Nonce12 nonce = key.nonce(job.counter);
  crypto_aead_chacha20poly1305_ietf_encrypt(job.out, nullptr, job.in, job.length, nullptr, 0,
                                            nullptr, nonce.data(), key.key());
}

void openChaCha(const SodiumChaChaKey& key, AeadJob& job) {
  const Nonce12 nonce = key.nonce(job.counter);
  job.ok = crypto_aead_chacha20poly1305_ietf_decrypt(job.out, nullptr, nullptr, job.in,
                                                     job.length + ADIT_TAG_LENGTH, nullptr, 0,
                                                     nonce.data(), key.key()) == 0;
}

void sealGcm(const SodiumGcmKey& key, AeadJob& job) {
  const Nonce12 nonce = key.nonce(job.counter);
  crypto_aead_aes256gcm_encrypt_afternm(job.out, nullptr, job.in, job.length, nullptr, 0, nullptr,
                                        nonce.data(), key.state());
}

void openGcm(const SodiumGcmKey& key, AeadJob& job) {
  const Nonce12 nonce = key.nonce(job.counter);
  job.ok = crypto_aead_aes256gcm_decrypt_afternm(job.out, nullptr, nullptr, job.in,
                                                 job.length + ADIT_TAG_LENGTH, nullptr, 0,
                                                 nonce.data(), key.state()) == 0;
  if (!job.ok) {
    sodium_memzero(job.out, job.length);
  }
}

class SodiumEngine final : public AeadEngine {
 public:
  void seal(const AeadKey& key, std::span<AeadJob> jobs) override {
    for (AeadJob& job : jobs) {
      if (key.suite() == Suite::ChaCha20Poly1305) {
        sealChaCha(static_cast<const SodiumChaChaKey&>(key), job);
      } else {
        sealGcm(static_cast<const SodiumGcmKey&>(key), job);
      }
    }
  }

  void open(const AeadKey& key, std::span<AeadJob> jobs) override {
    for (AeadJob& job : jobs) {
      if (key.suite() == Suite::ChaCha20Poly1305) {
        openChaCha(static_cast<const SodiumChaChaKey&>(key), job);
      } else {
        openGcm(static_cast<const SodiumGcmKey&>(key), job);
      }
    }
  }
};

std::unique_ptr<AeadEngine> makeEngine() {
  return std::make_unique<SodiumEngine>();
}

std::unique_ptr<AeadKey> makeKey(Suite suite, const Secret<32>& key, const NonceSalt& salt) {
  ensureSodium();
  if (suite == Suite::ChaCha20Poly1305) {
    return std::make_unique<SodiumChaChaKey>(key, salt);
  }
  if (suite == Suite::Aes256Gcm && crypto_aead_aes256gcm_is_available() == 1) {
    return std::make_unique<SodiumGcmKey>(key, salt);
  }
  return nullptr;
}

}  // namespace

const AeadBackendOperations kSodiumOperations{makeEngine, makeKey};

}  // namespace adit::crypto
