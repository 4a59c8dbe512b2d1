// The four steps, against vectors that were derived from the paper by an independent program
// (Python, hashlib and pyca/cryptography), and against themselves.
#include "noise/handshake.hpp"

#include <endian.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <sstream>

#include "fakes.hpp"
#include "noise/cookie.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;
using crypto::Suite;

namespace {

struct Vector {
  Suite suite;
  std::string_view initiation;
  std::string_view response;
};

constexpr Vector kVectors[]{
    {Suite::ChaCha20Poly1305,
     "010000000403020164b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466"
     "158a0e4ca242d151ca97ab90159a98b67e616625e68b4065d357376b6598e644ad7d678c0295d22d"
     "e4cb43d5135581ed36346bfa6afc9b122239f893e29329a2c10501f0157ada10f56e403a2a0eb384"
     "900b3ceeca714b5e39b01b8000000000000000000000000000000000",
     "020000000d0c0b0a04030201244fe3b963e899dd295baffce248d3530f3a9a7479ba063002680ebf"
     "e7adad494bccfe7a3fe37521b71462bd7d3e11c8ae81800e8117fade59ef80a2fe6670bc00000000"
     "000000000000000000000000"},
    {Suite::Aes256Gcm,
     "010100000403020164b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466"
     "158a0e4ca242d151ca97ab90159a98b67e616625e68b4065d357376b6598e644c1a3a2b3e8f6e139"
     "ea808c58f6609b6436346bfa6afc9b122239f893222c8a5227442593acda1f096e9170c99646f3a4"
     "47eba1dce8341e9ac5300eb500000000000000000000000000000000",
     "020100000d0c0b0a04030201244fe3b963e899dd295baffce248d3530f3a9a7479ba063002680ebf"
     "e7adad49aa7f877749bbdb03021336ec5079384c9751ef73adced4b4569a96f6efd7065f00000000"
     "000000000000000000000000"},
    {Suite::Aes128Gcm,
     "010200000403020164b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466"
     "158a0e4ca242d151ca97ab90159a98b67e616625e68b4065d357376b6598e644c9666e055796e031"
     "86dff1459c57970336346bfa6afc9b122239f893f6dd710e6a962bb169375c6c5acb35e9538c70e9"
     "f0168b57a7965eb1852f950c00000000000000000000000000000000",
     "020200000d0c0b0a04030201244fe3b963e899dd295baffce248d3530f3a9a7479ba063002680ebf"
     "e7adad497a1674e775edf445eb6e82e5c603f7109788ef2163f56c1b40016d303259ecd200000000"
     "000000000000000000000000"},
};

// The hash of the transcript does not enter the keys, so with the same ephemeral keys they are the
// same under every suite.
constexpr std::string_view kInitiatorSends =
    "248a29611829aaf7ee8bc8e87df805c1019f08f82d80eb79b7625821ba0a1317";
constexpr std::string_view kResponderSends =
    "848308e622b3e15e5ebc5312111efc31082e86c85e9ee93fe8c5aa7f972cc9c3";

/// Gives out the same 32 bytes every time, as an ephemeral private key.
class FixedRandom final : public crypto::RandomSource {
 public:
  explicit FixedRandom(std::uint8_t first) : first_(first) {}
  void fill(std::span<std::uint8_t> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::uint8_t>(first_ + i);
    }
  }

 private:
  std::uint8_t first_;
};

crypto::PresharedKey countingPsk() {
  crypto::PresharedKey key;
  FixedRandom(0x81).fill(key.bytes());
  return key;
}

template <typename Message>
std::span<std::uint8_t> bytesOf(Message& message) {
  return {reinterpret_cast<std::uint8_t*>(&message), sizeof message};
}

Remote remoteOf(const Identity& us, const crypto::PublicKey& them,
                const crypto::PresharedKey& psk) {
  return {them, *crypto::x25519(us.privateKey.secret(), them), psk};
}

struct Pair {
  Identity initiator{countingKey(0x01)};
  Identity responder{countingKey(0x21)};
  crypto::PresharedKey psk = countingPsk();
  Remote toResponder = remoteOf(initiator, responder.publicKey, psk);
  Remote toInitiator = remoteOf(responder, initiator.publicKey, psk);
  Tai64n timestamp = Tai64n::fromUnix(1935360000s + std::chrono::nanoseconds(3 << 24));
  FixedRandom initiatorRandom{0x41};
  FixedRandom responderRandom{0x61};
  adit_message_initiation initiation{};
  adit_message_response response{};

  std::optional<InitiatorHandshake> initiate(Suite suite) {
    return createInitiation(initiator, toResponder, suite, 0x01020304, timestamp, initiatorRandom,
                            initiation);
  }
  std::optional<TransportKeys> respond(std::optional<Tai64n>* seen = nullptr) {
    auto received = openInitiation(responder, initiation);
    if (!received || received->remoteStatic != initiator.publicKey) return std::nullopt;
    const auto stamp = authenticateInitiation(*received, toInitiator, initiation);
    if (seen != nullptr) *seen = stamp;
    if (!stamp) return std::nullopt;
    return createResponse(*received, toInitiator, 0x0a0b0c0d, responderRandom, response);
  }
};

}  // namespace

TEST_CASE_METHOD(Pair, "a whole handshake is the one of docs/protocol.md, byte by byte") {
  std::ifstream file(ADIT_SOURCE_DIR "/docs/protocol.md");
  std::string page{std::istreambuf_iterator<char>(file), {}};
  std::erase_if(page, [](unsigned char c) { return std::isspace(c) != 0; });

  for (const Vector& vector : kVectors) {
    CAPTURE(crypto::suiteName(vector.suite));
    const auto handshake = initiate(vector.suite);
    REQUIRE(handshake);
    CookieMaker(responder.publicKey, {}).addMacs(bytesOf(initiation), 0s);
    CHECK(toHex(bytesOf(initiation)) == vector.initiation);

    std::optional<Tai64n> seen;
    const auto responderKeys = respond(&seen);
    REQUIRE(responderKeys);
    CHECK(seen == timestamp);
    CookieMaker(initiator.publicKey, {}).addMacs(bytesOf(response), 0s);
    CHECK(toHex(bytesOf(response)) == vector.response);

    const auto initiatorKeys = consumeResponse(*handshake, initiator, toResponder, response);
    REQUIRE(initiatorKeys);
    CHECK(toHex(initiatorKeys->send.bytes()) == kInitiatorSends);
    CHECK(toHex(initiatorKeys->receive.bytes()) == kResponderSends);
    CHECK(initiatorKeys->send == responderKeys->receive);
    CHECK(initiatorKeys->receive == responderKeys->send);

    if (vector.suite != Suite::Aes128Gcm) {
      CHECK(page.find(vector.initiation) != std::string::npos);
      CHECK(page.find(vector.response) != std::string::npos);
      CHECK(page.find(kInitiatorSends) != std::string::npos);
      CHECK(page.find(kResponderSends) != std::string::npos);
    }
  }
}

TEST_CASE_METHOD(Pair, "every byte of an initiation is authenticated") {
  for (const Suite suite : crypto::kSuites) {
    REQUIRE(initiate(suite));
    const auto whole = initiation;
    // What the macs cover is theirs to check (cookie.hpp), and the index is covered by them only.
    for (std::size_t i = 8; i < offsetof(adit_message_initiation, macs); ++i) {
      initiation = whole;
      bytesOf(initiation)[i] ^= 0x10;
      CHECK_FALSE(respond());
    }
  }
}

TEST_CASE_METHOD(Pair, "a changed suite byte fails closed, both ways") {
  for (const Suite suite : crypto::kSuites) {
    for (std::uint8_t other = 0; other < 4; ++other) {
      if (other == static_cast<std::uint8_t>(suite)) continue;
      const auto handshake = initiate(suite);
      initiation.header.suite = other;
      CHECK_FALSE(respond());
      initiation.header.suite = static_cast<std::uint8_t>(suite);
      REQUIRE(respond());
      response.header.suite = other;
      CHECK_FALSE(consumeResponse(*handshake, initiator, toResponder, response));
    }
  }
}

TEST_CASE_METHOD(Pair, "every byte of a response is authenticated, and a bad one costs nothing") {
  const auto handshake = initiate(Suite::ChaCha20Poly1305);
  REQUIRE(respond());
  const auto whole = response;
  for (std::size_t i = 12; i < offsetof(adit_message_response, macs); ++i) {
    response = whole;
    bytesOf(response)[i] ^= 0x10;
    CHECK_FALSE(consumeResponse(*handshake, initiator, toResponder, response));
  }
  CHECK(consumeResponse(*handshake, initiator, toResponder, whole));
}

TEST_CASE_METHOD(Pair, "a differing preshared key fails at the response") {
  const auto handshake = initiate(Suite::ChaCha20Poly1305);
  toInitiator.presharedKey.bytes()[0] ^= 1;
  REQUIRE(respond());
  CHECK_FALSE(consumeResponse(*handshake, initiator, toResponder, response));
}

TEST_CASE_METHOD(Pair, "low-order public keys: nothing is made that could be sent") {
  for (const auto point : kLowOrderPoints) {
    CAPTURE(point);
    const auto key = publicKeyFromHex(point);
    CHECK_FALSE(crypto::x25519(initiator.privateKey.secret(), key));

    Remote weak{key, Secret<32>{}, {}};
    CHECK_FALSE(createInitiation(initiator, weak, Suite::ChaCha20Poly1305, 1, timestamp,
                                 initiatorRandom, initiation));
    // Nor with a shared secret from elsewhere.
    weak.staticStatic = toResponder.staticStatic;
    CHECK_FALSE(createInitiation(initiator, weak, Suite::ChaCha20Poly1305, 1, timestamp,
                                 initiatorRandom, initiation));

    REQUIRE(initiate(Suite::ChaCha20Poly1305));
    auto received = openInitiation(responder, initiation);
    REQUIRE(received);
    received->remoteEphemeral = key;
    CHECK_FALSE(createResponse(*received, toInitiator, 1, responderRandom, response));
    std::ranges::copy(key.bytes, initiation.unencrypted_ephemeral);
    CHECK_FALSE(openInitiation(responder, initiation));

    const auto handshake = initiate(Suite::ChaCha20Poly1305);
    REQUIRE(respond());
    std::ranges::copy(key.bytes, response.unencrypted_ephemeral);
    CHECK_FALSE(consumeResponse(*handshake, initiator, toResponder, response));
  }
}

TEST_CASE_METHOD(Pair, "fresh ephemeral keys give fresh session keys") {
  SeededRandom random(5);
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(createInitiation(initiator, toResponder, Suite::Aes256Gcm, 1, timestamp, random,
                             initiation));
    const auto session = respond();
    REQUIRE(session);
    keys.push_back(toHex(session->send.bytes()));
    keys.push_back(toHex(session->receive.bytes()));
  }
  std::ranges::sort(keys);
  CHECK(std::ranges::adjacent_find(keys) == keys.end());
}
