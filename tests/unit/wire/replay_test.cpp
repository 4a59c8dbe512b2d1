#include "wire/replay.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

namespace {

constexpr std::uint64_t kWindow = ADIT_REPLAY_WINDOW;

/// The window's definition, without its cleverness.
class Oracle {
 public:
  bool accept(std::uint64_t counter) {
    if (any_ && counter <= greatest_ && greatest_ - counter >= kWindow) {
      return false;
    }
    if (!seen_.insert(counter).second) {
      return false;
    }
    greatest_ = any_ ? std::max(greatest_, counter) : counter;
    any_ = true;
    return true;
  }
  [[nodiscard]] std::uint64_t greatest() const { return greatest_; }

 private:
  bool any_ = false;
  std::uint64_t greatest_ = 0;
  std::set<std::uint64_t> seen_;
};

/// accept(), after seeing that check() tells the same.
bool accept(adit_replay& window, std::uint64_t counter) {
  const bool foretold = adit_replay_check(&window, counter);
  const bool accepted = adit_replay_accept(&window, counter);
  REQUIRE(foretold == accepted);
  return accepted;
}

}  // namespace

TEST_CASE("The replay window holds 8128 counters in a kilobyte") {
  CHECK(kWindow == 8128);
  CHECK(sizeof(adit_replay) == 1032);
}

TEST_CASE("Each counter is accepted once, in order or not") {
  adit_replay window{};
  for (std::uint64_t counter = 0; counter < 20000; ++counter) {
    REQUIRE(accept(window, counter));
    REQUIRE_FALSE(accept(window, counter));
  }
  adit_replay reversed{};
  REQUIRE(accept(reversed, kWindow - 1));
  for (std::uint64_t counter = kWindow - 1; counter-- > 0;) {
    REQUIRE(accept(reversed, counter));
    REQUIRE_FALSE(accept(reversed, counter));
  }
  CHECK_FALSE(accept(reversed, kWindow - 1));
}

TEST_CASE("The edge of the window is exact, wherever in a word the greatest counter is") {
  for (std::uint64_t greatest = 1000000; greatest < 1000000 + 130; ++greatest) {
    adit_replay window{};
    REQUIRE(accept(window, greatest));
    CHECK_FALSE(accept(window, greatest - kWindow));
    CHECK(accept(window, greatest - kWindow + 1));
    CHECK_FALSE(accept(window, greatest - kWindow + 1));
    CHECK_FALSE(accept(window, 0));
  }
}

TEST_CASE("A jump forgets exactly what it passes") {
  const std::uint64_t jumps[] = {1,           63,        64,          65,         4096,
                                 kWindow - 1, kWindow,   kWindow + 1, 8191,       8192,
                                 8193,        8192 + 64, 2 * 8192,    1ULL << 40, ~0ULL - 20000};
  for (const std::uint64_t jump : jumps) {
    CAPTURE(jump);
    adit_replay window{};
    Oracle oracle;
    for (std::uint64_t counter = 0; counter < 9000; ++counter) {
      accept(window, counter);
      oracle.accept(counter);
    }
    const std::uint64_t target = 8999 + jump;
    REQUIRE(accept(window, target) == oracle.accept(target));
    for (std::uint64_t back = 0; back < 8300; ++back) {
      const std::uint64_t counter = target - std::min(back, target);
      REQUIRE(accept(window, counter) == oracle.accept(counter));
    }
  }
}

TEST_CASE("The greatest counters of all do not wrap") {
  adit_replay window{};
  CHECK(accept(window, ~0ULL - 1));
  CHECK(accept(window, ~0ULL));
  CHECK_FALSE(accept(window, ~0ULL));
  CHECK_FALSE(accept(window, 0));
  CHECK(accept(window, ~0ULL - kWindow + 1));
  CHECK_FALSE(accept(window, ~0ULL - kWindow));
}

TEST_CASE("Checking changes nothing") {
  adit_replay window{};
  REQUIRE(accept(window, 100));
  const adit_replay before = window;
  for (const std::uint64_t counter : {0ULL, 99ULL, 100ULL, 101ULL, 1ULL << 50}) {
    static_cast<void>(adit_replay_check(&window, counter));
  }
  CHECK(before.greatest == window.greatest);
  CHECK(std::equal(std::begin(before.seen), std::end(before.seen), std::begin(window.seen)));
}

TEST_CASE("The window agrees with a set on random sequences") {
  std::mt19937_64 random(Catch::rngSeed());
  for (int round = 0; round < 60; ++round) {
    adit_replay window{};
    Oracle oracle;
    // Some sequences stay inside the window, some often leave it on either side.
    const std::uint64_t spread =
        std::vector<std::uint64_t>{4, 100, 7000, 9000, 30000}[random() % 5];
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t offset = random() % (2 * spread + 1);
      const std::uint64_t base = oracle.greatest() + offset;
      const std::uint64_t counter = base < spread ? 0 : base - spread;
      REQUIRE(accept(window, counter) == oracle.accept(counter));
    }
  }
}
