// How many handshakes a source may start while we are under load.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "crypto/random.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"

namespace adit::noise {

/// A token bucket per source (IPv4 address, or /64 of IPv6): 20 per second, bursts of 5, as
/// WireGuard does. The table is allocated once; a source that finds no room is refused, until a
/// bucket near its hash is full again, that is after a quarter of a second at most.
class RateLimiter {
 public:
  static constexpr std::chrono::nanoseconds kInterval =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / 20;
  static constexpr unsigned kBurst = 5;
  /// Sources that can be told apart.
  static constexpr std::size_t kCapacity = 4096;

  /// The hash is keyed, so that nobody can choose sources that collide.
  explicit RateLimiter(crypto::RandomSource& random);

  /// Whether `source` may go on; takes a token if so.
  [[nodiscard]] bool allow(const IpAddress& source, BootTime now);

 private:
  static constexpr std::size_t kWays = 8;

  struct Bucket {
    std::uint64_t network = 0;
    bool v6 = false;
    /// When the bucket is full again; it is free from then on.
    BootTime fullAt{};
  };

  std::array<std::uint8_t, 16> hashKey_;
  std::vector<Bucket> buckets_;
};

}  // namespace adit::noise
