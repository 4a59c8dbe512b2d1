// ICMP errors to the sender of a packet that cannot go anywhere (RFC 792, RFC 4443).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "util/clock.hpp"

namespace adit::dataplane::user {

/// Room for the longest reply: an IPv6 error is at most the minimum MTU.
using IcmpBuffer = std::array<std::uint8_t, 1280>;

/// Writes "host unreachable" (IPv4) or "address unreachable" (IPv6) about `packet` into `buffer`,
/// from the packet's destination to its source. Empty where an error must not be sent: about ICMP
/// errors, fragments but the first, and from or to addresses that name no single host.
std::span<const std::uint8_t> buildUnreachable(std::span<const std::uint8_t> packet,
                                               IcmpBuffer& buffer);

/// Limits how many errors are sent: a token bucket.
class IcmpLimiter {
 public:
  static constexpr int kBurst = 16;
  static constexpr std::chrono::milliseconds kInterval{20};

  /// True if one may be sent now.
  bool take(BootTime now);

 private:
  BootTime refilled_{};
  std::int64_t tokens_ = kBurst;
};

}  // namespace adit::dataplane::user
