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

RateLimiter::RateLimiter(crypto::RandomSource& random, WhenFull whenFull)
    : whenFull_(whenFull), buckets_(kCapacity) {
  static_assert(crypto_shorthash_KEYBYTES == sizeof hashKey_);
  static_assert(kCapacity % kWays == 0);
  random.fill(hashKey_);
}

bool RateLimiter::allow(const IpAddress& source, BootTime now) {
  return take({networkOf(source), 0, source.isV6()}, now);
}

bool RateLimiter::allow(const Endpoint& source, BootTime now) {
  return take({networkOf(source.address), source.port, source.address.isV6()}, now);
}

bool RateLimiter::take(const Source& source, BootTime now) {
  std::array<std::uint8_t, 11> name{};
  std::memcpy(name.data(), &source.network, sizeof source.network);
  std::memcpy(name.data() + 8, &source.port, sizeof source.port);
  name[10] = source.v6 ? 6 : 4;
  std::uint64_t hash = 0;
  static_assert(crypto_shorthash_BYTES == sizeof hash);
  crypto_shorthash(reinterpret_cast<std::uint8_t*>(&hash), name.data(), name.size(),
                   hashKey_.data());

  const auto ways = std::span(buckets_).subspan(hash % (kCapacity / kWays) * kWays, kWays);
  Bucket* bucket = nullptr;
  for (Bucket& candidate : ways) {
    const bool free = candidate.fullAt <= now;
    if (!free && candidate.source == source) {
      bucket = &candidate;
      break;
    }
    if (free && bucket == nullptr) bucket = &candidate;
  }
  if (bucket == nullptr) return whenFull_ == WhenFull::Allow;

  const BootTime fullAt = std::max(bucket->fullAt, now) + kInterval;
  if (fullAt - now > kBurst * kInterval) return false;
  *bucket = {source, fullAt};
  return true;
}

}  // namespace adit::noise
