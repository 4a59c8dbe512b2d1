// Random bytes, injected wherever a test must know them.
#pragma once

#include <cstdint>
#include <span>

namespace adit::crypto {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  /// Overwrites every byte of `out`. Cannot fail.
  virtual void fill(std::span<std::uint8_t> out) = 0;
};

/// getrandom(2), by libsodium. Thread-safe.
class SystemRandom final : public RandomSource {
 public:
  void fill(std::span<std::uint8_t> out) override;
};

}  // namespace adit::crypto
