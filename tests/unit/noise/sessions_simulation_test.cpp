// Long runs over bad networks, by seeds. What must hold at every step is in the simulator.
#include <catch2/catch.hpp>

#include "simulator.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;

namespace {

/// A network drawn from `seed`, for five minutes; then a clean one, on which traffic must flow.
void run(std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(draw);
  };
  const auto milliseconds = [&](double high) {
    return std::chrono::milliseconds(static_cast<int>(uniform(1, high)));
  };
  World world(seed);
  world.loss = uniform(0, 0.5);
  world.duplicate = uniform(0, 0.5);
  world.delay = milliseconds(300);
  world.delayJitter = milliseconds(2000);
  for (Side* side : {&world.a, &world.b}) {
    if (uniform(0, 1) < 0.3) side->backlog = 1000;
    if (uniform(0, 1) < 0.2) side->policy.extensions = false;
    side->speeds = {static_cast<std::uint32_t>(uniform(100, 2000)),
                    static_cast<std::uint32_t>(uniform(100, 2000)),
                    static_cast<std::uint32_t>(uniform(100, 2000))};
    side->restart();
    if (uniform(0, 1) < 0.5) side->plane->confirmDelay = milliseconds(200);
    world.traffic(*side, milliseconds(3000), 300s);
    const auto when = world.now + milliseconds(300'000);
    const double what = uniform(0, 1);
    world.at(when, [side, what] {
      if (what < 0.3) {
        side->clock.real -= std::chrono::hours(24 * 30);
        side->restart();
      } else if (what < 0.5) {
        side->sessions->dropAllSessions();
      } else if (what < 0.6) {
        side->plane->refuse = true;
      } else if (what < 0.8) {
        side->sessions->startHandshake(Side::kPeer);
      }
    });
  }
  world.runFor(300s);

  world.loss = 0;
  world.duplicate = 0;
  world.delayJitter = 0ms;
  world.a.backlog = 0;
  world.b.backlog = 0;
  // What a dead session or a hold-off may need at worst.
  world.traffic(world.a, 1s, 1200s);
  world.traffic(world.b, 1s, 1200s);
  world.runFor(1000s);
  const auto atA = world.a.plane->delivered;
  const auto atB = world.b.plane->delivered;
  world.runFor(100s);
  CHECK(world.a.plane->delivered - atA >= 99);
  CHECK(world.b.plane->delivered - atB >= 99);
  CHECK(world.a.plane->currentSuite() == world.b.plane->currentSuite());

  const auto offerOf = [](const Side& side) {
    return SuiteOffer{
        side.policy.extensions ? SuiteSet::all() : SuiteSet::only(crypto::Suite::ChaCha20Poly1305),
        side.speeds};
  };
  if (world.a.policy.extensions && world.b.policy.extensions) {
    CHECK(world.a.plane->currentSuite() == chooseSuite(offerOf(world.a), offerOf(world.b)));
  } else {
    CHECK(world.a.plane->currentSuite() == crypto::Suite::ChaCha20Poly1305);
  }
  for (const auto& what : world.violations) {
    UNSCOPED_INFO(what);
  }
  CHECK(world.violations.empty());
}

}  // namespace

TEST_CASE("any bad network: no rule is broken, and traffic flows once it is clean") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    run(seed);
  }
}
