#include "noise/cookie.hpp"

#include <catch2/catch.hpp>

#include "fakes.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;

namespace {

struct Fixture {
  Timing timing;
  SeededRandom random{3};
  crypto::PublicKey key = countingKey(1).publicKey();
  CookieChecker checker{key, random, timing};
  CookieMaker maker{key, timing};
  Endpoint source{*IpAddress::parse("192.0.2.1"), 40000, 0};
  BootTime now = 100s;
  std::vector<std::uint8_t> message = std::vector<std::uint8_t>(148, 0x5a);

  void exchangeCookie() {
    maker.addMacs(message, now);
    const auto reply = checker.reply(message, 77, source, now);
    REQUIRE(maker.consume(reply, now));
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "mac1 covers every byte before it and names the receiver") {
  maker.addMacs(message, now);
  CHECK(checker.mac1Valid(message));
  for (std::size_t i = 0; i < 132; ++i) {
    auto changed = message;
    changed[i] ^= 0x80;
    CHECK_FALSE(checker.mac1Valid(changed));
  }
  CookieChecker other(countingKey(2).publicKey(), random, timing);
  CHECK_FALSE(other.mac1Valid(message));
}

TEST_CASE_METHOD(Fixture, "mac2 is zero without a cookie and valid with one") {
  maker.addMacs(message, now);
  CHECK(std::all_of(message.end() - 16, message.end(), [](auto byte) { return byte == 0; }));
  CHECK_FALSE(checker.mac2Valid(message, source, now));
  exchangeCookie();
  maker.addMacs(message, now);
  CHECK(checker.mac1Valid(message));
  CHECK(checker.mac2Valid(message, source, now));
  message[5] ^= 1;
  CHECK_FALSE(checker.mac2Valid(message, source, now));
}

TEST_CASE_METHOD(Fixture, "a cookie holds for one address and port") {
  exchangeCookie();
  maker.addMacs(message, now);
  Endpoint other = source;
  other.port = 40001;
  CHECK_FALSE(checker.mac2Valid(message, other, now));
  other = source;
  other.address = *IpAddress::parse("192.0.2.2");
  CHECK_FALSE(checker.mac2Valid(message, other, now));
}

TEST_CASE_METHOD(Fixture, "a cookie is used for 115 s and its secret changes after 120 s") {
  exchangeCookie();
  const BootTime start = now;
  now = start + 115s - 1ns;
  maker.addMacs(message, now);
  CHECK(checker.mac2Valid(message, source, now));
  auto old = message;
  now = start + 115s;
  maker.addMacs(message, now);
  CHECK(std::all_of(message.end() - 16, message.end(), [](auto byte) { return byte == 0; }));
  CHECK(checker.mac2Valid(old, source, start + 120s - 1ns));
  CHECK_FALSE(checker.mac2Valid(old, source, start + 120s));
}

TEST_CASE_METHOD(Fixture, "a cookie reply counts once, and only for the last message") {
  CHECK_FALSE(maker.consume(checker.reply(message, 1, source, now), now));
  maker.addMacs(message, now);
  const auto reply = checker.reply(message, 1, source, now);
  CHECK(reply.header.type == ADIT_MESSAGE_COOKIE);
  CHECK(reply.header.suite == 0);
  for (std::size_t i = 0; i < sizeof reply.encrypted_cookie; ++i) {
    auto changed = reply;
    changed.encrypted_cookie[i] ^= 1;
    CHECK_FALSE(maker.consume(changed, now));
  }
  CHECK(maker.consume(reply, now));
  CHECK_FALSE(maker.consume(reply, now));
  message[0] ^= 1;
  maker.addMacs(message, now);
  CHECK_FALSE(maker.consume(reply, now));
}

TEST_CASE_METHOD(Fixture, "a nonce of a cookie reply is never used twice") {
  maker.addMacs(message, now);
  const auto one = checker.reply(message, 1, source, now);
  const auto two = checker.reply(message, 1, source, now);
  CHECK_FALSE(std::equal(std::begin(one.nonce), std::end(one.nonce), std::begin(two.nonce)));
}
