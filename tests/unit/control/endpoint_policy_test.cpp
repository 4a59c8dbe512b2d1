// Cases 24, 29 and 30: names without an address, names that move, two families.
#include "control/endpoint_policy.hpp"

#include <catch2/catch.hpp>

namespace adit::control {
namespace {

using namespace std::chrono_literals;

Endpoint endpoint(const char* text) {
  return Endpoint::parse(text).value();
}

const config::EndpointName kName{
    .host = "vps.example.net", .port = 51820, .zone = {}, .literal = {}};
const Endpoint kV4 = endpoint("192.0.2.10:51820");
const Endpoint kV4Moved = endpoint("192.0.2.77:51820");
const Endpoint kV6 = endpoint("[2001:db8::10]:51820");
const tl::unexpected<Error> kNoSuchName = fail("cannot resolve vps.example.net");

struct Fixture {
  bool hasV6 = true;
  EndpointPolicy policy{[this](const IpAddress& address) { return hasV6 || address.isV4(); }};

  std::optional<Endpoint> resolve(const Result<std::vector<Endpoint>>& result, BootTime now) {
    policy.lookupStarted();
    return policy.lookupFinished(result, now);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "case 24: a name without an address is looked up with back-off") {
  policy.configure(kName);
  REQUIRE(policy.wantsLookup(0s));
  REQUIRE(policy.unresolved());

  REQUIRE_FALSE(resolve(kNoSuchName, 0s));
  CHECK(policy.unresolved());
  CHECK(policy.lastError() == "cannot resolve vps.example.net");
  CHECK_FALSE(policy.wantsLookup(4s));
  CHECK(policy.nextLookup() == BootTime(5s));

  REQUIRE_FALSE(resolve(kNoSuchName, 5s));
  CHECK(policy.nextLookup() == BootTime(15s));
  for (int i = 0; i < 20; ++i) {
    resolve(kNoSuchName, 100s);
  }
  CHECK(policy.nextLookup() == BootTime(160s));

  CHECK(resolve(std::vector{kV4}, 160s) == kV4);
  CHECK_FALSE(policy.unresolved());
  CHECK(policy.lastError().empty());
}

TEST_CASE_METHOD(Fixture, "no second look-up while one is under way") {
  policy.configure(kName);
  policy.lookupStarted();
  CHECK_FALSE(policy.wantsLookup(1000s));
  CHECK_FALSE(policy.nextLookup());
}

TEST_CASE_METHOD(Fixture, "case 29: a name is looked up again when the peer has fallen silent") {
  policy.configure(kName);
  resolve(std::vector{kV4}, 0s);
  policy.handshakeCompleted(1s);
  CHECK_FALSE(policy.wantsLookup(1000s));  // idle, not silent

  policy.initiationSent(121s);
  policy.initiationSent(126s);
  CHECK_FALSE(policy.wantsLookup(126s));  // the session is still healthy
  policy.initiationSent(182s);
  policy.initiationSent(187s);
  REQUIRE(policy.wantsLookup(187s));
  CHECK(resolve(std::vector{kV4Moved}, 188s) == kV4Moved);
}

TEST_CASE_METHOD(Fixture, "case 29: the working address stays when DNS fails or repeats it") {
  policy.configure(kName);
  resolve(std::vector{kV4}, 0s);
  CHECK_FALSE(resolve(kNoSuchName, 500s));
  CHECK_FALSE(resolve(std::vector{kV4Moved, kV4}, 600s));
}

TEST_CASE_METHOD(Fixture,
                 "case 29: a learned endpoint is not overwritten while handshakes succeed") {
  const Endpoint roamed = endpoint("198.51.100.9:4000");
  policy.configure(kName);
  resolve(std::vector{kV4}, 0s);
  policy.handshakeCompleted(10s);
  policy.endpointChanged(roamed);
  CHECK_FALSE(resolve(std::vector{kV4}, 20s));
  CHECK(resolve(std::vector{kV4}, 10s + 3min + 1s) == kV4);
}

TEST_CASE_METHOD(Fixture, "case 30: a family without a route is skipped at once") {
  hasV6 = false;
  policy.configure(kName);
  CHECK(resolve(std::vector{kV6, kV4}, 0s) == kV4);
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(policy.initiationSent(BootTime(5s * i)));
  }
}

TEST_CASE_METHOD(Fixture, "case 30: every address gets its turn after two unanswered handshakes") {
  policy.configure(kName);
  CHECK(resolve(std::vector{kV6, kV4}, 0s) == kV6);
  CHECK_FALSE(policy.initiationSent(0s));
  CHECK_FALSE(policy.initiationSent(5s));
  CHECK(policy.initiationSent(10s) == kV4);
  CHECK_FALSE(policy.initiationSent(15s));
  CHECK_FALSE(policy.initiationSent(20s));
  CHECK(policy.initiationSent(25s) == kV6);
}

TEST_CASE_METHOD(Fixture, "case 30: the family that worked comes first in the next look-up") {
  policy.configure(kName);
  resolve(std::vector{kV6, kV4}, 0s);
  policy.initiationSent(0s);
  policy.initiationSent(5s);
  REQUIRE(policy.initiationSent(10s) == kV4);
  policy.handshakeCompleted(11s);
  CHECK(resolve(std::vector{kV6, kV4Moved}, 1000s) == kV4Moved);
}

TEST_CASE_METHOD(Fixture, "when no address has a route all are tried") {
  EndpointPolicy lost([](const IpAddress&) { return false; });
  lost.configure(kName);
  lost.lookupStarted();
  CHECK(lost.lookupFinished(std::vector{kV6, kV4}, 0s) == kV6);
}

TEST_CASE_METHOD(Fixture, "the same name again changes nothing, another one starts anew") {
  policy.configure(kName);
  resolve(std::vector{kV4}, 0s);
  policy.configure(kName);
  CHECK_FALSE(policy.wantsLookup(0s));
  config::EndpointName other = kName;
  other.port = 4;
  policy.configure(other);
  CHECK(policy.wantsLookup(0s));
  CHECK(policy.unresolved());
}

}  // namespace adit::control
