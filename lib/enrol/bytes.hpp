// Writing and reading the little-endian fields of tokens and messages. Internal to lib/enrol.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace adit::enrol {

class Writer {
 public:
  void raw(std::span<const std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <std::unsigned_integral T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  /// One byte of length in front.
  void text(std::string_view value) {
    number(static_cast<std::uint8_t>(value.size()));
    raw({reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
  }
  [[nodiscard]] std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Once something does not fit, ok() is false for good and what is read is zero or empty.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  /// ok(), and nothing is left over.
  [[nodiscard]] bool finished() const { return ok_ && rest_.empty(); }
  std::span<const std::uint8_t> take(std::size_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  void raw(std::span<std::uint8_t> out) {
    const auto bytes = take(out.size());
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), out.size());
  }
  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    const auto bytes = take(sizeof(T));
    for (std::size_t i = bytes.size(); i > 0; --i) {
      value = static_cast<T>(static_cast<std::uint64_t>(value) << 8 | bytes[i - 1]);
    }
    return value;
  }
  std::string text() {
    const auto bytes = take(number<std::uint8_t>());
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::span<const std::uint8_t> rest_;
  bool ok_ = true;
};

}  // namespace adit::enrol
