// Transport encryption: batches of datagrams under one key, by the fastest implementation that
// this machine has.
//
// The associated data is always empty and the nonce is 4 zero bytes followed by the 64-bit
// little-endian counter, in every suite (docs/protocol.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "crypto/suite.hpp"
#include "util/result.hpp"
#include "util/secret.hpp"

namespace adit::crypto {

enum class AeadBackend : std::uint8_t { IpsecMb, OpenSsl, Sodium };
inline constexpr std::array kAeadBackends{AeadBackend::IpsecMb, AeadBackend::OpenSsl,
                                          AeadBackend::Sodium};
/// "ipsec-mb", "openssl", "sodium".
std::string_view aeadBackendName(AeadBackend backend);

/// One datagram. `in` and `out` may be the same address, or must not overlap.
struct AeadJob {
  const std::uint8_t* in;
  std::uint8_t* out;
  /// Bytes of plaintext. seal() writes `length` + 16 bytes, open() reads `length` + 16 bytes.
  std::uint32_t length;
  std::uint64_t counter;
  /// Set by open(): the tag was right. On false `out` holds no plaintext but zeros, also where it
  /// is `in`.
  bool ok = false;
};

/// An expanded key, fixed to the backend chosen for its suite. Immutable, so threads may share
/// it; wiped on destruction.
class AeadKey {
 public:
  virtual ~AeadKey() = default;
  [[nodiscard]] Suite suite() const { return suite_; }
  [[nodiscard]] AeadBackend backend() const { return backend_; }

 protected:
  AeadKey(Suite suite, AeadBackend backend) : suite_(suite), backend_(backend) {}

 private:
  Suite suite_;
  AeadBackend backend_;
};

/// Scratch state of one thread (an ipsec-mb manager, cipher contexts). Works with keys of any
/// suite and backend. Not thread-safe. seal() and open() do not allocate; large batches cost less
/// per datagram. What they throw is a programming error.
class AeadWorker {
 public:
  AeadWorker();
  ~AeadWorker();
  AeadWorker(const AeadWorker&) = delete;
  AeadWorker& operator=(const AeadWorker&) = delete;

  void seal(const AeadKey& key, std::span<AeadJob> jobs);
  /// Sets every job's `ok`; returns how many are.
  std::size_t open(const AeadKey& key, std::span<AeadJob> jobs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The chosen implementation of one suite and what it does on one core.
struct AeadChoice {
  AeadBackend backend;
  std::uint32_t megabytesPerSecond;
};

/// Must be called once before anything else here: initialises the libraries, runs a known-answer
/// test of every backend and suite that this CPU can run, discards what fails it, and measures
/// the rest for some 15 milliseconds. Thread-safe and idempotent. Fails only when no backend passes
/// for some suite, or ADIT_AEAD_BACKEND names none. That environment variable (ipsec-mb, openssl,
/// sodium) fixes the backend of every suite that it can run, for tests and for machines where
/// another one misbehaves.
Result<void> initializeAead();

/// By suite number. Requires initializeAead().
const std::array<AeadChoice, ADIT_SUITE_COUNT>& aeadChoices();

/// Expands `key` for the chosen backend; suite 2 uses its first 16 bytes.
std::unique_ptr<AeadKey> makeAeadKey(Suite suite, const Secret<32>& key);
/// For tests and measurements: the same with a given backend, or nothing where the backend cannot
/// run the suite on this CPU.
std::unique_ptr<AeadKey> makeAeadKey(Suite suite, const Secret<32>& key, AeadBackend backend);

}  // namespace adit::crypto
