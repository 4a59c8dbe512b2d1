#include "crypto/aead.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

#include "crypto/hex.hpp"

using namespace adit;
using namespace adit::crypto;

namespace {

using Buffer = std::vector<std::uint8_t>;

constexpr std::size_t kTag = ADIT_TAG_LENGTH;
constexpr std::uint8_t kCanary = 0xc5;
constexpr std::size_t kCanaries = 64;

Buffer randomBytes(std::mt19937_64& random, std::size_t size) {
  Buffer bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

/// A key for each backend that can run `suite` here.
std::vector<std::unique_ptr<AeadKey>> keysOf(Suite suite, const Secret<32>& secret) {
  std::vector<std::unique_ptr<AeadKey>> keys;
  for (const AeadBackend backend : kAeadBackends) {
    if (auto key = makeAeadKey(suite, secret, backend)) {
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

/// `input` sealed, in place or not; fails the test when a byte behind the tag is touched.
Buffer seal(AeadWorker& worker, const AeadKey& key, std::uint64_t counter, const Buffer& input,
            bool inPlace) {
  Buffer out(input.size() + kTag + kCanaries, kCanary);
  std::copy(input.begin(), input.end(), out.begin());
  AeadJob job{inPlace ? out.data() : input.data(), out.data(),
              static_cast<std::uint32_t>(input.size()), counter};
  worker.seal(key, {&job, 1});
  REQUIRE(std::count(out.end() - kCanaries, out.end(), kCanary) == kCanaries);
  out.resize(input.size() + kTag);
  return out;
}

struct Opened {
  bool ok;
  Buffer output;
};

Opened open(AeadWorker& worker, const AeadKey& key, std::uint64_t counter, const Buffer& sealed,
            bool inPlace) {
  const std::size_t length = sealed.size() - kTag;
  Buffer out(length + kTag + kCanaries, kCanary);
  if (inPlace) {
    std::copy(sealed.begin(), sealed.end(), out.begin());
  }
  AeadJob job{inPlace ? out.data() : sealed.data(), out.data(), static_cast<std::uint32_t>(length),
              counter};
  const std::size_t opened = worker.open(key, {&job, 1});
  REQUIRE(opened == (job.ok ? 1 : 0));
  REQUIRE(std::count(out.end() - kCanaries, out.end(), kCanary) == kCanaries);
  if (inPlace) {
    REQUIRE(std::equal(sealed.end() - kTag, sealed.end(), out.begin() + static_cast<long>(length)));
  }
  out.resize(length);
  return {job.ok, out};
}

bool isZero(const Buffer& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

/// A batch of messages of various lengths in one buffer, sealed in place.
class Batch {
 public:
  static constexpr std::size_t kStride = 1600;

  Batch(std::mt19937_64& random, std::size_t count) : buffer_(count * kStride), jobs_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      plain_.push_back(randomBytes(random, random() % 1500));
      std::copy(plain_[i].begin(), plain_[i].end(), at(i));
      jobs_[i] = {at(i), at(i), static_cast<std::uint32_t>(plain_[i].size()), random()};
    }
  }

  std::uint8_t* at(std::size_t i) { return &buffer_[i * kStride]; }
  std::vector<AeadJob>& jobs() { return jobs_; }
  Buffer content(std::size_t i) { return {at(i), at(i) + jobs_[i].length}; }
  const Buffer& plain(std::size_t i) { return plain_[i]; }

 private:
  Buffer buffer_;
  std::vector<Buffer> plain_;
  std::vector<AeadJob> jobs_;
};

}  // namespace

TEST_CASE("Initialisation chooses a backend and a speed for every suite, once") {
  REQUIRE(initializeAead());
  const auto first = aeadChoices();
  for (const AeadChoice& choice : first) {
    CHECK(choice.megabytesPerSecond > 0);
  }
  REQUIRE(initializeAead());
  for (const Suite suite : kSuites) {
    const auto index = static_cast<std::size_t>(suite);
    CHECK(aeadChoices().at(index).megabytesPerSecond == first.at(index).megabytesPerSecond);
    const auto key = makeAeadKey(suite, Secret<32>());
    REQUIRE(key);
    CHECK(key->suite() == suite);
    CHECK(key->backend() == first.at(index).backend);
  }
}

TEST_CASE("OpenSSL runs every suite, and libsodium the one that every machine needs") {
  for (const Suite suite : kSuites) {
    CHECK(makeAeadKey(suite, Secret<32>(), AeadBackend::OpenSsl));
  }
  CHECK(makeAeadKey(Suite::ChaCha20Poly1305, Secret<32>(), AeadBackend::Sodium));
  CHECK_FALSE(makeAeadKey(Suite::Aes128Gcm, Secret<32>(), AeadBackend::Sodium));
}

TEST_CASE("All backends agree on messages of random lengths, in place and out of place") {
  AeadWorker worker;
  std::mt19937_64 random(Catch::rngSeed());
  for (const Suite suite : kSuites) {
    for (int round = 0; round < 250; ++round) {
      const Secret<32> secret(std::span<const std::uint8_t, 32>(randomBytes(random, 32)));
      const auto keys = keysOf(suite, secret);
      const std::size_t length = round < 130 ? static_cast<std::size_t>(round) : random() % 2001;
      const Buffer plain = randomBytes(random, length);
      const std::uint64_t counter = random();
      const Buffer expected = seal(worker, *keys.front(), counter, plain, false);
      for (const auto& key : keys) {
        INFO(suiteName(suite) << " by " << aeadBackendName(key->backend()) << ", " << length
                              << " bytes");
        for (const bool inPlace : {false, true}) {
          REQUIRE(seal(worker, *key, counter, plain, inPlace) == expected);
          const Opened opened = open(worker, *key, counter, expected, inPlace);
          REQUIRE(opened.ok);
          REQUIRE(opened.output == plain);
        }
      }
    }
  }
}

TEST_CASE("An empty message needs no input pointer") {
  AeadWorker worker;
  for (const Suite suite : kSuites) {
    for (const auto& key : keysOf(suite, Secret<32>(test::counting<32>()))) {
      INFO(suiteName(suite) << " by " << aeadBackendName(key->backend()));
      std::array<std::uint8_t, kTag> sealed{};
      AeadJob job{nullptr, sealed.data(), 0, 7};
      worker.seal(*key, {&job, 1});
      CHECK(open(worker, *key, 7, Buffer(sealed.begin(), sealed.end()), false).ok);
      CHECK_FALSE(open(worker, *key, 8, Buffer(sealed.begin(), sealed.end()), false).ok);
    }
  }
}

TEST_CASE("A change of any byte, the counter or the key is found, and the output is wiped") {
  AeadWorker worker;
  std::mt19937_64 random(Catch::rngSeed());
  for (const Suite suite : kSuites) {
    const auto otherSecret = Secret<32>(test::arrayFromHex<32>("01" + std::string(62, '0')));
    const auto others = keysOf(suite, otherSecret);
    const auto keys = keysOf(suite, Secret<32>());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      INFO(suiteName(suite) << " by " << aeadBackendName(keys[k]->backend()));
      const Buffer sealed = seal(worker, *keys[k], 5, randomBytes(random, 83), false);
      for (const bool inPlace : {false, true}) {
        for (std::size_t i = 0; i < sealed.size(); ++i) {
          Buffer bad = sealed;
          bad[i] ^= static_cast<std::uint8_t>(1U << random() % 8);
          const Opened opened = open(worker, *keys[k], 5, bad, inPlace);
          REQUIRE_FALSE(opened.ok);
          REQUIRE(isZero(opened.output));
        }
        CHECK_FALSE(open(worker, *keys[k], 6, sealed, inPlace).ok);
        CHECK_FALSE(open(worker, *keys[k], 5 | 1ULL << 63, sealed, inPlace).ok);
        CHECK_FALSE(open(worker, *others[k], 5, sealed, inPlace).ok);
        CHECK(open(worker, *keys[k], 5, sealed, inPlace).ok);
      }
    }
  }
}

TEST_CASE("AES-128-GCM uses the first half of the key only") {
  AeadWorker worker;
  auto bytes = test::counting<32>();
  const auto keys = keysOf(Suite::Aes128Gcm, Secret<32>(bytes));
  bytes[16] ^= 1;
  const auto same = keysOf(Suite::Aes128Gcm, Secret<32>(bytes));
  bytes[15] ^= 1;
  const auto different = keysOf(Suite::Aes128Gcm, Secret<32>(bytes));
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const Buffer sealed = seal(worker, *keys[k], 1, Buffer(100), false);
    CHECK(open(worker, *same[k], 1, sealed, false).ok);
    CHECK_FALSE(open(worker, *different[k], 1, sealed, false).ok);
  }
}

TEST_CASE("One bad datagram in a batch of any size spoils no other") {
  AeadWorker worker;
  std::mt19937_64 random(Catch::rngSeed());
  std::vector<std::size_t> sizes{65, 127, 128, 129, 300};
  for (std::size_t size = 1; size <= 64; ++size) {
    sizes.push_back(size);
  }
  for (const Suite suite : kSuites) {
    for (const auto& key : keysOf(suite, Secret<32>(test::counting<32>()))) {
      for (const std::size_t size : sizes) {
        INFO(suiteName(suite) << " by " << aeadBackendName(key->backend()) << ", batch of "
                              << size);
        Batch batch(random, size);
        worker.seal(*key, batch.jobs());
        const std::size_t bad = size / 2;
        batch.at(bad)[random() % (batch.jobs()[bad].length + kTag)] ^= 0x10;
        REQUIRE(worker.open(*key, batch.jobs()) == size - 1);
        for (std::size_t i = 0; i < size; ++i) {
          REQUIRE(batch.jobs()[i].ok == (i != bad));
          REQUIRE((i == bad ? isZero(batch.content(i)) : batch.content(i) == batch.plain(i)));
        }
      }
    }
  }
}

TEST_CASE("A batch with nothing in it is nothing") {
  AeadWorker worker;
  const auto key = makeAeadKey(Suite::ChaCha20Poly1305, Secret<32>(), AeadBackend::OpenSsl);
  worker.seal(*key, {});
  CHECK(worker.open(*key, {}) == 0);
}

TEST_CASE("A worker takes keys of all suites and backends in turn") {
  AeadWorker worker;
  std::vector<std::unique_ptr<AeadKey>> keys;
  std::vector<Buffer> sealed;
  for (int i = 0; i < 3; ++i) {
    auto bytes = test::counting<32>();
    bytes[0] = static_cast<std::uint8_t>(i);
    for (const Suite suite : kSuites) {
      for (auto& key : keysOf(suite, Secret<32>(bytes))) {
        sealed.push_back(seal(worker, *key, 9, Buffer(77, 1), false));
        keys.push_back(std::move(key));
      }
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const bool same = sealed[i] == sealed[j];
      CHECK(open(worker, *keys[i], 9, sealed[j], false).ok == same);
    }
  }
}

TEST_CASE("Threads share a key, each with its own worker") {
  for (const Suite suite : kSuites) {
    for (const auto& key : keysOf(suite, Secret<32>(test::counting<32>()))) {
      std::array<std::size_t, 4> opened{};
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < opened.size(); ++t) {
        threads.emplace_back([&, t] {
          AeadWorker worker;
          std::mt19937_64 random(t);
          for (int round = 0; round < 20; ++round) {
            Batch batch(random, 32);
            worker.seal(*key, batch.jobs());
            opened.at(t) += worker.open(*key, batch.jobs());
          }
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      CHECK(opened == std::array<std::size_t, 4>{640, 640, 640, 640});
    }
  }
}
