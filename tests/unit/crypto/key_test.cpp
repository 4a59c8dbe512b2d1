#include "crypto/key.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "crypto/hex.hpp"

using namespace adit;
using namespace adit::crypto;
using test::arrayFromHex;
using test::toHex;

namespace {

Secret<32> secretFromHex(std::string_view text) {
  return Secret<32>(arrayFromHex<32>(text));
}
PublicKey publicFromHex(std::string_view text) {
  return PublicKey{arrayFromHex<32>(text)};
}

/// Fills with one repeated byte.
class FixedRandom final : public RandomSource {
 public:
  explicit FixedRandom(std::uint8_t byte) : byte_(byte) {}
  void fill(std::span<std::uint8_t> out) override { std::fill(out.begin(), out.end(), byte_); }

 private:
  std::uint8_t byte_;
};

}  // namespace

TEST_CASE("X25519 agrees with RFC 7748 section 5.2") {
  const auto first =
      x25519(secretFromHex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
             publicFromHex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"));
  REQUIRE(first);
  CHECK(toHex(first->bytes()) ==
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");

  // The top bit of this point is set, and must be ignored.
  const auto second =
      x25519(secretFromHex("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d"),
             publicFromHex("e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493"));
  REQUIRE(second);
  CHECK(toHex(second->bytes()) ==
        "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
}

TEST_CASE("X25519 iterated 1000 times agrees with RFC 7748 section 5.2") {
  Secret<32> scalar(arrayFromHex<32>("09" + std::string(62, '0')));
  PublicKey point{arrayFromHex<32>("09" + std::string(62, '0'))};
  for (int i = 1; i <= 1000; ++i) {
    const auto next = x25519(scalar, point);
    REQUIRE(next);
    std::copy(scalar.bytes().begin(), scalar.bytes().end(), point.bytes.begin());
    scalar = *next;
    if (i == 1) {
      CHECK(toHex(scalar.bytes()) ==
            "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
    }
  }
  CHECK(toHex(scalar.bytes()) ==
        "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

TEST_CASE("Two key pairs agree as in RFC 7748 section 6.1") {
  const PrivateKey alice(
      arrayFromHex<32>("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
  const PrivateKey bob(
      arrayFromHex<32>("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
  CHECK(toHex(alice.publicKey().bytes) ==
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  CHECK(toHex(bob.publicKey().bytes) ==
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  const auto shared = x25519(alice.secret(), bob.publicKey());
  REQUIRE(shared);
  CHECK(shared == x25519(bob.secret(), alice.publicKey()));
  CHECK(toHex(shared->bytes()) ==
        "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

TEST_CASE("Low-order points give no shared secret") {
  // The points of order 1, 2, 4 and 8 and their non-canonical forms (RFC 7748 section 6.1 asks
  // for the check; the list is the Montgomery curve's torsion, modulo p and with p added).
  const char* const points[] = {
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
      "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  };
  const PrivateKey key(test::counting<32>());
  for (const char* text : points) {
    PublicKey point = publicFromHex(text);
    CHECK_FALSE(x25519(key.secret(), point));
    point.bytes[31] |= 0x80;
    CHECK_FALSE(x25519(key.secret(), point));
  }
}

TEST_CASE("Case 14: a private key is clamped when it is loaded, and shows no drift") {
  auto bytes = test::counting<32>();
  bytes[0] = 0x07;
  bytes[31] = 0xff;
  const PrivateKey key(bytes);
  CHECK(key.secret().bytes()[0] == 0x00);
  CHECK(key.secret().bytes()[31] == 0x7f);
  const auto reloaded = PrivateKey::fromBase64(key.toBase64());
  REQUIRE(reloaded);
  CHECK(*reloaded == key);

  bytes[0] = 0x00;
  bytes[31] = 0x7f;
  CHECK(PrivateKey(bytes) == key);
  CHECK(PrivateKey(bytes).publicKey() == key.publicKey());
  bytes[1] ^= 1;
  CHECK_FALSE(PrivateKey(bytes) == key);
}

TEST_CASE("A generated private key comes from the given source and is clamped") {
  FixedRandom random(0xff);
  const PrivateKey key = PrivateKey::generate(random);
  CHECK(toHex(key.secret().bytes()) == "f8" + std::string(60, 'f') + "7f");
  CHECK_FALSE(PrivateKey::generate() == PrivateKey::generate());
}

TEST_CASE("Keys go to base64 and back") {
  const PublicKey key{test::counting<32>()};
  CHECK(key.toBase64() == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
  CHECK(PublicKey::fromBase64(key.toBase64()) == key);
  const PresharedKey preshared(key.bytes);
  CHECK(presharedKeyToBase64(preshared) == key.toBase64());
  CHECK(presharedKeyFromBase64(key.toBase64()) == preshared);
  CHECK(PublicKey::fromBase64("//////////////////////////////////////////8=")->bytes[31] == 0xff);
}

TEST_CASE("Base64 that is not a key in canonical form is refused") {
  const std::string good = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  std::vector<std::string> bad{
      "",
      good.substr(0, 43),
      good + "=",
      good + "\n",
      " " + good.substr(0, 43),
      good.substr(0, 42) + "9=",  // trailing bits set
      good.substr(0, 42) + "==",
      good.substr(0, 43) + "A",  // 33 bytes
      good.substr(0, 41) + "===",
      std::string(44, '='),
      good.substr(1) + std::string(1, '\0'),
  };
  // Every byte outside the alphabet.
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int byte = 0; byte < 256; ++byte) {
    std::string text = good;
    text[20] = static_cast<char>(byte);
    if (alphabet.find(text[20]) == std::string::npos) {
      bad.push_back(text);
    }
  }
  for (const std::string& text : bad) {
    CAPTURE(text);
    const auto key = PublicKey::fromBase64(text);
    REQUIRE_FALSE(key);
    CHECK_FALSE(PrivateKey::fromBase64(text));
    CHECK_FALSE(presharedKeyFromBase64(text));
    if (text.size() > 8) {
      CHECK(key.error().message.find(text.substr(0, 8)) == std::string::npos);
    }
  }
}

TEST_CASE("Public keys order, compare and hash by their bytes") {
  const PublicKey zero;
  const PublicKey other{test::counting<32>()};
  CHECK(zero.isZero());
  CHECK_FALSE(other.isZero());
  CHECK(zero < other);
  CHECK(std::hash<PublicKey>()(zero) != std::hash<PublicKey>()(other));
}
