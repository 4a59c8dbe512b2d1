#include "noise/rate_limiter.hpp"

#include <catch2/catch.hpp>

#include "fakes.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;

namespace {

IpAddress address(std::string_view text) {
  return *IpAddress::parse(text);
}

unsigned allowed(RateLimiter& limiter, const IpAddress& source, BootTime now, unsigned tries) {
  unsigned count = 0;
  for (unsigned i = 0; i < tries; ++i) {
    count += limiter.allow(source, now) ? 1U : 0U;
  }
  return count;
}

}  // namespace

TEST_CASE("a source may send a burst of five, then twenty per second") {
  SeededRandom random(1);
  RateLimiter limiter(random);
  const auto source = address("192.0.2.1");
  BootTime now = 100s;
  CHECK(allowed(limiter, source, now, 100) == 5);
  now += 50ms;
  CHECK(allowed(limiter, source, now, 100) == 1);
  unsigned inTenSeconds = 0;
  for (int i = 0; i < 10000; ++i) {
    now += 1ms;
    inTenSeconds += allowed(limiter, source, now, 1);
  }
  CHECK(inTenSeconds == 200);
  now += 1h;
  CHECK(allowed(limiter, source, now, 100) == 5);
}

TEST_CASE("sources are IPv4 addresses and IPv6 networks of 64 bits") {
  SeededRandom random(1);
  RateLimiter limiter(random);
  const BootTime now = 100s;
  CHECK(allowed(limiter, address("192.0.2.1"), now, 9) == 5);
  CHECK(allowed(limiter, address("192.0.2.2"), now, 9) == 5);
  CHECK(allowed(limiter, address("2001:db8::1"), now, 9) == 5);
  CHECK(allowed(limiter, address("2001:db8::2:0:0:1"), now, 9) == 0);
  CHECK(allowed(limiter, address("2001:db8:0:1::1"), now, 9) == 5);
}

TEST_CASE("more sources than the table holds are refused, not stored, and forgotten in time") {
  SeededRandom random(1);
  RateLimiter limiter(random);
  BootTime now = 100s;
  unsigned passed = 0;
  for (std::uint32_t i = 0; i < 4 * RateLimiter::kCapacity; ++i) {
    const std::array<std::uint8_t, 4> bytes{10, static_cast<std::uint8_t>(i >> 16),
                                            static_cast<std::uint8_t>(i >> 8),
                                            static_cast<std::uint8_t>(i)};
    passed += limiter.allow(IpAddress::fromV4(bytes), now) ? 1U : 0U;
  }
  CHECK(passed <= RateLimiter::kCapacity);
  CHECK(passed > RateLimiter::kCapacity / 2);
  now += RateLimiter::kInterval;
  CHECK(limiter.allow(address("192.0.2.1"), now));
}

TEST_CASE("where sources can be made up, a full table lets everybody pass, and ports count apart") {
  SeededRandom random(1);
  RateLimiter limiter(random, RateLimiter::WhenFull::Allow);
  const BootTime now = 100s;
  const Endpoint source{address("192.0.2.1"), 1000, 0};
  unsigned passed = 0;
  for (int i = 0; i < 9; ++i) {
    passed += limiter.allow(source, now) ? 1U : 0U;
  }
  CHECK(passed == 5);
  CHECK(limiter.allow(Endpoint{source.address, 1001, 0}, now));
  for (std::uint32_t i = 0; i < 4 * RateLimiter::kCapacity; ++i) {
    const std::array<std::uint8_t, 4> bytes{10, static_cast<std::uint8_t>(i >> 16),
                                            static_cast<std::uint8_t>(i >> 8),
                                            static_cast<std::uint8_t>(i)};
    REQUIRE(limiter.allow(Endpoint{IpAddress::fromV4(bytes), 1000, 0}, now));
  }
}
