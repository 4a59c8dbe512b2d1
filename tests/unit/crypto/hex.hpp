// Hexadecimal test vectors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace adit::test {

inline std::uint8_t nibble(char digit) {
  if (digit >= '0' && digit <= '9') {
    return static_cast<std::uint8_t>(digit - '0');
  }
  if (digit >= 'a' && digit <= 'f') {
    return static_cast<std::uint8_t>(digit - 'a' + 10);
  }
  throw std::invalid_argument("not a hexadecimal digit");
}

inline std::vector<std::uint8_t> fromHex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(nibble(text[i]) << 4 | nibble(text[i + 1])));
  }
  return bytes;
}

template <std::size_t Size>
std::array<std::uint8_t, Size> arrayFromHex(std::string_view text) {
  const std::vector<std::uint8_t> bytes = fromHex(text);
  if (bytes.size() != Size) {
    throw std::invalid_argument("test vector of the wrong size");
  }
  std::array<std::uint8_t, Size> out{};
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

inline std::string toHex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// 0, 1, 2, ...
template <std::size_t Size>
std::array<std::uint8_t, Size> counting() {
  std::array<std::uint8_t, Size> out{};
  for (std::size_t i = 0; i < Size; ++i) {
    out[i] = static_cast<std::uint8_t>(i);
  }
  return out;
}

}  // namespace adit::test
