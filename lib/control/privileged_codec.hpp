// Values as bytes, for the socket between the two processes of privileged_process.hpp. Both ends
// are the same program, so the form may change with every version.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/privileged_bytes.hpp"
#include "util/address.hpp"

namespace adit::control {

template <typename T>
concept Scalar = std::integral<T> || std::is_enum_v<T>;

class Encoder {
 public:
  void raw(std::span<const std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <Scalar T>
  void value(T scalar) {
    std::uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &scalar, sizeof(T));
    raw(bytes);
  }
  void value(const std::string& text) {
    value(static_cast<std::uint32_t>(text.size()));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  void value(const IpAddress& address) {
    value(address.isV6());
    raw(address.bytes());
  }
  template <typename T>
  void value(const std::vector<T>& items) {
    value(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items)
      value(item);
  }

  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Reads what an Encoder wrote. Any input is safe: once something does not fit, ok() is false for
/// good and every value that is read is empty.
class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  [[nodiscard]] bool ok() const { return !failed_; }
  /// ok(), and nothing is left over.
  [[nodiscard]] bool finished() const { return !failed_ && rest_.empty(); }
  /// `size` bytes, or none.
  std::span<const std::uint8_t> raw(std::size_t size);

  /// For integers and bool; an enum is checked by whoever knows its values.
  template <std::integral T>
  T scalar() {
    std::conditional_t<std::same_as<T, bool>, std::uint8_t, T> result{};
    if (const auto bytes = raw(sizeof(result)); !bytes.empty()) {
      std::memcpy(&result, bytes.data(), sizeof(result));
    }
    if constexpr (std::same_as<T, bool>) {
      if (result > 1) failed_ = true;
      return result == 1;
    } else {
      return result;
    }
  }
  std::string text();
  IpAddress address();
  /// A list whose items `read` reads. Stops at the first that does not fit.
  template <typename Read>
  auto list(Read read) {
    std::vector<decltype(read())> items;
    for (auto count = scalar<std::uint32_t>(); count > 0 && ok(); --count)
      items.push_back(read());
    if (failed_) items.clear();
    return items;
  }
  /// For a value that is read but makes no sense.
  void reject() { failed_ = true; }

 private:
  std::span<const std::uint8_t> rest_;
  bool failed_ = false;
};

}  // namespace adit::control
