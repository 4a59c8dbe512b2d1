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
/// WireGuard does. The table is allocated once. A source finds no room while the buckets near its
/// hash are in use, that is for a quarter of a second at most.
class RateLimiter {
 public:
  /// What happens to a source that finds no room. Refuse where sources are proven; where anybody
  /// can make them up, that would let a flood of made-up ones shut everybody else out.
  enum class WhenFull : std::uint8_t { Refuse, Allow };

  static constexpr std::chrono::nanoseconds kInterval =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / 20;
  static constexpr unsigned kBurst = 5;
  /// Sources that can be told apart.
  static constexpr std::size_t kCapacity = 4096;

  /// The hash is keyed, so that nobody can choose sources that collide.
  explicit RateLimiter(crypto::RandomSource& random, WhenFull whenFull = WhenFull::Refuse);

  /// Whether `source` may go on; takes a token if so.
  [[nodiscard]] bool allow(const IpAddress& source, BootTime now);
  /// The same for each port of it: who makes up the source of another must know its port to take
  /// its tokens.
  [[nodiscard]] bool allow(const Endpoint& source, BootTime now);

 private:
  static constexpr std::size_t kWays = 8;

  struct Source {
    std::uint64_t network = 0;
    std::uint16_t port = 0;
    bool v6 = false;
    friend bool operator==(const Source&, const Source&) = default;
  };

  struct Bucket {
    Source source;
    /// When the bucket is full again; it is free from then on.
    BootTime fullAt{};
  };

  bool take(const Source& source, BootTime now);

  const WhenFull whenFull_;
  std::array<std::uint8_t, 16> hashKey_;
  std::vector<Bucket> buckets_;
};

}  // namespace adit::noise
