// Big-endian fields of datagrams. The caller has checked the length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace adit::pcp {

inline std::uint16_t read16(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8U | bytes[at + 1]);
}

inline std::uint32_t read32(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(read16(bytes, at)) << 16U | read16(bytes, at + 2);
}

inline std::uint64_t read64(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint64_t>(read32(bytes, at)) << 32U | read32(bytes, at + 4);
}

inline void write16(std::span<std::uint8_t> bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8U);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

inline void write32(std::span<std::uint8_t> bytes, std::size_t at, std::uint32_t value) {
  write16(bytes, at, static_cast<std::uint16_t>(value >> 16U));
  write16(bytes, at + 2, static_cast<std::uint16_t>(value));
}

inline void write64(std::span<std::uint8_t> bytes, std::size_t at, std::uint64_t value) {
  write32(bytes, at, static_cast<std::uint32_t>(value >> 32U));
  write32(bytes, at + 4, static_cast<std::uint32_t>(value));
}

}  // namespace adit::pcp
