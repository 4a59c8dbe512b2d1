#include "crypto/hash.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "crypto/hex.hpp"

using namespace adit;
using namespace adit::crypto;
using test::toHex;

namespace {

Bytes text(std::string_view value) {
  return {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()};
}

}  // namespace

TEST_CASE("BLAKE2s agrees with RFC 7693 appendix B") {
  CHECK(toHex(blake2s({text("abc")})) ==
        "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982");
  CHECK(toHex(blake2s({})) == "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9");
}

TEST_CASE("BLAKE2s hashes the concatenation of its parts") {
  CHECK(blake2s({text("a"), {}, text("bc")}) == blake2s({text("abc")}));
}

// The expected values of this file's keyed hashes and key derivations were computed with an
// implementation that shares no code with OpenSSL (Python's hashlib and hmac).

TEST_CASE("Keyed BLAKE2s gives 16 bytes for keys of every length") {
  const auto key = test::counting<32>();
  const auto message = test::counting<255>();
  CHECK(toHex(keyedBlake2s(key, {message})) == "cd075928ab7e6883e697fe7fd3ac43ee");
  CHECK(toHex(keyedBlake2s(key, {})) == "9536f9b267655743dee97b8a670f9f53");
  CHECK(toHex(keyedBlake2s(text("k"), {text("abc")})) == "f335237426ff5582d0c607ef240684b5");
  CHECK(toHex(keyedBlake2s(Bytes(key).first(16), {Bytes(message).first(64)})) ==
        "dd55c51c98f8ab96ed272882941f0b6a");
  CHECK(keyedBlake2s(key, {Bytes(message).first(7), Bytes(message).subspan(7)}) ==
        keyedBlake2s(key, {message}));
}

TEST_CASE("Keyed BLAKE2s refuses keys that it does not have") {
  const auto tooLong = test::counting<33>();
  CHECK_THROWS_AS(keyedBlake2s({}, {}), std::invalid_argument);
  CHECK_THROWS_AS(keyedBlake2s(tooLong, {}), std::invalid_argument);
}

TEST_CASE("A reused keyed BLAKE2s starts afresh with every message") {
  const auto key = test::counting<32>();
  const auto message = test::counting<255>();
  KeyedBlake2s mac(key);
  for (std::size_t length = 0; length <= message.size(); length += 5) {
    const Bytes part = Bytes(message).first(length);
    CHECK(mac(part) == keyedBlake2s(key, {part}));
  }
}

TEST_CASE("The key derivation gives one, two or three outputs") {
  const Secret<32> chainingKey(test::counting<32>());
  const Bytes input = text("input keying material");
  const std::string expected[] = {
      "d49ec1ae587b690ec2d4c38d1802dd052d26ab3338bc0b665629ece5dfc61ae1",
      "46d705e3e5cbc140bbfdf613d3733a0c3905bf21d5e1b34213c5a2a883b10553",
      "17e6966e3a04136a899866a1650d1a323fdcdcb19956e0e97c6be5291850b302"};
  Secret<32> one;
  Secret<32> two;
  Secret<32> three;

  kdf(chainingKey, input, one);
  CHECK(toHex(one.bytes()) == expected[0]);
  kdf(chainingKey, input, one, two);
  CHECK(toHex(one.bytes()) == expected[0]);
  CHECK(toHex(two.bytes()) == expected[1]);
  kdf(chainingKey, input, one, two, three);
  CHECK(toHex(one.bytes()) == expected[0]);
  CHECK(toHex(two.bytes()) == expected[1]);
  CHECK(toHex(three.bytes()) == expected[2]);

  kdf(chainingKey, {}, one);
  CHECK(toHex(one.bytes()) == "7a38c34bf2b8738d7374ca77c44ecb309a11d2b2528304fa86052c365e722624");
}

TEST_CASE("The chaining key may be replaced in place") {
  Secret<32> chainingKey(test::counting<32>());
  Secret<32> expected;
  Secret<32> expectedKey;
  kdf(chainingKey, text("x"), expected, expectedKey);
  Secret<32> key;
  kdf(chainingKey, text("x"), chainingKey, key);
  CHECK(chainingKey == expected);
  CHECK(key == expectedKey);
}
