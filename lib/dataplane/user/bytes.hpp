// Unaligned loads and stores of packet fields.
#pragma once

#include <endian.h>

#include <cstdint>
#include <cstring>

namespace adit::dataplane::user {

template <typename T>
inline T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
inline void store(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

inline std::uint16_t loadBe16(const std::uint8_t* from) {
  return be16toh(load<std::uint16_t>(from));
}
inline std::uint32_t loadBe32(const std::uint8_t* from) {
  return be32toh(load<std::uint32_t>(from));
}
inline std::uint64_t loadBe64(const std::uint8_t* from) {
  return be64toh(load<std::uint64_t>(from));
}
inline std::uint32_t loadLe32(const std::uint8_t* from) {
  return le32toh(load<std::uint32_t>(from));
}
inline std::uint64_t loadLe64(const std::uint8_t* from) {
  return le64toh(load<std::uint64_t>(from));
}
inline void storeBe16(std::uint8_t* to, std::uint16_t value) {
  store(to, htobe16(value));
}
inline void storeBe32(std::uint8_t* to, std::uint32_t value) {
  store(to, htobe32(value));
}
inline void storeLe32(std::uint8_t* to, std::uint32_t value) {
  store(to, htole32(value));
}
inline void storeLe64(std::uint8_t* to, std::uint64_t value) {
  store(to, htole64(value));
}

}  // namespace adit::dataplane::user
