// Bytes that are wiped when they go away and cannot be printed by accident.
#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace adit {

template <std::size_t Size>
class Secret {
 public:
  Secret() { bytes_.fill(0); }
  explicit Secret(std::span<const std::uint8_t, Size> bytes) {
    std::memcpy(bytes_.data(), bytes.data(), Size);
  }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { other.wipe(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      bytes_ = other.bytes_;
      other.wipe();
    }
    return *this;
  }
  ~Secret() { wipe(); }

  static constexpr std::size_t size() { return Size; }
  [[nodiscard]] std::span<std::uint8_t, Size> bytes() { return bytes_; }
  [[nodiscard]] std::span<const std::uint8_t, Size> bytes() const { return bytes_; }
  [[nodiscard]] std::uint8_t* data() { return bytes_.data(); }
  [[nodiscard]] const std::uint8_t* data() const { return bytes_.data(); }

  void wipe() { sodium_memzero(bytes_.data(), Size); }
  [[nodiscard]] bool isZero() const { return sodium_is_zero(bytes_.data(), Size) == 1; }

  /// Constant time.
  friend bool operator==(const Secret& a, const Secret& b) {
    return sodium_memcmp(a.bytes_.data(), b.bytes_.data(), Size) == 0;
  }

 private:
  std::array<std::uint8_t, Size> bytes_;
};

}  // namespace adit
