#include "dataplane/user/checksum.hpp"

#include <algorithm>

#include "dataplane/user/bytes.hpp"

namespace adit::dataplane::user {
namespace {

// The widest vector that pays: the compiler maps it to the registers that the target has.
using Vector = std::uint64_t __attribute__((vector_size(64)));
constexpr std::size_t kVectorBytes = sizeof(Vector);

// Adds both 32-bit halves of each 64-bit word, so that no carry is ever lost: 2^32 words fit.
[[gnu::always_inline]] inline std::uint64_t sumVectors(const std::uint8_t* bytes,
                                                       std::size_t vectors) {
  Vector low{};
  Vector high{};
  for (std::size_t i = 0; i < vectors; ++i) {
    Vector word;
    std::memcpy(&word, bytes + i * kVectorBytes, kVectorBytes);
    low += word & 0xffffffffULL;
    high += word >> 32;
  }
  const Vector both = low + high;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kVectorBytes / sizeof(std::uint64_t); ++i) {
    sum += both[i];
  }
  return sum;
}

std::uint64_t sumVectorsBaseline(const std::uint8_t* bytes, std::size_t vectors) {
  return sumVectors(bytes, vectors);
}

using SumFunction = std::uint64_t (*)(const std::uint8_t*, std::size_t);

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::uint64_t sumVectorsAvx2(const std::uint8_t* bytes,
                                                             std::size_t vectors) {
  return sumVectors(bytes, vectors);
}

__attribute__((target("avx512f"))) std::uint64_t sumVectorsAvx512(const std::uint8_t* bytes,
                                                                  std::size_t vectors) {
  return sumVectors(bytes, vectors);
}

SumFunction chooseSum() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return sumVectorsAvx512;
  if (__builtin_cpu_supports("avx2")) return sumVectorsAvx2;
  return sumVectorsBaseline;
}
#else
SumFunction chooseSum() {
  return sumVectorsBaseline;
}
#endif

const SumFunction kSum = chooseSum();

std::uint64_t foldTo32(std::uint64_t sum) {
  return (sum & 0xffffffffU) + (sum >> 32);
}

}  // namespace

std::uint64_t sumBytes(std::span<const std::uint8_t> bytes, std::uint64_t initial) {
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t sum = foldTo32(initial);
  if (const std::size_t vectors = left / kVectorBytes; vectors > 1) {
    sum += kSum(at, vectors);
    at += vectors * kVectorBytes;
    left -= vectors * kVectorBytes;
  }
  for (; left >= 4; at += 4, left -= 4) {
    sum += load<std::uint32_t>(at);
  }
  if (left > 0) {
    std::uint32_t tail = 0;
    std::memcpy(&tail, at, left);
    sum += tail;
  }
  return sum;
}

std::uint16_t foldSum(std::uint64_t sum) {
  sum = foldTo32(foldTo32(sum));
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint64_t pseudoHeaderSum(const std::uint8_t* ip, std::uint8_t protocol, std::uint32_t length) {
  const bool v6 = (ip[0] >> 4) == 6;
  const std::span<const std::uint8_t> addresses =
      v6 ? std::span(ip + 8, 32) : std::span(ip + 12, 8);
  const std::uint64_t sum = sumBytes(addresses);
  return sum + htobe16(protocol) + htobe32(length);
}

void writeIpv4Checksum(std::uint8_t* header, std::size_t length) {
  store<std::uint16_t>(header + 10, 0);
  store(header + 10, finishChecksum(sumBytes({header, length})));
}

void adjustChecksum(std::uint8_t* field, std::uint16_t before, std::uint16_t after) {
  const std::uint64_t sum = std::uint64_t{static_cast<std::uint16_t>(~load<std::uint16_t>(field))} +
                            static_cast<std::uint16_t>(~before) + after;
  store(field, finishChecksum(sum));
}

}  // namespace adit::dataplane::user
