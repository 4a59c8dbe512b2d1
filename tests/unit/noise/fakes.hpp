// Injected time, randomness and storage for the tests of lib/noise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/random.hpp"
#include "noise/timestamp.hpp"
#include "util/clock.hpp"

namespace adit::noise::test {

using namespace std::chrono_literals;

class FakeClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return boot; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return real; }
  void advance(std::chrono::nanoseconds by) {
    boot += by;
    real += by;
  }

  BootTime boot = 1000s;
  /// 2031-05-01
  std::chrono::nanoseconds real = std::chrono::seconds(1935360000);
};

class SeededRandom final : public crypto::RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  void fill(std::span<std::uint8_t> out) override {
    std::ranges::generate(out, [this] { return static_cast<std::uint8_t>(engine_()); });
  }

 private:
  std::mt19937_64 engine_;
};

class MemoryStore final : public TimestampStore {
 public:
  Result<void> save(const Tai64n& newMark) override {
    if (broken) return fail("no space left");
    mark = newMark;
    ++saves;
    return {};
  }

  std::optional<Tai64n> mark;
  unsigned saves = 0;
  bool broken = false;
};

/// A private key that anybody can type: 32 bytes counting from `first`.
inline crypto::PrivateKey countingKey(std::uint8_t first) {
  std::array<std::uint8_t, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(first + i);
  }
  return crypto::PrivateKey(bytes);
}

inline std::vector<std::uint8_t> fromHex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  const auto digit = [](char c) {
    return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
  }
  return bytes;
}

inline std::string toHex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// The public keys of small order (RFC 7748 section 6.1; https://cr.yp.to/ecdh.html), in the
/// forms below 2^255.
inline const std::vector<std::string_view> kLowOrderPoints{
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
};

inline crypto::PublicKey publicKeyFromHex(std::string_view text) {
  crypto::PublicKey key;
  std::ranges::copy(fromHex(text), key.bytes.begin());
  return key;
}

}  // namespace adit::noise::test
