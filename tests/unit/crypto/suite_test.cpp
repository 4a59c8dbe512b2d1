#include "crypto/suite.hpp"

#include <catch2/catch.hpp>

using namespace adit::crypto;

TEST_CASE("Suites go to names and wire numbers and back") {
  CHECK(suiteName(Suite::ChaCha20Poly1305) == "chacha20-poly1305");
  CHECK(suiteName(Suite::Aes256Gcm) == "aes-256-gcm");
  CHECK(suiteName(Suite::Aes128Gcm) == "aes-128-gcm");
  for (const Suite suite : kSuites) {
    CHECK(suiteFromName(suiteName(suite)) == suite);
    CHECK(suiteFromWire(static_cast<std::uint8_t>(suite)) == suite);
  }
}

TEST_CASE("Unknown suites are nothing") {
  CHECK_FALSE(suiteFromName(""));
  CHECK_FALSE(suiteFromName("AES-256-GCM"));
  CHECK_FALSE(suiteFromName("aes-256-gcm "));
  for (unsigned id = ADIT_SUITE_COUNT; id < 256; ++id) {
    CHECK_FALSE(suiteFromWire(static_cast<std::uint8_t>(id)));
  }
}
