#include "control/handshake_trouble.hpp"

#include <catch2/catch.hpp>

namespace adit::control {
namespace {

using namespace std::chrono_literals;
using noise::HandshakeDrop;

const std::string kOwn = "own-public-key";

crypto::PublicKey key(std::uint8_t fill) {
  crypto::PublicKey result;
  result.bytes.fill(fill);
  return result;
}

noise::RefusedHandshake from(HandshakeDrop reason, std::string_view source) {
  return {.reason = reason, .source = *Endpoint::parse(source)};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("each refused handshake says what a person can mend") {
  HandshakeTrouble trouble;
  const BootTime now{1h};

  auto unknown = from(HandshakeDrop::UnknownPeer, "203.0.113.1:5555");
  unknown.key = key(9);
  auto text = trouble.refused(unknown, "", kOwn, now);
  REQUIRE(text);
  CHECK(has(*text, "203.0.113.1:5555"));
  CHECK(has(*text, key(9).toBase64()));

  text = trouble.refused(from(HandshakeDrop::BadMac1, "203.0.113.1:5555"), "", kOwn, now);
  REQUIRE(text);
  CHECK(has(*text, "PublicKey = own-public-key"));

  auto suite = from(HandshakeDrop::SuiteRefused, "203.0.113.1:5555");
  suite.peer = 4;
  suite.suite = crypto::Suite::Aes256Gcm;
  text = trouble.refused(suite, "nas", kOwn, now);
  REQUIRE(text);
  CHECK(has(*text, "peer nas"));
  CHECK(has(*text, "aes-256-gcm"));

  auto response = from(HandshakeDrop::BadResponse, "203.0.113.1:5555");
  response.peer = 5;
  text = trouble.refused(response, "vps", kOwn, now);
  REQUIRE(text);
  CHECK(has(*text, "peer vps"));
  CHECK(has(*text, "PresharedKey"));
  CHECK(trouble.recent(now).size() == 4);
}

TEST_CASE("trouble is logged once a minute, and known for three") {
  HandshakeTrouble trouble;
  auto unknown = from(HandshakeDrop::UnknownPeer, "203.0.113.1:5555");
  unknown.key = key(9);
  BootTime now{1h};
  CHECK(trouble.refused(unknown, "", kOwn, now));
  CHECK_FALSE(trouble.refused(unknown, "", kOwn, now + 30s));
  CHECK(trouble.refused(unknown, "", kOwn, now + 61s));
  CHECK(trouble.recent(now + 61s).size() == 1);
  CHECK(trouble.recent(now + 5min).empty());
}

TEST_CASE("made-up strangers make nothing grow") {
  HandshakeTrouble trouble;
  for (std::uint8_t i = 1; i < 200; ++i) {
    auto stranger = from(HandshakeDrop::UnknownPeer, fmt::format("203.0.113.{}:5555", i));
    stranger.key = key(i);
    trouble.refused(stranger, "", kOwn, BootTime{1h});
  }
  const auto warnings = trouble.recent(BootTime{1h});
  REQUIRE(warnings.size() == 1);
  CHECK(has(warnings.front().text, "203.0.113.199"));
  CHECK(warnings.front().kind == "unknown-key");
}

TEST_CASE("a handshake that succeeds ends the trouble of its peer alone") {
  HandshakeTrouble trouble;
  const BootTime now{1h};
  for (const noise::PeerId id : {4U, 5U}) {
    auto response = from(HandshakeDrop::BadResponse, "203.0.113.1:5555");
    response.peer = id;
    trouble.refused(response, "vps", kOwn, now);
  }
  CHECK(trouble.concerns(4, now));
  trouble.forget(4);
  CHECK_FALSE(trouble.concerns(4, now));
  CHECK(trouble.concerns(5, now));
  CHECK(trouble.recent(now).size() == 1);
  trouble.clear();
  CHECK(trouble.recent(now).empty());
}

TEST_CASE("what the data plane drops for another key is told when the counter moves") {
  HandshakeTrouble trouble;
  const BootTime now{1h};
  CHECK_FALSE(trouble.foreignHandshakes(0, kOwn, now));
  CHECK(trouble.foreignHandshakes(2, kOwn, now));
  CHECK_FALSE(trouble.foreignHandshakes(2, kOwn, now + 2min));
  CHECK(trouble.recent(now + 4min).empty());
  CHECK(trouble.foreignHandshakes(3, kOwn, now + 5min));
}

}  // namespace
}  // namespace adit::control
