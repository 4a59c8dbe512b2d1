#include "crypto/box.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>

#include "crypto/hex.hpp"

using namespace adit;
using namespace adit::crypto;
using test::arrayFromHex;
using test::fromHex;
using test::toHex;

TEST_CASE("A box agrees with RFC 8439 appendix A.5") {
  const auto key =
      arrayFromHex<32>("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0");
  const std::uint64_t counter = 0x0807060504030201;
  const auto associated = fromHex("f33388860000000000004e91");
  const auto sealed = fromHex(
      "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb24c6cfc18755d43eea09ee94e382d"
      "26b0bdb7b73c321b0100d4f03b7f355894cf332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60f982b1"
      "ff37c8559797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4b9166c767b804d46a59b"
      "5216cde7a4e99040c5a40433225ee282a1b0a06c523eaf4534d7f83fa1155b0047718cbc546a0d072b04b3564eea"
      "1b422273f548271a0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a1049e617d91d36"
      "1094fa68f0ff77987130305beaba2eda04df997b714d6c6f2c29a6ad5cb4022b02709beead9d67890cbb22392336"
      "fea1851f38");
  std::vector<std::uint8_t> plaintext(sealed.size() - kBoxTagSize);
  REQUIRE(openBox(key, counter, associated, sealed, plaintext));
  CHECK(std::string(plaintext.begin(), plaintext.begin() + 24) == "Internet-Drafts are draf");

  std::vector<std::uint8_t> again(sealed.size());
  sealBox(key, counter, associated, plaintext, again);
  CHECK(again == sealed);
}

TEST_CASE("An extended-nonce box agrees with draft-irtf-cfrg-xchacha appendix A.3.1") {
  const auto key =
      arrayFromHex<32>("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
  const auto nonce = arrayFromHex<24>("404142434445464748494a4b4c4d4e4f5051525354555657");
  const auto associated = fromHex("50515253c0c1c2c3c4c5c6c7");
  const std::string_view message =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.";
  const std::vector<std::uint8_t> plaintext(message.begin(), message.end());
  std::vector<std::uint8_t> sealed(plaintext.size() + kBoxTagSize);
  sealXBox(key, nonce, associated, plaintext, sealed);
  CHECK(toHex(sealed) ==
        "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4e"
        "da7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2"
        "383565d3fff921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49");
  std::vector<std::uint8_t> opened(plaintext.size());
  REQUIRE(openXBox(key, nonce, associated, sealed, opened));
  CHECK(opened == plaintext);
}

TEST_CASE("A box with any bit changed does not open and leaves zeros") {
  const auto key = test::counting<32>();
  const auto nonce = test::counting<24>();
  const std::vector<std::uint8_t> plaintext(12, 0x5a);
  const std::vector<std::uint8_t> zeros(12, 0);
  std::vector<std::uint8_t> associated(32, 1);
  std::vector<std::uint8_t> sealed(28);
  std::vector<std::uint8_t> xSealed(28);
  sealBox(key, 0, associated, plaintext, sealed);
  sealXBox(key, nonce, associated, plaintext, xSealed);

  std::vector<std::uint8_t> out(12, 0xff);
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    auto bad = sealed;
    auto xBad = xSealed;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    xBad[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    std::fill(out.begin(), out.end(), std::uint8_t{0xff});
    CHECK_FALSE(openBox(key, 0, associated, bad, out));
    CHECK(out == zeros);
    std::fill(out.begin(), out.end(), std::uint8_t{0xff});
    CHECK_FALSE(openXBox(key, nonce, associated, xBad, out));
    CHECK(out == zeros);
  }
  CHECK_FALSE(openBox(key, 1, associated, sealed, out));
  associated[3] ^= 1;
  CHECK_FALSE(openBox(key, 0, associated, sealed, out));
  CHECK_FALSE(openXBox(key, nonce, associated, xSealed, out));
}

TEST_CASE("A box shorter than its tag does not open") {
  const auto key = test::counting<32>();
  const auto nonce = test::counting<24>();
  for (std::size_t size = 0; size < kBoxTagSize; ++size) {
    const std::vector<std::uint8_t> sealed(size);
    CHECK_FALSE(openBox(key, 0, {}, sealed, {}));
    CHECK_FALSE(openXBox(key, nonce, {}, sealed, {}));
  }
}

TEST_CASE("An empty message can be sealed, and a wrong size of output is refused") {
  const auto key = test::counting<32>();
  const auto nonce = test::counting<24>();
  std::array<std::uint8_t, 16> sealed{};
  sealBox(key, 0, {}, {}, sealed);
  CHECK(openBox(key, 0, {}, sealed, {}));
  CHECK_THROWS_AS(sealBox(key, 0, {}, sealed, sealed), std::invalid_argument);
  CHECK_THROWS_AS(sealXBox(key, nonce, {}, sealed, sealed), std::invalid_argument);
  CHECK_THROWS_AS(openBox(key, 0, {}, sealed, sealed), std::invalid_argument);
}
