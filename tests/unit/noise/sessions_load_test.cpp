// Under load: cookies, hysteresis, and the limit per source.
#include <catch2/catch.hpp>
#include <cstring>

#include "noise/cookie.hpp"
#include "simulator.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;

namespace {

std::uint64_t total(const Side& side) {
  std::uint64_t sum = 0;
  for (const auto count : side.sessions->drops()) {
    sum += count;
  }
  return sum;
}

}  // namespace

TEST_CASE("under load a cookie is demanded, and a legitimate peer still gets through") {
  World world;
  world.b.backlog = world.timing.loadBacklog;
  world.a.plane->sendApp();
  world.runFor(1s);
  CHECK(world.b.responses.empty());
  CHECK(world.b.cookieReplies.size() == 1);
  CHECK(world.b.drops(HandshakeDrop::Mac2Missing) == 1);
  CHECK(total(world.a) == 0);
  world.runFor(5s);
  CHECK(world.b.responses.size() == 1);
  CHECK(world.b.plane->delivered == 1);
  CHECK(world.violations.empty());
}

TEST_CASE("an initiator under load demands cookies of responses too") {
  World world;
  world.a.backlog = world.timing.loadBacklog;
  world.a.plane->sendApp();
  world.runFor(1s);
  CHECK(world.a.cookieReplies.size() == 1);
  CHECK(world.a.plane->installed.empty());
  CHECK(total(world.b) == 0);
  world.runFor(5s);
  CHECK(world.b.plane->delivered == 1);
  CHECK(world.violations.empty());
}

TEST_CASE("the demand ends one second after the backlog") {
  World world;
  const Datagram garbage(148, 1);
  const auto poke = [&](std::size_t backlog) {
    world.b.sessions->handshake(garbage, world.a.endpoint, world.b.local, backlog);
  };
  poke(world.timing.loadBacklog - 1);
  CHECK_FALSE(world.b.sessions->underLoad());
  poke(world.timing.loadBacklog);
  CHECK(world.b.sessions->underLoad());
  poke(0);
  world.runFor(999ms);
  CHECK(world.b.sessions->underLoad());
  world.runFor(1ms);
  CHECK_FALSE(world.b.sessions->underLoad());
  world.a.plane->sendApp();
  world.runFor(1s);
  CHECK(world.b.plane->delivered == 1);
}

TEST_CASE("a cookie for one address does not open another") {
  World world;
  world.b.backlog = world.timing.loadBacklog;
  world.a.plane->sendApp();
  world.runFor(6s);
  REQUIRE(world.b.responses.size() == 1);
  const Endpoint elsewhere{world.a.endpoint.address, 4444, 0};
  const auto before = world.b.drops(HandshakeDrop::Mac2Missing);
  world.b.sessions->handshake(world.a.initiations.back(), elsewhere, world.b.local, 100);
  CHECK(world.b.drops(HandshakeDrop::Mac2Missing) == before + 1);
  // The cookie reply goes to where the datagram came from, which the simulator notes.
  CHECK(world.violations == std::vector<std::string>{"B: reply to a wrong address"});
}

TEST_CASE("with a valid cookie a source still passes no more than its rate") {
  World world;
  world.b.backlog = world.timing.loadBacklog;
  world.a.plane->sendApp();
  world.runFor(6s);
  REQUIRE(world.b.responses.size() == 1);
  // The accepted initiation again and again: the cookie is right, the limiter stops it before
  // any key agreement.
  const auto replayed = world.b.drops(HandshakeDrop::Replayed);
  for (int i = 0; i < 100; ++i) {
    world.b.sessions->handshake(world.a.initiations.back(), world.a.endpoint, world.b.local, 100);
  }
  CHECK(world.b.drops(HandshakeDrop::Replayed) - replayed == 5);
  CHECK(world.b.drops(HandshakeDrop::RateLimited) == 95);
}

TEST_CASE("cookie replies to one source are limited, and made-up sources keep nobody from his") {
  World world;
  world.b.backlog = world.timing.loadBacklog;
  world.a.plane->sendApp();
  const Datagram first = world.a.initiations.front();
  Sessions& sessions = *world.b.sessions;
  const auto flood = [&](const Endpoint& source, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      sessions.handshake(first, source, world.b.local, 1000);
    }
  };
  flood({*IpAddress::parse("198.51.100.1"), 5, 0}, 100);
  CHECK(world.b.cookieReplies.size() == 5);
  CHECK(world.b.drops(HandshakeDrop::RateLimited) == 95);
  // The peer's address but not its port, and more sources than the table holds.
  flood({world.a.endpoint.address, 5, 0}, 100);
  for (std::uint32_t i = 0; i < 3 * RateLimiter::kCapacity; ++i) {
    const std::array<std::uint8_t, 4> bytes{10, static_cast<std::uint8_t>(i >> 16),
                                            static_cast<std::uint8_t>(i >> 8),
                                            static_cast<std::uint8_t>(i)};
    flood({IpAddress::fromV4(bytes), 5, 0}, 1);
  }
  const auto replies = world.b.cookieReplies.size();
  world.runFor(100ms);
  CHECK(world.b.cookieReplies.size() == replies + 1);
  CHECK(world.a.initiations.size() == 1);
}

TEST_CASE("cookie replies that nobody asked for change nothing") {
  World world;
  world.b.backlog = world.timing.loadBacklog;
  world.a.plane->sendApp();
  world.runFor(1s);
  REQUIRE(world.b.cookieReplies.size() == 1);
  auto cookie = world.b.cookieReplies.front();
  world.a.sessions->handshake(cookie, world.b.endpoint, world.a.local, 0);
  CHECK(world.a.drops(HandshakeDrop::BadCookie) == 1);
  cookie[4] ^= 1;
  world.a.sessions->handshake(cookie, world.b.endpoint, world.a.local, 0);
  CHECK(world.a.drops(HandshakeDrop::UnknownIndex) == 1);
  world.runFor(5s);
  CHECK(world.b.plane->delivered == 1);
}

TEST_CASE("the tunnel comes up and renews under a constant load") {
  World world;
  world.a.backlog = 1000;
  world.b.backlog = 1000;
  world.loss = 0.05;
  world.traffic(world.a, 1s, 900s);
  world.runFor(900s);
  CHECK(world.b.plane->delivered > 700);
  CHECK(world.violations.empty());
}
