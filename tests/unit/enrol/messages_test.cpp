#include <catch2/catch.hpp>

#include "enrol/messages.hpp"
#include "noise/fakes.hpp"
#include "wire/control.h"

using namespace adit;
using namespace adit::enrol;
using noise::test::countingKey;
using noise::test::SeededRandom;

namespace {

struct Ends {
  crypto::PrivateKey server = countingKey(1);
  crypto::PrivateKey joining = countingKey(40);
  crypto::PublicKey enrolment = countingKey(90).publicKey();
  JoinKeys atServer = *joinKeys(server, joining.publicKey(), parties());
  JoinKeys atNas = *joinKeys(joining, server.publicKey(), parties());

  [[nodiscard]] JoinParties parties() const {
    return {enrolment, server.publicKey(), joining.publicKey()};
  }
};

Answer fullAnswer() {
  Answer answer;
  answer.verdict = Verdict::Accepted;
  answer.presharedKey.bytes()[5] = 77;
  answer.addresses = {*InterfaceAddress::parse("10.77.3.2/24"),
                      *InterfaceAddress::parse("fd12:3456:789a:1::2/64")};
  answer.mtu = 1420;
  answer.thirdParty = true;
  for (std::size_t i = 0; i < kMaxGrants; ++i) {
    const auto port = static_cast<std::uint16_t>(8000 + i);
    answer.grants.push_back({i % 2 == 0, i % 3 != 1 || i % 2 != 0, port, port});
  }
  return answer;
}

}  // namespace

TEST_CASE("enrolment: both sides derive the same keys, and others do not") {
  const Ends ends;
  CHECK(ends.atServer.proof == ends.atNas.proof);
  CHECK(ends.atServer.answer == ends.atNas.answer);
  JoinParties other = ends.parties();
  other.enrolment.bytes[0] ^= 1;
  CHECK(joinKeys(ends.joining, ends.server.publicKey(), other)->proof != ends.atNas.proof);
  for (const std::string_view point : noise::test::kLowOrderPoints) {
    CHECK_FALSE(joinKeys(ends.server, noise::test::publicKeyFromHex(point), ends.parties()));
  }
  Secret<32> secret;
  secret.bytes()[0] = 1;
  const auto keys = enrolmentKeys(secret, ends.server.publicKey());
  CHECK(keys.privateKey == enrolmentKeys(secret, ends.server.publicKey()).privateKey);
  CHECK_FALSE(keys.privateKey.secret() == keys.presharedKey);
  CHECK_FALSE(keys.presharedKey == enrolmentKeys(secret, ends.enrolment).presharedKey);
}

TEST_CASE("enrolment: a request names the key and proves it") {
  const Ends ends;
  const Message message = encodeRequest(ends.joining.publicKey(), ends.atNas);
  CHECK(message.size() == 51);
  const auto request = decodeRequest(message, ends.server, ends.enrolment);
  REQUIRE(request);
  CHECK(request->joining == ends.joining.publicKey());
  CHECK(request->keys.answer == ends.atNas.answer);
  SECTION("no bit of it can be changed") {
    for (std::size_t i = 0; i < message.size() * 8; ++i) {
      Message changed = message;
      changed[i / 8] = static_cast<std::uint8_t>(changed[i / 8] ^ (1U << (i % 8)));
      CHECK_FALSE(decodeRequest(changed, ends.server, ends.enrolment));
    }
  }
  SECTION("nor a byte be missing") {
    for (std::size_t length = 0; length < message.size(); ++length) {
      CHECK_FALSE(decodeRequest(std::span(message).first(length), ends.server, ends.enrolment));
    }
  }
  SECTION("nor one be there too many") {
    Message longer = message;
    longer.push_back(0);
    ++longer[2];
    CHECK_FALSE(decodeRequest(longer, ends.server, ends.enrolment));
  }
  SECTION("padding and other records do no harm") {
    Message longer{message[0], 99, 2, 0, 0};
    longer.insert(longer.end(), message.begin() + 1, message.end());
    longer.resize(64);
    CHECK(decodeRequest(longer, ends.server, ends.enrolment));
  }
  SECTION("for another invitation or another server it is none") {
    CHECK_FALSE(decodeRequest(message, ends.server, ends.joining.publicKey()));
    CHECK_FALSE(decodeRequest(message, countingKey(2), ends.enrolment));
  }
}

TEST_CASE("enrolment: an answer comes across whole and fits") {
  const Ends ends;
  SeededRandom random(1);
  const Answer answer = fullAnswer();
  const Message message = encodeAnswer(answer, ends.atServer, random);
  CHECK(message.size() <= ADIT_CONTROL_MAX_LENGTH);
  const auto read = decodeAnswer(message, ends.atNas);
  REQUIRE(read);
  CHECK(read->verdict == answer.verdict);
  CHECK(read->presharedKey == answer.presharedKey);
  CHECK(read->addresses == answer.addresses);
  CHECK(read->mtu == answer.mtu);
  CHECK(read->thirdParty);
  CHECK(read->grants == answer.grants);
}

TEST_CASE("enrolment: a refusal comes across") {
  const Ends ends;
  SeededRandom random(1);
  for (const Verdict verdict :
       {Verdict::Taken, Verdict::Expired, Verdict::Withdrawn, Verdict::NotNow}) {
    Answer answer;
    answer.verdict = verdict;
    const auto read = decodeAnswer(encodeAnswer(answer, ends.atServer, random), ends.atNas);
    REQUIRE(read);
    CHECK(read->verdict == verdict);
  }
}

TEST_CASE("enrolment: an answer is for one key alone") {
  const Ends ends;
  SeededRandom random(1);
  const Message message = encodeAnswer(fullAnswer(), ends.atServer, random);
  const crypto::PrivateKey other = countingKey(41);
  const auto otherKeys = joinKeys(other, ends.server.publicKey(),
                                  {ends.enrolment, ends.server.publicKey(), other.publicKey()});
  CHECK_FALSE(decodeAnswer(message, *otherKeys));
  CHECK(encodeAnswer(fullAnswer(), ends.atServer, random) != message);
}

TEST_CASE("enrolment: no changed or truncated answer is read") {
  const Ends ends;
  SeededRandom random(1);
  const Message message = encodeAnswer(fullAnswer(), ends.atServer, random);
  for (std::size_t i = 0; i < message.size() * 8; ++i) {
    Message changed = message;
    changed[i / 8] = static_cast<std::uint8_t>(changed[i / 8] ^ (1U << (i % 8)));
    CHECK_FALSE(decodeAnswer(changed, ends.atNas));
  }
  for (std::size_t length = 0; length < message.size(); ++length) {
    CHECK_FALSE(decodeAnswer(std::span(message).first(length), ends.atNas));
  }
}

TEST_CASE("enrolment: sealed nonsense is no answer") {
  const Ends ends;
  SeededRandom random(1);
  const auto refused = [&](auto change) {
    Answer answer = fullAnswer();
    answer.grants.resize(1);
    change(answer);
    return !decodeAnswer(encodeAnswer(answer, ends.atServer, random), ends.atNas);
  };
  CHECK_FALSE(refused([](Answer&) {}));
  CHECK(refused([](Answer& answer) { answer.addresses.clear(); }));
  CHECK(refused([](Answer& answer) { answer.addresses[0].length = 33; }));
  CHECK(refused([](Answer& answer) { answer.addresses[1].length = 129; }));
  CHECK(refused([](Answer& answer) { answer.addresses[0].address = IpAddress::anyV4(); }));
  CHECK(refused([](Answer& answer) { answer.grants[0] = {true, false, 10, 9}; }));
  CHECK(refused([](Answer& answer) { answer.grants[0] = {true, false, 0, 9}; }));
  CHECK(refused([](Answer& answer) { answer.grants[0] = {false, false, 1, 9}; }));
}
