// What the process that kept root does when a machine joins, on real files.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "config/parser.hpp"
#include "control/device_enrol_file.hpp"
#include "noise/fakes.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;
using Catch::Matchers::Contains;
using enrol::Verdict;
using noise::test::countingKey;
using noise::test::FakeClock;
using noise::test::SeededRandom;

namespace {

struct Files {
  Files() {
    scratch.write("adit0.conf", "[Interface]\nPrivateKey = " + countingKey(1).toBase64() +
                                    "\nAddress = 10.77.3.1/24, fd10::1/64\nListenPort = 51820\n");
    scratch.write("adit0.d/peer-nas.conf", invitation("nas", enrolment, 2));
    clock.real = std::chrono::seconds(1796180644);  // a second before the end
  }

  static std::string invitation(const std::string& name, const crypto::PublicKey& key,
                                unsigned host) {
    return fmt::format(
        "# Mine: keep this comment.\n[Invitation]\nName = {}\nPublicKey = {}\nPresharedKey = {}\n"
        "Address = 10.77.3.{}/24, fd10::{}/64\nAllowMaps = tcp/8000-9000, third-party\n"
        "Expires = 2026-12-02T03:04:05Z\n",
        name, key.toBase64(), countingKey(70).toBase64(), host, host);
  }

  Result<Verdict> complete(const crypto::PublicKey& joining) {
    return completeInvitation(file, {enrolment, joining}, clock, random);
  }
  [[nodiscard]] config::Config loaded() const {
    const config::Outcome outcome = config::load(file);
    REQUIRE(outcome.ok());
    return *outcome.config;
  }

  ScratchDirectory scratch;
  const std::filesystem::path file = scratch.file("adit0.conf");
  const crypto::PublicKey enrolment = countingKey(90).publicKey();
  const crypto::PublicKey nas = countingKey(40).publicKey();
  const crypto::PublicKey other = countingKey(41).publicKey();
  FakeClock clock;
  SeededRandom random{1};
};

}  // namespace

TEST_CASE_METHOD(Files, "join: the first key becomes a peer", "[enrol]") {
  REQUIRE(complete(nas) == Verdict::Accepted);
  const config::Config config = loaded();
  REQUIRE(config.peers.size() == 1);
  const config::PeerConfig& peer = config.peers[0];
  CHECK(peer.name == "nas");
  CHECK(peer.publicKey == nas);
  REQUIRE(peer.presharedKey);
  CHECK_FALSE(peer.presharedKey->isZero());
  CHECK(peer.allowedIps ==
        std::vector{*Prefix::parse("10.77.3.2/32"), *Prefix::parse("fd10::2/128")});
  CHECK(peer.allowMaps.size() == 1);
  CHECK(peer.allowThirdParty);
  REQUIRE(config.invitations.size() == 1);
  CHECK(config.invitations[0].bound == nas);
  CHECK_THAT(scratch.read("adit0.d/peer-nas.conf"), Contains("keep this comment"));
  struct stat about {};
  REQUIRE(::stat(scratch.file("adit0.d/peer-nas.conf").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE_METHOD(Files, "join: the same key again is accepted, and nothing is written", "[enrol]") {
  REQUIRE(complete(nas) == Verdict::Accepted);
  const std::string before = scratch.read("adit0.d/peer-nas.conf");
  CHECK(complete(nas) == Verdict::Accepted);
  CHECK(scratch.read("adit0.d/peer-nas.conf") == before);
}

TEST_CASE_METHOD(Files, "join: another key is refused, before and after the end", "[enrol]") {
  REQUIRE(complete(nas) == Verdict::Accepted);
  const std::string before = scratch.read("adit0.d/peer-nas.conf");
  CHECK(complete(other) == Verdict::Taken);
  clock.advance(std::chrono::hours(1));
  CHECK(complete(other) == Verdict::Taken);
  CHECK(scratch.read("adit0.d/peer-nas.conf") == before);
}

TEST_CASE_METHOD(Files, "join: not after the end", "[enrol]") {
  clock.advance(std::chrono::seconds(1));
  const std::string before = scratch.read("adit0.d/peer-nas.conf");
  CHECK(complete(nas) == Verdict::Expired);
  CHECK(scratch.read("adit0.d/peer-nas.conf") == before);
}

TEST_CASE_METHOD(Files, "join: not without an invitation, and not once the peer is gone",
                 "[enrol]") {
  CHECK(completeInvitation(file, {other, nas}, clock, random) == Verdict::Withdrawn);
  REQUIRE(complete(nas) == Verdict::Accepted);
  std::string text = scratch.read("adit0.d/peer-nas.conf");
  text.erase(text.find("[Peer]"));
  scratch.write("adit0.d/peer-nas.conf", text);
  CHECK(complete(nas) == Verdict::Withdrawn);
  std::filesystem::remove(scratch.file("adit0.d/peer-nas.conf"));
  CHECK(complete(nas) == Verdict::Withdrawn);
}

TEST_CASE_METHOD(Files, "join: keys that are in use already are refused", "[enrol]") {
  const std::string before = scratch.read("adit0.d/peer-nas.conf");
  CHECK_FALSE(complete(countingKey(1).publicKey()));
  CHECK_FALSE(complete(enrolment));
  CHECK_FALSE(complete(crypto::PublicKey{}));
  scratch.write("adit0.d/peer-b.conf", "[Peer]\nPublicKey = " + nas.toBase64() + "\n");
  CHECK_FALSE(complete(nas));
  CHECK(scratch.read("adit0.d/peer-nas.conf") == before);
}

TEST_CASE_METHOD(Files, "join: nothing is written while the configuration has mistakes",
                 "[enrol]") {
  scratch.write("adit0.d/wrong.conf", "[Peer]\nPublicKey = no\n");
  const std::string before = scratch.read("adit0.d/peer-nas.conf");
  const auto verdict = complete(nas);
  REQUIRE_FALSE(verdict);
  CHECK_THAT(verdict.error().message, Contains("wrong.conf:2"));
  CHECK(scratch.read("adit0.d/peer-nas.conf") == before);
}

TEST_CASE_METHOD(Files, "join: what a person has added to the file stays", "[enrol]") {
  std::string text = scratch.read("adit0.d/peer-nas.conf");
  text += "\n[Map]\nListen = tcp/2222\nTo = 10.77.3.2:22";
  scratch.write("adit0.d/peer-nas.conf", text);
  REQUIRE(complete(nas) == Verdict::Accepted);
  CHECK(loaded().maps.size() == 1);
  CHECK(loaded().peers.size() == 1);
}

TEST_CASE_METHOD(Files, "join: an invitation in the person's own file is not completed",
                 "[enrol]") {
  std::filesystem::remove(scratch.file("adit0.d/peer-nas.conf"));
  const std::string text = scratch.read("adit0.conf") + invitation("nas", enrolment, 2);
  scratch.write("adit0.conf", text);
  const auto verdict = complete(nas);
  REQUIRE_FALSE(verdict);
  CHECK_THAT(verdict.error().message, Contains("outside of"));
  CHECK(scratch.read("adit0.conf") == text);
}

TEST_CASE_METHOD(Files, "join: one change at a time", "[enrol]") {
  auto held = lockPeerFiles(file);
  REQUIRE(held);
  const auto verdict = complete(nas);
  REQUIRE_FALSE(verdict);
  CHECK_THAT(verdict.error().message, Contains("try again"));
  held->reset();
  CHECK(complete(nas) == Verdict::Accepted);
}
