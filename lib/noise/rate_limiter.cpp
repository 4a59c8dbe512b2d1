#include "noise/rate_limiter.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace adit::noise {
namespace {

/// The IPv4 address, or the first 64 bits of the IPv6 address.
std::uint64_t networkOf(const IpAddress& address) {
  std::uint64_t network = 0;
  const auto bytes = address.bytes();
  std::memcpy(&network, bytes.data(), std::min(bytes.size(), sizeof network));
  return network;
}

}  // namespace

RateLimiter::RateLimiter(crypto::RandomSource& random) : buckets_(kCapacity) {
  static_assert(crypto_shorthash_KEYBYTES == sizeof hashKey_);
  static_assert(kCapacity % kWays == 0);
  random.fill(hashKey_);
}

bool RateLimiter::allow(const IpAddress& source, BootTime now) {
  std::array<std::uint8_t, 9> name{};
  const std::uint64_t network = networkOf(source);
  std::memcpy(name.data(), &network, sizeof network);
  name[8] = source.isV6() ? 6 : 4;
  std::uint64_t hash = 0;
  static_assert(crypto_shorthash_BYTES == sizeof hash);
  crypto_shorthash(reinterpret_cast<std::uint8_t*>(&hash), name.data(), name.size(),
                   hashKey_.data());

  const auto ways = std::span(buckets_).subspan(hash % (kCapacity / kWays) * kWays, kWays);
  Bucket* bucket = nullptr;
  for (Bucket& candidate : ways) {
    const bool free = candidate.fullAt <= now;
    if (!free && candidate.network == network && candidate.v6 == source.isV6()) {
      bucket = &candidate;
      break;
    }
    if (free && bucket == nullptr) bucket = &candidate;
  }
  if (bucket == nullptr) return false;

  const BootTime fullAt = std::max(bucket->fullAt, now) + kInterval;
  if (fullAt - now > kBurst * kInterval) return false;
  *bucket = {network, source.isV6(), fullAt};
  return true;
}

}  // namespace adit::noise
