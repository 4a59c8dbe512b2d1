#include "noise/negotiation.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "fakes.hpp"
#include "noise/timing.hpp"
#include "wire/control.h"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;
using crypto::Suite;

namespace {

SuiteOffer allAt(std::uint32_t chacha, std::uint32_t aes256, std::uint32_t aes128) {
  return {SuiteSet::all(), {chacha, aes256, aes128}};
}

std::vector<int> suitesTried(SuiteSet allowed, Suite preferred, unsigned count) {
  std::vector<int> tried;
  for (unsigned i = 0; i < count; ++i) {
    tried.push_back(static_cast<int>(initiationSuite(allowed, preferred, i)));
  }
  return tried;
}

}  // namespace

TEST_CASE("the control message is what docs/protocol.md says, byte by byte") {
  const auto bytes = encodeControl({allAt(1000, 0x01020304, 5), true});
  CHECK(toHex(bytes) ==
        "01"          // version
        "010f"        // suites, 15 bytes
        "00e8030000"  // ChaCha20-Poly1305 at 1000 MB/s
        "0104030201"  // AES-256-GCM
        "0205000000"  // AES-128-GCM
        "0200");      // wants an answer
}

TEST_CASE("a control message survives encoding and decoding") {
  for (const bool wantsAnswer : {false, true}) {
    ControlMessage message{{SuiteSet::only(Suite::Aes256Gcm), {0, 4000, 0}}, wantsAnswer};
    const auto decoded = decodeControl(encodeControl(message));
    REQUIRE(decoded);
    CHECK(decoded->offer == message.offer);
    CHECK(decoded->wantsAnswer == wantsAnswer);
  }
}

TEST_CASE("unknown records, unknown suites and zero padding are skipped") {
  const auto decoded =
      decodeControl(fromHex("01"
                            "7703aabbcc"
                            "010a"
                            "0001000000"
                            "c8ffffffff"
                            "0000000000000000"));
  REQUIRE(decoded);
  CHECK(decoded->offer.allowed == SuiteSet::only(Suite::ChaCha20Poly1305));
  CHECK(decoded->offer.speeds[0] == 1);
  CHECK_FALSE(decoded->wantsAnswer);
}

TEST_CASE("a truncated or foreign control message is refused, at every length") {
  const auto whole = encodeControl({allAt(1, 2, 3), true});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::uint8_t> part(whole.begin(), whole.begin() + static_cast<long>(length));
    const auto decoded = decodeControl(part);
    // Only the cut before the last record leaves a whole message.
    CHECK(decoded.has_value() == (length == whole.size() - 2));
  }
  CHECK_FALSE(decodeControl(fromHex("020100")));
  CHECK_FALSE(decodeControl(fromHex("4500")));
  CHECK_FALSE(decodeControl(fromHex("0101ff00")));
  CHECK_FALSE(decodeControl(fromHex("010103000000")));
}

TEST_CASE("the choice is the common suite whose slower side is fastest") {
  CHECK(chooseSuite(allAt(1000, 4000, 4500), allAt(1000, 4000, 4500)) == Suite::Aes256Gcm);
  // A NAS without AES instructions decides.
  CHECK(chooseSuite(allAt(1000, 9000, 9000), allAt(400, 100, 120)) == Suite::ChaCha20Poly1305);
  CHECK(chooseSuite(allAt(100, 300, 600), allAt(100, 300, 600)) == Suite::Aes128Gcm);
  const SuiteOffer only{SuiteSet::only(Suite::Aes128Gcm), {0, 0, 1}};
  CHECK(chooseSuite(only, allAt(1000, 1000, 1000)) == Suite::Aes128Gcm);
  const SuiteOffer other{SuiteSet::only(Suite::Aes256Gcm), {0, 1, 0}};
  CHECK_FALSE(chooseSuite(only, other));
  CHECK(chooseSuite(allAt(0, 0, 0), allAt(0, 0, 0)) == Suite::ChaCha20Poly1305);
}

TEST_CASE("differences under 20 % are ties and go to the lower id") {
  CHECK(chooseSuite(allAt(81, 100, 0), allAt(81, 100, 0)) == Suite::ChaCha20Poly1305);
  CHECK(chooseSuite(allAt(80, 100, 0), allAt(80, 100, 0)) == Suite::Aes256Gcm);
  CHECK(chooseSuite(allAt(0xffffffff, 0xffffffff, 0xffffffff),
                    allAt(0xffffffff, 0xffffffff, 0xffffffff)) == Suite::ChaCha20Poly1305);
}

TEST_CASE("both sides compute the same choice") {
  SeededRandom random(7);
  std::map<Suite, int> seen;
  for (int i = 0; i < 5000; ++i) {
    SuiteOffer offers[2];
    for (auto& offer : offers) {
      std::array<std::uint8_t, 4> bytes{};
      random.fill(bytes);
      for (const Suite suite : crypto::kSuites) {
        const auto number = static_cast<std::size_t>(suite);
        if ((bytes[3] >> number & 1) != 0) offer.allowed.add(suite);
        offer.speeds[number] = bytes[number];
      }
    }
    const auto choice = chooseSuite(offers[0], offers[1]);
    REQUIRE(choice == chooseSuite(offers[1], offers[0]));
    if (choice) {
      ++seen[*choice];
      REQUIRE(offers[0].allowed.contains(*choice));
      REQUIRE(offers[1].allowed.contains(*choice));
    }
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("an unanswered initiator falls back after three and cycles through its suites") {
  CHECK(suitesTried(SuiteSet::all(), Suite::ChaCha20Poly1305, 10) ==
        std::vector<int>{0, 0, 1, 0, 2, 0, 1, 0, 2, 0});
  CHECK(suitesTried(SuiteSet::all(), Suite::Aes128Gcm, 9) ==
        std::vector<int>{2, 2, 2, 0, 0, 1, 0, 2, 0});
  CHECK(suitesTried(SuiteSet::only(Suite::Aes256Gcm), Suite::Aes256Gcm, 5) ==
        std::vector<int>{1, 1, 1, 1, 1});
  CHECK(suitesTried(SuiteSet::only(Suite::Aes256Gcm), Suite::ChaCha20Poly1305, 2) ==
        std::vector<int>{1, 1});
}

TEST_CASE("key limits are WireGuard's for suite 0, and GCM's shrink with the MTU") {
  const Timing timing;
  const auto chacha = timing.keyLimits(Suite::ChaCha20Poly1305, 65535);
  CHECK(chacha.rekeyAfter == 120s);
  CHECK(chacha.rejectAfter == 180s);
  CHECK(chacha.rekeyAfterMessages == 1ULL << 60);
  CHECK(chacha.rejectAfterMessages == ~0ULL - (1ULL << 13));
  for (const Suite suite : {Suite::Aes256Gcm, Suite::Aes128Gcm}) {
    const auto usual = timing.keyLimits(suite, 1420);
    CHECK(usual.rekeyAfterMessages == 1ULL << 28);
    CHECK(usual.rejectAfterMessages == 1ULL << 29);
    CHECK(timing.keyLimits(suite, 2048).rejectAfterMessages == 1ULL << 29);
    const auto jumbo = timing.keyLimits(suite, 8192);
    CHECK(jumbo.rekeyAfterMessages == 1ULL << 26);
    CHECK(jumbo.rejectAfterMessages == 1ULL << 27);
    for (const std::uint32_t mtu : {2049U, 9000U, 65535U}) {
      const std::uint64_t blocks = (mtu + 15) / 16;
      CHECK(timing.keyLimits(suite, mtu).rejectAfterMessages * blocks <= 1ULL << 36);
    }
  }
}
