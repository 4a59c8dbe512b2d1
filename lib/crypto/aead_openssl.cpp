// OpenSSL's EVP interface: all suites on every architecture.
#include "crypto/aead_backend.hpp"
#include "crypto/libraries.hpp"

namespace adit::crypto {
namespace {

constexpr int kTagSize = ADIT_TAG_LENGTH;

/// Fetched once and kept for the life of the process. Null when a provider lacks it.
const EVP_CIPHER* cipherOf(Suite suite) {
  static const std::array<const EVP_CIPHER*, ADIT_SUITE_COUNT> ciphers{
      EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr),
      EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr),
      EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr)};
  return ciphers.at(static_cast<std::size_t>(suite));
}

class OpenSslKey final : public SaltedAeadKey {
 public:
  OpenSslKey(Suite suite, const Secret<32>& key, const NonceSalt& salt)
      : SaltedAeadKey(suite, AeadBackend::OpenSsl, salt), key_(key) {}
  [[nodiscard]] const std::uint8_t* key() const { return key_.data(); }

 private:
  Secret<32> key_;
};

/// A context that holds a key for the length of one batch: contexts are the thread's, and must
/// not outlive the key with a copy of it. Setting a key does not allocate.
class KeyInContext {
 public:
  KeyInContext(EVP_CIPHER_CTX* context, const std::uint8_t* key, bool encrypt) : context_(context) {
    requireAead(EVP_CipherInit_ex2(context, nullptr, key, nullptr, encrypt ? 1 : 0, nullptr) == 1,
                "OpenSSL refuses a key");
  }
  ~KeyInContext() {
    constexpr std::array<std::uint8_t, 32> kNoKey{};
    EVP_CipherInit_ex2(context_, nullptr, kNoKey.data(), nullptr, -1, nullptr);
  }
  KeyInContext(const KeyInContext&) = delete;
  KeyInContext& operator=(const KeyInContext&) = delete;

 private:
  EVP_CIPHER_CTX* context_;
};

bool crypt(EVP_CIPHER_CTX* context, const AeadJob& job) {
  int written = 0;
  return job.length == 0 ||
         EVP_CipherUpdate(context, job.out, &written, job.in, static_cast<int>(job.length)) == 1;
}

void sealJob(EVP_CIPHER_CTX* context, const OpenSslKey& key, const AeadJob& job) {
  const Nonce12 nonce = key.nonce(job.counter);
  int written = 0;
  requireAead(
      EVP_CipherInit_ex2(context, nullptr, nullptr, nonce.data(), -1, nullptr) == 1 &&
          crypt(context, job) && EVP_CipherFinal_ex(context, job.out + job.length, &written) == 1 &&
          EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagSize, job.out + job.length) == 1,
      "OpenSSL cannot seal");
}

void openJob(EVP_CIPHER_CTX* context, const OpenSslKey& key, AeadJob& job) {
  const Nonce12 nonce = key.nonce(job.counter);
  // The library only reads the tag, but takes all arguments of controls as writable.
  auto* const tag = const_cast<std::uint8_t*>(job.in + job.length);
  int written = 0;
  job.ok = EVP_CipherInit_ex2(context, nullptr, nullptr, nonce.data(), -1, nullptr) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagSize, tag) == 1 &&
           crypt(context, job) && EVP_CipherFinal_ex(context, job.out + job.length, &written) == 1;
  if (!job.ok) {
    OPENSSL_cleanse(job.out, job.length);
  }
}

class OpenSslEngine final : public AeadEngine {
 public:
  OpenSslEngine() {
    for (const Suite suite : kSuites) {
      if (const EVP_CIPHER* const cipher = cipherOf(suite); cipher != nullptr) {
        CipherContext& context = contexts_.at(static_cast<std::size_t>(suite));
        context.reset(EVP_CIPHER_CTX_new());
        requireAead(context != nullptr && EVP_CipherInit_ex2(context.get(), cipher, nullptr,
                                                             nullptr, 1, nullptr) == 1,
                    "OpenSSL cannot make a cipher context");
      }
    }
  }

  void seal(const AeadKey& key, std::span<AeadJob> jobs) override {
    const auto& own = static_cast<const OpenSslKey&>(key);
    EVP_CIPHER_CTX* const context = contextOf(key);
    const KeyInContext held(context, own.key(), true);
    for (const AeadJob& job : jobs) {
      sealJob(context, own, job);
    }
  }

  void open(const AeadKey& key, std::span<AeadJob> jobs) override {
    const auto& own = static_cast<const OpenSslKey&>(key);
    EVP_CIPHER_CTX* const context = contextOf(key);
    const KeyInContext held(context, own.key(), false);
    for (AeadJob& job : jobs) {
      openJob(context, own, job);
    }
  }

 private:
  EVP_CIPHER_CTX* contextOf(const AeadKey& key) {
    return contexts_.at(static_cast<std::size_t>(key.suite())).get();
  }

  std::array<CipherContext, ADIT_SUITE_COUNT> contexts_;
};

std::unique_ptr<AeadEngine> makeEngine() {
  return std::make_unique<OpenSslEngine>();
}

std::unique_ptr<AeadKey> makeKey(Suite suite, const Secret<32>& key, const NonceSalt& salt) {
  if (cipherOf(suite) == nullptr) {
    return nullptr;
  }
  return std::make_unique<OpenSslKey>(suite, key, salt);
}

}  // namespace

const AeadBackendOperations kOpenSslOperations{makeEngine, makeKey};

}  // namespace adit::crypto
