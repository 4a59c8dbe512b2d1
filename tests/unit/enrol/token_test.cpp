#include <sodium.h>

#include <catch2/catch.hpp>

#include "crypto/hash.hpp"
#include "enrol/token.hpp"

using namespace adit;
using namespace adit::enrol;
using Catch::Matchers::Contains;

namespace {

Token sample() {
  Token token;
  token.suite = crypto::Suite::Aes256Gcm;
  token.expires = std::chrono::seconds(1935360000);
  for (std::size_t i = 0; i < 32; ++i) {
    token.server.bytes[i] = static_cast<std::uint8_t>(i + 1);
    token.secret.bytes()[i] = static_cast<std::uint8_t>(i + 101);
  }
  token.name = "nas";
  token.endpoints = {"203.0.113.9:51820", "[2001:db8:9::9]:51820"};
  return token;
}

}  // namespace

TEST_CASE("token: what goes in comes out") {
  const Token token = sample();
  const std::string text = encodeToken(token);
  CHECK(text.starts_with("adit1_"));
  CHECK(text.size() < 220);
  const auto read = decodeToken(text);
  REQUIRE(read);
  CHECK(read->suite == token.suite);
  CHECK(read->expires == token.expires);
  CHECK(read->server == token.server);
  CHECK(read->secret == token.secret);
  CHECK(read->name == token.name);
  CHECK(read->endpoints == token.endpoints);
}

TEST_CASE("token: the limits hold") {
  Token token = sample();
  token.name = std::string(63, 'n');
  token.endpoints.assign(kMaxEndpoints, std::string(kMaxTextLength, 'h'));
  const auto read = decodeToken(encodeToken(token));
  REQUIRE(read);
  CHECK(read->endpoints == token.endpoints);
}

TEST_CASE("token: blanks and line ends of a mail do no harm") {
  const std::string text = encodeToken(sample());
  const std::string wrapped =
      "  " + text.substr(0, 40) + "\r\n  " + text.substr(40, 50) + "\n" + text.substr(90) + "\n\n";
  const auto read = decodeToken(wrapped);
  REQUIRE(read);
  CHECK(read->secret == sample().secret);
}

TEST_CASE("token: every single changed bit is refused") {
  const std::string text = encodeToken(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ (1U << bit));
      INFO("byte " << i << ", bit " << bit);
      CHECK_FALSE(decodeToken(changed));
    }
  }
}

TEST_CASE("token: every single exchanged or missing character is refused") {
  const std::string text = encodeToken(sample());
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    std::string without = text;
    without.erase(i, 1);
    CHECK_FALSE(decodeToken(without));
    if (text[i] == text[i + 1]) continue;
    std::string swapped = text;
    std::swap(swapped[i], swapped[i + 1]);
    CHECK_FALSE(decodeToken(swapped));
  }
}

TEST_CASE("token: every truncation, and every text that follows, is refused") {
  const std::string text = encodeToken(sample());
  for (std::size_t length = 0; length < text.size(); ++length) {
    CHECK_FALSE(decodeToken(text.substr(0, length)));
  }
  CHECK_FALSE(decodeToken(text + "A"));
  CHECK_FALSE(decodeToken(text + "AAAA"));
  CHECK_FALSE(decodeToken(text + text));
  CHECK_FALSE(decodeToken(std::string(100000, 'A')));
}

TEST_CASE("token: the refusal says what to do and shows nothing of it") {
  const std::string text = encodeToken(sample());
  const auto cut = decodeToken(text.substr(0, text.size() - 1));
  REQUIRE_FALSE(cut);
  CHECK_THAT(cut.error().message, Contains("copy the whole line"));
  CHECK_THAT(cut.error().message, !Contains(text.substr(6, 12)));
  const auto newer = decodeToken("adit2_" + text.substr(6));
  REQUIRE_FALSE(newer);
  CHECK_THAT(newer.error().message, Contains("another version"));
  const auto other = decodeToken("eyJhbGciOiJIUzI1NiJ9");
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message, Contains("start with adit1_"));
}

TEST_CASE("token: nothing may follow the fields, although the checksum is right") {
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  const std::string text = encodeToken(sample());
  std::vector<std::uint8_t> body(text.size());
  std::size_t length = 0;
  REQUIRE(sodium_base642bin(body.data(), body.size(), text.data() + 6, text.size() - 6, nullptr,
                            &length, nullptr, kVariant) == 0);
  const auto withTail = [&](std::size_t tail) {
    std::vector<std::uint8_t> longer(body.begin(), body.begin() + static_cast<long>(length) - 8);
    longer.resize(longer.size() + tail);
    constexpr std::string_view kLabel = "adit token 1";
    const auto check = crypto::blake2s(
        {{reinterpret_cast<const std::uint8_t*>(kLabel.data()), kLabel.size()}, longer});
    longer.insert(longer.end(), check.begin(), check.begin() + 8);
    std::string packed(sodium_base64_encoded_len(longer.size(), kVariant), '\0');
    sodium_bin2base64(packed.data(), packed.size(), longer.data(), longer.size(), kVariant);
    packed.pop_back();
    return "adit1_" + packed;
  };
  CHECK(withTail(0) == text);
  CHECK_FALSE(decodeToken(withTail(1)));
}

TEST_CASE("token: fields that make no sense are refused although the checksum is right") {
  const auto refused = [](auto change) {
    Token token = sample();
    change(token);
    return !decodeToken(encodeToken(token));
  };
  CHECK(refused([](Token& token) { token.endpoints.clear(); }));
  CHECK(refused([](Token& token) { token.endpoints.assign(5, "a:1"); }));
  CHECK(refused([](Token& token) { token.endpoints.front() = ""; }));
  CHECK(refused([](Token& token) { token.endpoints.front() = "a\nb:1"; }));
  CHECK(refused([](Token& token) { token.name = ""; }));
  CHECK(refused([](Token& token) { token.name = "\x1b[2J"; }));
  CHECK(refused([](Token& token) { token.expires = std::chrono::seconds(INT64_MAX); }));
}
