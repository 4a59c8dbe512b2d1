// Each backend by itself: published vectors, and the test that a backend must pass to be used.
#include "crypto/aead_backend.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <vector>

#include "crypto/hex.hpp"

using namespace adit;
using namespace adit::crypto;
using test::fromHex;
using test::toHex;

namespace {

/// Counts OpenSSL's allocations; in place before it makes the first.
std::atomic<std::size_t> allocations{0};
void* countedMalloc(std::size_t size, const char* /*file*/, int /*line*/) {
  ++allocations;
  return std::malloc(size);
}
void* countedRealloc(void* old, std::size_t size, const char* /*file*/, int /*line*/) {
  ++allocations;
  return std::realloc(old, size);
}
void countedFree(void* pointer, const char* /*file*/, int /*line*/) {
  std::free(pointer);
}
const bool counting = CRYPTO_set_mem_functions(countedMalloc, countedRealloc, countedFree) == 1;

struct Vector {
  const char* source;
  Suite suite;
  const char* key;
  const char* nonce;
  const char* plain;
  /// Ciphertext and tag. Without a tag where the source has associated data, on which the
  /// ciphertext does not depend.
  const char* sealed;
};

constexpr const char* kZeros16 = "00000000000000000000000000000000";
constexpr const char* kZeros32 = "0000000000000000000000000000000000000000000000000000000000000000";
constexpr const char* kGcmPlain =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b5"
    "25b16aedf5aa0de657ba637b391aafd255";

// GCM: McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, the test cases
// without associated data. Wycheproof: chacha20_poly1305_test.json.
const Vector kVectors[] = {
    {"GCM test case 1", Suite::Aes128Gcm, kZeros16, "000000000000000000000000", "",
     "58e2fccefa7e3061367f1d57a4e7455a"},
    {"GCM test case 2", Suite::Aes128Gcm, kZeros16, "000000000000000000000000", kZeros16,
     "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"},
    {"GCM test case 3", Suite::Aes128Gcm, "feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", kGcmPlain,
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84"
     "aa051ba30b396a0aac973d58e091473f59854d5c2af327cd64a62cf35abd2ba6fab4"},
    {"GCM test case 13", Suite::Aes256Gcm, kZeros32, "000000000000000000000000", "",
     "530f8afbc74536b9a963b4f1c4cb738b"},
    {"GCM test case 14", Suite::Aes256Gcm, kZeros32, "000000000000000000000000", kZeros16,
     "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
    {"GCM test case 15", Suite::Aes256Gcm,
     "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     kGcmPlain,
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b105682"
     "8838c5f61e6393ba7a0abcc9f662898015adb094dac5d93471bdec1a502270e3cc6c"},
    {"Wycheproof 2", Suite::ChaCha20Poly1305,
     "80ba3192c803ce965ea371d5ff073cf0f43b6a2ab576b208426e11409c09b9b0", "4da5bf8dfd5852c1ea12379d",
     "", "76acb342cf3166a5b63c0c0ea1383c8d"},
    {"Wycheproof 4", Suite::ChaCha20Poly1305,
     "cc56b680552eb75008f5484b4cb803fa5063ebd6eab91f6ab6aef4916a766273", "99e23ec48985bccdeeab60f1",
     "2a", "3acac27dec0968801e9f6eded69d807522"},
    {"RFC 8439 section 2.8.2", Suite::ChaCha20Poly1305,
     "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a20496620492"
     "0"
     "636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c20737"
     "5"
     "6e73637265656e20776f756c642062652069742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92"
     "728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b"
     "4831d7bc3ff4def08e4b7a9de576d26586cec64b6116"},
};

/// Where the nonce of a vector goes: its first four bytes and the rest.
struct SplitNonce {
  NonceSalt salt{};
  std::uint64_t counter = 0;

  explicit SplitNonce(const char* hex) {
    const auto nonce = test::arrayFromHex<12>(hex);
    std::copy_n(nonce.begin(), salt.size(), salt.begin());
    for (unsigned i = 0; i < 8; ++i) {
      counter |= static_cast<std::uint64_t>(nonce[4 + i]) << (8 * i);
    }
  }
};

/// The first 16 or all 32 bytes from a vector.
Secret<32> secretOf(const Vector& vector) {
  Secret<32> secret;
  const auto bytes = fromHex(vector.key);
  std::copy(bytes.begin(), bytes.end(), secret.data());
  return secret;
}

/// A real engine with something done wrong after it.
class BrokenEngine final : public AeadEngine {
 public:
  using Damage = std::function<void(std::span<AeadJob>)>;
  BrokenEngine(AeadBackend backend, Damage afterSeal, Damage afterOpen)
      : real_(aeadOperations(backend).makeEngine()),
        afterSeal_(std::move(afterSeal)),
        afterOpen_(std::move(afterOpen)) {}
  void seal(const AeadKey& key, std::span<AeadJob> jobs) override {
    real_->seal(key, jobs);
    afterSeal_(jobs);
  }
  void open(const AeadKey& key, std::span<AeadJob> jobs) override {
    real_->open(key, jobs);
    afterOpen_(jobs);
  }

 private:
  std::unique_ptr<AeadEngine> real_;
  Damage afterSeal_;
  Damage afterOpen_;
};

/// Consistent with itself, but not with the suite: it uses a key of its own.
class WrongKeyEngine final : public AeadEngine {
 public:
  WrongKeyEngine(Suite suite, AeadBackend backend)
      : real_(aeadOperations(backend).makeEngine()),
        key_(makeAeadKey(suite, Secret<32>(), backend)) {}
  void seal(const AeadKey& /*key*/, std::span<AeadJob> jobs) override { real_->seal(*key_, jobs); }
  void open(const AeadKey& /*key*/, std::span<AeadJob> jobs) override { real_->open(*key_, jobs); }

 private:
  std::unique_ptr<AeadEngine> real_;
  std::unique_ptr<AeadKey> key_;
};

}  // namespace

TEST_CASE("The nonce is four zero bytes and the little-endian counter") {
  CHECK(toHex(nonceFromCounter(0x0102030405060708)) == "000000000807060504030201");
}

TEST_CASE("Every backend agrees with published vectors") {
  for (const Vector& vector : kVectors) {
    const SplitNonce nonce(vector.nonce);
    const auto plain = fromHex(vector.plain);
    const auto expected = fromHex(vector.sealed);
    for (const AeadBackend backend : kAeadBackends) {
      INFO(vector.source << " by " << aeadBackendName(backend));
      const auto engine = aeadOperations(backend).makeEngine();
      const auto key = aeadOperations(backend).makeKey(vector.suite, secretOf(vector), nonce.salt);
      if (key == nullptr) {
        continue;
      }
      std::vector<std::uint8_t> sealed(plain.size() + ADIT_TAG_LENGTH);
      AeadJob job{plain.data(), sealed.data(), static_cast<std::uint32_t>(plain.size()),
                  nonce.counter};
      engine->seal(*key, {&job, 1});
      CHECK(toHex(std::span(sealed).first(expected.size())) == vector.sealed);

      std::vector<std::uint8_t> opened(plain.size());
      job.in = sealed.data();
      job.out = opened.data();
      engine->open(*key, {&job, 1});
      CHECK(job.ok);
      CHECK(opened == plain);
    }
  }
}

TEST_CASE("Backends that this machine has pass the known-answer test") {
  std::size_t passed = 0;
  for (const AeadBackend backend : kAeadBackends) {
    for (const Suite suite : kSuites) {
      const auto engine = aeadOperations(backend).makeEngine();
      if (const auto key = makeSelfTestKey(suite, backend)) {
        INFO(suiteName(suite) << " by " << aeadBackendName(backend));
        CHECK(passesKnownAnswers(*engine, *key));
        CHECK(measureAead(*engine, *key) > 0);
        ++passed;
      }
    }
  }
  CHECK(passed >= 4);
}

TEST_CASE("The known-answer test refuses a backend with any fault") {
  const auto nothing = [](std::span<AeadJob>) {};
  const auto last = [](std::span<AeadJob> jobs) -> AeadJob& { return jobs.back(); };
  for (const Suite suite : kSuites) {
    const auto key = makeSelfTestKey(suite, AeadBackend::OpenSsl);
    const auto passes = [&](BrokenEngine::Damage afterSeal, BrokenEngine::Damage afterOpen) {
      BrokenEngine engine(AeadBackend::OpenSsl, std::move(afterSeal), std::move(afterOpen));
      return passesKnownAnswers(engine, *key);
    };
    CHECK(passes(nothing, nothing));
    // Another cipher, consistently.
    WrongKeyEngine other(suite, AeadBackend::OpenSsl);
    CHECK_FALSE(passesKnownAnswers(other, *key));
    // A wrong tag.
    CHECK_FALSE(passes([&](auto jobs) { last(jobs).out[last(jobs).length + 15] ^= 1; }, nothing));
    // Wrong plaintext.
    CHECK_FALSE(passes(nothing, [&](auto jobs) { last(jobs).out[1419] ^= 1; }));
    // Authentic datagrams refused.
    CHECK_FALSE(passes(nothing, [&](auto jobs) { last(jobs).ok = false; }));
    // Forgeries accepted.
    CHECK_FALSE(passes(nothing, [&](auto jobs) { last(jobs).ok = true; }));
    // Plaintext left behind.
    CHECK_FALSE(passes(nothing, [&](auto jobs) {
      if (!last(jobs).ok) {
        last(jobs).out[700] = 1;
      }
    }));
  }
}

TEST_CASE("The environment fixes the backend of the suites that it can run") {
  const auto openssl = chooseAeadBackends("openssl");
  REQUIRE(openssl);
  for (const AeadChoice& choice : *openssl) {
    CHECK(choice.backend == AeadBackend::OpenSsl);
  }
  const auto sodium = chooseAeadBackends("sodium");
  REQUIRE(sodium);
  CHECK(sodium->at(ADIT_SUITE_CHACHA20_POLY1305).backend == AeadBackend::Sodium);
  CHECK(sodium->at(ADIT_SUITE_AES_128_GCM).backend != AeadBackend::Sodium);
  const auto wrong = chooseAeadBackends("gnutls");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("gnutls") != std::string::npos);
  CHECK(wrong.error().message.find("openssl") != std::string::npos);
}

TEST_CASE("OpenSSL allocates nothing to seal and open") {
  REQUIRE(counting);
  const auto engine = aeadOperations(AeadBackend::OpenSsl).makeEngine();
  std::vector<std::uint8_t> buffer(100 + ADIT_TAG_LENGTH);
  for (const Suite suite : kSuites) {
    INFO(suiteName(suite));
    const auto key = makeSelfTestKey(suite, AeadBackend::OpenSsl);
    AeadJob job{buffer.data(), buffer.data(), 100, 0};
    const std::size_t before = allocations;
    CHECK(before > 0);
    engine->seal(*key, {&job, 1});
    engine->open(*key, {&job, 1});
    CHECK(job.ok);
    CHECK(allocations == before);
    // A forgery is the case that an attacker chooses.
    engine->open(*key, {&job, 1});
    CHECK_FALSE(job.ok);
    CHECK(allocations == before);
  }
}
