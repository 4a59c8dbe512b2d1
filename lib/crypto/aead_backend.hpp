// What aead.cpp asks of each library; internal to this folder and its tests.
//
// One file per backend implements this. Which files are built is CMake's decision, so that none
// of them needs a condition.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

#include "crypto/aead.hpp"
#include "crypto/nonce.hpp"

namespace adit::crypto {

/// The first four bytes of every nonce under a key. Zero in the protocol; tests choose it, so that
/// published vectors with any nonce run through the code that packets run through.
using NonceSalt = std::array<std::uint8_t, 4>;

/// What the keys of all backends have in common.
class SaltedAeadKey : public AeadKey {
 public:
  [[nodiscard]] Nonce12 nonce(std::uint64_t counter) const {
    Nonce12 nonce = nonceFromCounter(counter);
    for (std::size_t i = 0; i < salt_.size(); ++i) {
      nonce[i] = salt_[i];
    }
    return nonce;
  }

 protected:
  SaltedAeadKey(Suite suite, AeadBackend backend, const NonceSalt& salt)
      : AeadKey(suite, backend), salt_(salt) {}

 private:
  NonceSalt salt_;
};

/// One thread's scratch state of one backend. Takes only keys of that backend. Does not allocate.
class AeadEngine {
 public:
  virtual ~AeadEngine() = default;
  virtual void seal(const AeadKey& key, std::span<AeadJob> jobs) = 0;
  /// Sets every job's `ok`, and wipes the output of those that are not.
  virtual void open(const AeadKey& key, std::span<AeadJob> jobs) = 0;
};

struct AeadBackendOperations {
  /// Null where the backend does not run on this machine; then makeKey() gives nothing either.
  std::unique_ptr<AeadEngine> (*makeEngine)();
  /// Null where the backend cannot run the suite on this CPU in constant time.
  std::unique_ptr<AeadKey> (*makeKey)(Suite suite, const Secret<32>& key, const NonceSalt& salt);
};

extern const AeadBackendOperations kIpsecMbOperations;
extern const AeadBackendOperations kOpenSslOperations;
extern const AeadBackendOperations kSodiumOperations;
const AeadBackendOperations& aeadOperations(AeadBackend backend);

using AeadEngines = std::array<std::unique_ptr<AeadEngine>, kAeadBackends.size()>;
/// One of each, by backend; null for one that does not run on this machine.
AeadEngines makeAeadEngines();

/// The key of the two functions below. Null where the backend cannot run the suite.
std::unique_ptr<AeadKey> makeSelfTestKey(Suite suite, AeadBackend backend);

/// Seals known messages, compares their tags with known ones, opens them, and checks that none
/// opens once a bit has changed.
bool passesKnownAnswers(AeadEngine& engine, const AeadKey& selfTestKey);

/// Megabytes (10^6 bytes) of plaintext that one core seals or opens per second, the mean of both,
/// in batches of full-sized packets. Takes less than a millisecond.
std::uint32_t measureAead(AeadEngine& engine, const AeadKey& selfTestKey);

using AeadTable = std::array<AeadChoice, ADIT_SUITE_COUNT>;
/// What initializeAead() does, each time anew. `preferredName` is the environment variable's
/// value, or empty.
Result<AeadTable> chooseAeadBackends(std::string_view preferredName);

/// Holds unless an argument is a programming error or memory is exhausted: a packet that could
/// not be sealed must never be sent as if it had been.
inline void requireAead(bool succeeded, const char* what) {
  if (!succeeded) {
    throw std::runtime_error(what);
  }
}

}  // namespace adit::crypto
