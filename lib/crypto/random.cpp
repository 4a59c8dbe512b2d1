#include "crypto/random.hpp"

#include "crypto/libraries.hpp"

namespace adit::crypto {

void SystemRandom::fill(std::span<std::uint8_t> out) {
  ensureSodium();
  randombytes_buf(out.data(), out.size());
}

}  // namespace adit::crypto
