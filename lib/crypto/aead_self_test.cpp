// The known-answer test that decides whether a backend may carry packets, and the measurement
// that ranks those that may.
#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "crypto/aead_backend.hpp"

namespace adit::crypto {
namespace {

/// A tag as two numbers in big-endian order.
using Tag64 = std::array<std::uint64_t, 2>;

// Lengths on both sides of the block and vector sizes that the libraries' code paths turn on.
constexpr std::array<std::uint32_t, 10> kLengths{0, 1, 16, 17, 63, 64, 255, 257, 511, 1420};

// For the key 0, 1, 2, ..., the message 1, 8, 15, ... (each byte 7 more, modulo 256) and the
// counter kFirstCounter + length. Computed with an independent caller of the primitives. A tag
// covers its ciphertext, so comparing tags compares both.
constexpr std::uint64_t kFirstCounter = 0x0102030405060708;
constexpr std::array<std::array<Tag64, kLengths.size()>, ADIT_SUITE_COUNT> kTags{
    // ChaCha20-Poly1305
    std::array{Tag64{0x2752c39e5b6b57e6, 0xb8f924db3698b1ba},
               Tag64{0xf778c462d95fa69e, 0x1857a2f6519fce3e},
               Tag64{0xad66c6d48eb9fe90, 0xb22d1ab66e51ce7b},
               Tag64{0xbab73e55ace5ff46, 0x59975b0ad8cf9737},
               Tag64{0x69ef69d88586dda9, 0xd06db521d7564d5a},
               Tag64{0x50ad758c62dbba03, 0x62f476e619c38a00},
               Tag64{0xf281b518c98e5298, 0x065875c8cdd58d4e},
               Tag64{0x52ed0ad18c2657c0, 0x588d9ecc76c67b6b},
               Tag64{0x9c810481031fad00, 0xbd0a121d2815f27e},
               Tag64{0xd19973b2905794e8, 0x77fa961d501556f7}},
    // AES-256-GCM
    std::array{Tag64{0x5bfd8f11fd874b84, 0xb0da8d25e626f190},
               Tag64{0x20e091e4c292973f, 0xa94eb08b3d034f4a},
               Tag64{0x577add99f103746e, 0xe53908637e091f43},
               Tag64{0x143ccf7c3e8b1e66, 0x214cbedf809b708c},
               Tag64{0x354fa1f013cdf191, 0xc34a3e05d0660321},
               Tag64{0x1c51b3792d1f2a20, 0xc8319f53decfd3b8},
               Tag64{0xb3e527f0d70fbc23, 0xb3db664112d0b6cf},
               Tag64{0x585f76db93ec5039, 0xa4feb9c56ab56dfa},
               Tag64{0x505dc6265545d773, 0x990166a03e34fff9},
               Tag64{0x8ee95a9695f22daf, 0x674f660fb3f157d0}},
    // AES-128-GCM
    std::array{Tag64{0xd10d5dc46a3d144e, 0x766bbad73cd64deb},
               Tag64{0x0b5f862546c10250, 0xeb525cdcab0d8130},
               Tag64{0x53cd70613e404290, 0xb4320cae6082d4c3},
               Tag64{0xcad69899b07a796b, 0x1d35cb789f02401d},
               Tag64{0x342ba49c80a27c4f, 0x68bb6819b96dcbec},
               Tag64{0xf443b2266668bb4e, 0x81bda73bbc40e401},
               Tag64{0x5493559a28b578a8, 0xad22fac05fcaf9f4},
               Tag64{0xb26141914d1779cc, 0x73a57eab572bb450},
               Tag64{0x5921e17e1472d444, 0x5e2d082a96a8ac9a},
               Tag64{0xc994e3a159656b5d, 0x8b5f5be767565ad1}},
};

constexpr std::size_t kTagSize = ADIT_TAG_LENGTH;
constexpr std::uint32_t kPacket = 1420;
/// Room for a packet and its tag, whole cache lines.
constexpr std::size_t kStride = 1472;

std::vector<std::uint8_t> makeMessage() {
  std::vector<std::uint8_t> message(kPacket);
  std::uint8_t next = 1;
  for (std::uint8_t& byte : message) {
    byte = next;
    next = static_cast<std::uint8_t>(next + 7);
  }
  return message;
}

bool hasTag(const std::uint8_t* sealed, std::uint32_t length, const Tag64& expected) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kTagSize; ++i) {
    const auto byte = static_cast<std::uint8_t>(expected[i / 8] >> (56 - 8 * (i % 8)));
    difference |= sealed[length + i] ^ byte;
  }
  return difference == 0;
}

/// Each of `jobs` opens in place to the start of `message`.
bool opensTo(AeadEngine& engine, const AeadKey& key, std::span<AeadJob> jobs,
             const std::vector<std::uint8_t>& message) {
  engine.open(key, jobs);
  return std::all_of(jobs.begin(), jobs.end(), [&](const AeadJob& job) {
    return job.ok && std::memcmp(job.out, message.data(), job.length) == 0;
  });
}

bool opensNone(AeadEngine& engine, const AeadKey& key, std::span<AeadJob> jobs) {
  engine.open(key, jobs);
  return std::all_of(jobs.begin(), jobs.end(), [](const AeadJob& job) {
    return !job.ok && sodium_is_zero(job.out, job.length) == 1;
  });
}

}  // namespace

std::unique_ptr<AeadKey> makeSelfTestKey(Suite suite, AeadBackend backend) {
  Secret<32> key;
  std::uint8_t next = 0;
  for (std::uint8_t& byte : key.bytes()) {
    byte = next++;
  }
  return makeAeadKey(suite, key, backend);
}

bool passesKnownAnswers(AeadEngine& engine, const AeadKey& key) {
  const std::vector<std::uint8_t> message = makeMessage();
  std::vector<std::uint8_t> sealed(kLengths.size() * kStride);
  std::array<AeadJob, kLengths.size()> jobs{};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs.at(i) = {message.data(), &sealed[i * kStride], kLengths.at(i),
                  kFirstCounter + kLengths.at(i)};
  }
  engine.seal(key, jobs);
  const auto& tags = kTags.at(static_cast<std::size_t>(key.suite()));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!hasTag(jobs.at(i).out, jobs.at(i).length, tags.at(i))) {
      return false;
    }
    jobs.at(i).in = jobs.at(i).out;
  }
  std::vector<std::uint8_t> changed = sealed;
  if (!opensTo(engine, key, jobs, message)) {
    return false;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    // The first bit of the ciphertext, or of the tag where there is no ciphertext.
    changed[i * kStride] ^= 1;
    jobs.at(i).in = &changed[i * kStride];
    jobs.at(i).out = &changed[i * kStride];
  }
  return opensNone(engine, key, jobs);
}

std::uint32_t measureAead(AeadEngine& engine, const AeadKey& key) {
  using Time = std::chrono::steady_clock;
  constexpr std::size_t kBatch = 16;
  constexpr auto kBudget = std::chrono::microseconds(250);

  std::vector<std::uint8_t> plain(kBatch * kStride);
  std::vector<std::uint8_t> sealed(kBatch * kStride);
  std::array<AeadJob, kBatch> sealing{};
  std::array<AeadJob, kBatch> opening{};
  for (std::size_t i = 0; i < kBatch; ++i) {
    sealing.at(i) = {&plain[i * kStride], &sealed[i * kStride], kPacket, i};
    opening.at(i) = {&sealed[i * kStride], &plain[i * kStride], kPacket, i};
  }
  // The shortest of many rounds: other work on the machine only ever adds time.
  auto best = Time::duration::max();
  const auto start = Time::now();
  auto now = start;
  do {
    engine.seal(key, sealing);
    engine.open(key, opening);
    const auto end = Time::now();
    best = std::min(best, end - now);
    now = end;
  } while (now - start < kBudget);

  const double seconds = std::chrono::duration<double>(best).count();
  return static_cast<std::uint32_t>(2.0 * kBatch * kPacket / 1e6 / seconds);
}

}  // namespace adit::crypto
