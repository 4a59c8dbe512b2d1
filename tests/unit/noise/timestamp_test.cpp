#include "noise/timestamp.hpp"

#include <catch2/catch.hpp>

#include "fakes.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;

namespace {

Tai64n mustNext(TimestampSource& source) {
  const auto label = source.next();
  REQUIRE(label);
  return *label;
}

}  // namespace

TEST_CASE("a TAI64N label is 2^62 + 10 + Unix seconds, big-endian") {
  const auto label = Tai64n::fromUnix(1s + std::chrono::nanoseconds(1 << 24));
  CHECK(toHex(label.toBytes()) == "400000000000000b01000000");
  CHECK(Tai64n::fromBytes(label.toBytes()) == label);
  CHECK(Tai64n::fromUnix(-5s) == Tai64n::fromUnix(0s));
}

TEST_CASE("labels are rounded to 2^24 ns and still increase strictly") {
  Tai64n label = Tai64n::fromUnix(7s + 999'999'999ns);
  CHECK(label.nanoseconds % (1U << 24) == 0);
  for (int i = 0; i < 200; ++i) {
    const Tai64n next = label.next();
    REQUIRE(next > label);
    REQUIRE(next.nanoseconds < 1'000'000'000);
    REQUIRE(next.nanoseconds % (1U << 24) == 0);
    label = next;
  }
  CHECK(Tai64n::fromUnix(10s).since(Tai64n::fromUnix(4s)) == 6s);
  CHECK(Tai64n::fromUnix(4s).since(Tai64n::fromUnix(10s)) == 0s);
  CHECK(Tai64n{~0ULL, 0}.since(Tai64n{}) > 0s);
}

TEST_CASE("case 28: own timestamps never go backwards when the clock does") {
  FakeClock clock;
  MemoryStore store;
  TimestampSource source(clock, store, std::nullopt);
  Tai64n last = mustNext(source);
  CHECK(last == Tai64n::fromUnix(clock.real));
  const std::vector<std::chrono::nanoseconds> steps{0s, 1ms, -1209600s, 1s, -1935360000s, 50ms};
  for (const auto step : steps) {
    clock.real += step;
    const Tai64n label = mustNext(source);
    CHECK(label > last);
    last = label;
  }
}

TEST_CASE("case 28: after a reboot with an old clock the labels continue above the stored mark") {
  MemoryStore store;
  Tai64n last{};
  for (int boot = 0; boot < 5; ++boot) {
    FakeClock clock;
    clock.real -= boot * std::chrono::hours(24 * 120);
    TimestampSource source(clock, store, store.mark);
    for (int i = 0; i < 300; ++i) {
      const Tai64n label = mustNext(source);
      REQUIRE(label > last);
      last = label;
    }
  }
}

TEST_CASE("case 28: a one-time jump into the future does not lock the labels") {
  FakeClock clock;
  MemoryStore store;
  TimestampSource source(clock, store, std::nullopt);
  clock.real += std::chrono::hours(24 * 365 * 50);
  const Tai64n future = mustNext(source);
  clock.real -= std::chrono::hours(24 * 365 * 50);
  TimestampSource restarted(clock, store, store.mark);
  CHECK(mustNext(restarted) > future);
}

TEST_CASE("the mark is stored before a label above it is used, at most ten minutes ahead") {
  FakeClock clock;
  MemoryStore store;
  TimestampSource source(clock, store, std::nullopt);
  for (int i = 0; i < 2000; ++i) {
    const Tai64n label = mustNext(source);
    REQUIRE(store.mark);
    REQUIRE(label <= *store.mark);
    REQUIRE(store.mark->since(Tai64n::fromUnix(clock.real)) <= 10min);
    clock.advance(5s);
  }
  // 10000 s of one initiation every five seconds.
  CHECK(store.saves <= 18);
}

TEST_CASE("quick restarts do not push the labels far ahead of the clock") {
  FakeClock clock;
  MemoryStore store;
  for (int i = 0; i < 100; ++i) {
    TimestampSource source(clock, store, store.mark);
    (void)mustNext(source);
  }
  CHECK(store.mark->since(Tai64n::fromUnix(clock.real)) < 15min);
}

TEST_CASE("a clock far behind the labels spares the flash too") {
  FakeClock clock;
  MemoryStore store;
  store.mark = Tai64n::fromUnix(clock.real + std::chrono::hours(1000));
  TimestampSource source(clock, store, store.mark);
  for (int i = 0; i < 1000; ++i) {
    (void)mustNext(source);
  }
  CHECK(store.saves < 12);
}

TEST_CASE("without a stored mark no label is given out") {
  FakeClock clock;
  MemoryStore store;
  store.broken = true;
  TimestampSource source(clock, store, std::nullopt);
  CHECK_FALSE(source.next());
  store.broken = false;
  CHECK(source.next());
}
