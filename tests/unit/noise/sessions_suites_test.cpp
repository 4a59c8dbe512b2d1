// Choosing the suite: no downgrade, no break with WireGuard.
#include <catch2/catch.hpp>

#include "simulator.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;
using crypto::Suite;

namespace {

struct Simulated : World {
  ~Simulated() {
    for (const auto& what : violations) {
      UNSCOPED_INFO(what);
    }
    CHECK(violations.empty());
  }

  void configure(Side& side, std::optional<Suite> pinned, bool extensions = true) {
    side.policy.pinned = pinned;
    side.policy.extensions = extensions;
    REQUIRE(side.sessions->setPeer(side.policy));
  }
};

std::string nameOf(const std::optional<Suite>& suite) {
  return suite ? std::string(crypto::suiteName(*suite)) : "auto";
}

std::vector<int> suitesOf(const std::vector<Datagram>& datagrams) {
  std::vector<int> suites;
  for (const auto& datagram : datagrams) {
    suites.push_back(datagram[1]);
  }
  return suites;
}

}  // namespace

TEST_CASE("auto and every pin, in both roles, come to the right suite or to none") {
  const std::vector<std::optional<Suite>> settings{std::nullopt, Suite::ChaCha20Poly1305,
                                                   Suite::Aes256Gcm, Suite::Aes128Gcm};
  for (const auto& ofInitiator : settings) {
    for (const auto& ofResponder : settings) {
      CAPTURE(nameOf(ofInitiator), nameOf(ofResponder));
      Simulated world;
      world.configure(world.a, ofInitiator);
      world.configure(world.b, ofResponder);
      // A alone has something to say, so A is the initiator.
      world.traffic(world.a, 1s, 100s);
      world.runFor(100s);

      if (ofInitiator && ofResponder && *ofInitiator != *ofResponder) {
        CHECK(world.b.plane->delivered == 0);
        CHECK(world.b.drops(HandshakeDrop::SuiteRefused) > 0);
        CHECK(world.a.plane->installed.empty());
        CHECK(world.b.plane->installed.empty());
        continue;
      }
      const Suite expected = ofInitiator   ? *ofInitiator
                             : ofResponder ? *ofResponder
                                           : Suite::Aes256Gcm;
      CHECK(world.a.plane->currentSuite() == expected);
      CHECK(world.b.plane->currentSuite() == expected);
      CHECK(world.a.state().suite == expected);
      CHECK(world.b.plane->delivered >= 99);
      CHECK(world.a.state().preferredSuite == expected);
      CHECK(world.b.state().preferredSuite == expected);
      CHECK(world.a.policy.rememberedSuite.value_or(Suite::ChaCha20Poly1305) ==
            (ofInitiator ? Suite::ChaCha20Poly1305 : expected));
      for (const Side* side : {&world.a, &world.b}) {
        const auto& pin = side == &world.a ? ofInitiator : ofResponder;
        for (const auto& keys : side->plane->installed) {
          CHECK((!pin || keys.suite == *pin));
        }
      }
    }
  }
}

TEST_CASE_METHOD(Simulated, "auto: the first handshake is suite 0, then one more for the choice") {
  traffic(a, 1s, 20s);
  runFor(20s);
  CHECK(suitesOf(a.initiations) == std::vector<int>{0, 1});
  CHECK(a.initiationTimes[1] - a.initiationTimes[0] == 5s);
  CHECK(b.initiations.empty());
  CHECK(a.state().peerOffer);
  CHECK(b.state().peerOffer);
}

TEST_CASE_METHOD(Simulated, "the slower side decides") {
  b.speeds = {900, 300, 350};
  b.sessions->setSuiteSpeeds(b.speeds);
  traffic(a, 1s, 20s);
  runFor(20s);
  CHECK(suitesOf(a.initiations) == std::vector<int>{0});
  CHECK(a.state().suite == Suite::ChaCha20Poly1305);
}

TEST_CASE_METHOD(Simulated,
                 "auto against plain WireGuard stays on suite 0, three messages at most") {
  configure(b, std::nullopt, false);
  traffic(a, 1s, 1000s);
  traffic(b, 1s, 1000s);
  runFor(1000s);
  CHECK(a.state().suite == Suite::ChaCha20Poly1305);
  CHECK(a.controls.size() == kControlSends);
  CHECK(b.controls.empty());
  for (const int suite : suitesOf(a.initiations)) {
    CHECK(suite == 0);
  }
  CHECK(a.plane->delivered >= 998);
}

TEST_CASE_METHOD(Simulated,
                 "extensions off is WireGuard: no message, no other suite, either role") {
  configure(a, std::nullopt, false);
  loss = 1;
  a.plane->sendApp();
  runFor(60s);
  loss = 0;
  traffic(a, 1s, 60s);
  runFor(60s);
  for (const int suite : suitesOf(a.initiations)) {
    CHECK(suite == 0);
  }
  CHECK(a.controls.empty());
  CHECK(b.controls.size() == kControlSends);
  CHECK(b.state().suite == Suite::ChaCha20Poly1305);

  configure(b, Suite::Aes256Gcm);
  const auto refused = a.drops(HandshakeDrop::SuiteRefused);
  b.sessions->startHandshake(Side::kPeer);
  runFor(1s);
  CHECK(a.drops(HandshakeDrop::SuiteRefused) == refused + 1);
}

TEST_CASE_METHOD(Simulated, "the choice is remembered for rekeys and over a restart") {
  traffic(a, 1s, 700s);
  runFor(300s);
  const auto before = a.initiations.size();
  CHECK(suitesOf(a.initiations) == std::vector<int>{0, 1, 1, 1});
  CHECK(a.policy.rememberedSuite == Suite::Aes256Gcm);
  CHECK(b.policy.rememberedSuite == Suite::Aes256Gcm);
  a.restart();
  runFor(20s);
  REQUIRE(a.initiations.size() == before + 1);
  CHECK(a.initiations.back()[1] == 1);
  CHECK(a.plane->currentSuite() == Suite::Aes256Gcm);
}

TEST_CASE_METHOD(Simulated, "three unanswered handshakes in a row fall back to suite 0") {
  a.policy.rememberedSuite = Suite::Aes128Gcm;
  a.restart();
  loss = 1;
  a.plane->sendApp();
  runFor(35s);
  CHECK(suitesOf(a.initiations) == std::vector<int>{2, 2, 2, 0, 0, 1, 0});
  CHECK(a.policy.rememberedSuite == Suite::ChaCha20Poly1305);
}

TEST_CASE_METHOD(Simulated, "a remembered suite and a peer that became plain WireGuard") {
  traffic(a, 1s, 2000s);
  runFor(200s);
  REQUIRE(a.state().suite == Suite::Aes256Gcm);
  b.policy.extensions = false;
  b.policy.rememberedSuite.reset();
  b.restart();
  runFor(60s);
  CHECK(a.plane->currentSuite() == Suite::ChaCha20Poly1305);
  CHECK(b.plane->currentSuite() == Suite::ChaCha20Poly1305);
  CHECK_FALSE(a.state().peerOffer);
  const auto before = a.controls.size();
  runFor(1000s);
  CHECK(a.controls.size() - before <= kControlSends);
  CHECK(a.plane->currentSuite() == Suite::ChaCha20Poly1305);
}

TEST_CASE_METHOD(Simulated, "a peer that lost its memory is led back to the choice") {
  traffic(a, 1s, 2000s);
  traffic(b, 1s, 2000s);
  runFor(200s);
  REQUIRE(b.state().suite == Suite::Aes256Gcm);
  b.policy.rememberedSuite.reset();
  b.restart();
  runFor(60s);
  CHECK(a.plane->currentSuite() == Suite::Aes256Gcm);
  CHECK(b.plane->currentSuite() == Suite::Aes256Gcm);
}

TEST_CASE_METHOD(Simulated, "what lets only suite 0 through costs three tries and no session") {
  onHandshake = [](Side&, Datagram& datagram) { return datagram[1] == 0; };
  traffic(a, 1s, 1500s);
  traffic(b, 1s, 1500s);
  runFor(100s);
  CHECK(suitesOf(a.initiations) == std::vector<int>{0, 1, 1, 1});
  CHECK(a.plane->currentSuite() == Suite::ChaCha20Poly1305);
  runFor(1400s);
  CHECK(a.plane->delivered >= 1490);
  CHECK(b.plane->delivered >= 1490);
  const auto suites = suitesOf(a.initiations);
  CHECK(std::ranges::count(suites, 1) <= 9);
  CHECK(a.givenUp == 0);
  // Once it lets them through, the choice is made good.
  onHandshake = nullptr;
  traffic(a, 1s, 800s);
  runFor(800s);
  CHECK(a.plane->currentSuite() == Suite::Aes256Gcm);
}

TEST_CASE_METHOD(Simulated, "lost control messages are repeated, three times in all") {
  int lost = 0;
  onPacket = [&](Side&, Packet& packet) {
    return packet.kind != Packet::Kind::Control || ++lost > 2;
  };
  traffic(a, 1s, 60s);
  runFor(60s);
  CHECK(a.state().suite == Suite::Aes256Gcm);
  CHECK(a.controls.size() <= kControlSends + 1);
}

TEST_CASE_METHOD(Simulated, "a message of a peer is answered once, even when ours are used up") {
  int dropped = 0;
  onPacket = [&](Side& from, Packet& packet) {
    if (packet.kind != Packet::Kind::Control || &from != &b) return true;
    ++dropped;
    return false;
  };
  traffic(a, 1s, 60s);
  runFor(500ms);
  traffic(b, 1s, 59s);
  runFor(59s);
  CHECK(a.controls.size() == kControlSends);
  CHECK_FALSE(a.state().peerOffer);
  CHECK(dropped > 0);
  CHECK(b.state().peerOffer);
  onPacket = nullptr;
  const auto before = a.controls.size();
  a.sessions->control(Side::kPeer, b.controls.front());
  CHECK(a.controls.size() == before + 1);
  CHECK(a.state().peerOffer);
}

TEST_CASE_METHOD(Simulated, "a message that is handed over before its session's event counts") {
  b.plane->confirmDelay = 50ms;
  traffic(a, 1s, 60s);
  runFor(60s);
  CHECK(suitesOf(a.initiations) == std::vector<int>{0, 1});
  CHECK(b.state().suite == Suite::Aes256Gcm);
  CHECK(b.state().preferredSuite == Suite::Aes256Gcm);
  // Its answer; with that, both know each other's.
  CHECK(b.controls.size() == 1);
}

TEST_CASE_METHOD(Simulated, "new speeds are told and the session follows") {
  traffic(a, 1s, 100s);
  runFor(30s);
  REQUIRE(a.state().suite == Suite::Aes256Gcm);
  // B's data plane changed to one without AES instructions.
  b.sessions->setSuiteSpeeds({900, 100, 120});
  runFor(30s);
  CHECK(a.state().suite == Suite::ChaCha20Poly1305);
  CHECK(b.state().suite == Suite::ChaCha20Poly1305);
}

TEST_CASE_METHOD(Simulated, "a new pin ends a session of another suite at once") {
  traffic(a, 1s, 200s);
  traffic(b, 1s, 200s);
  runFor(30s);
  REQUIRE(a.state().suite == Suite::Aes256Gcm);
  SECTION("at the initiator") {
    configure(a, Suite::Aes128Gcm);
    CHECK_FALSE(a.plane->currentSuite());
  }
  SECTION("at the responder") {
    configure(b, Suite::Aes128Gcm);
    CHECK_FALSE(b.plane->currentSuite());
  }
  runFor(100s);
  CHECK(a.plane->currentSuite() == Suite::Aes128Gcm);
  CHECK(b.plane->currentSuite() == Suite::Aes128Gcm);
}

TEST_CASE_METHOD(Simulated, "a peer that floods control messages is heard once per second") {
  traffic(a, 1s, 60s);
  runFor(30s);
  REQUIRE(a.state().suite == Suite::Aes256Gcm);
  onPacket = [](Side&, Packet& packet) { return packet.kind != Packet::Kind::Control; };
  const auto answers = a.controls.size();
  const auto chosen = a.suitesChosen;
  const auto initiations = a.initiations.size();
  const auto message = [](Suite suite) {
    return encodeControl({{SuiteSet::only(suite), {1, 1, 1}}, true});
  };
  for (int i = 0; i < 10'000; ++i) {
    a.sessions->control(Side::kPeer,
                        message(i % 2 == 0 ? Suite::ChaCha20Poly1305 : Suite::Aes256Gcm));
    runFor(1ms);
  }
  CHECK(a.controls.size() - answers <= 11);
  CHECK(a.controls.size() - answers >= 9);
  CHECK(a.suitesChosen - chosen <= 11);
  CHECK(a.initiations.size() - initiations <= 3);
  // The last word counts, and whoever was left without an answer gets it.
  a.sessions->control(Side::kPeer, message(Suite::Aes128Gcm));
  a.sessions->control(Side::kPeer, encodeControl({{SuiteSet::only(Suite::Aes256Gcm), {}}, false}));
  const auto before = a.controls.size();
  runFor(1s);
  CHECK(a.state().peerOffer->allowed == SuiteSet::only(Suite::Aes256Gcm));
  CHECK(a.controls.size() == before + 1);
  runFor(10s);
  CHECK(a.controls.size() == before + 1);
}

TEST_CASE_METHOD(Simulated, "a malformed control message is ignored") {
  traffic(a, 1s, 40s);
  runFor(20s);
  const auto offer = a.state().peerOffer;
  for (const auto text : {"", "01", "0f0100", "0101", "010105ff", "01010301"}) {
    a.sessions->control(Side::kPeer, fromHex(text));
  }
  CHECK(a.state().peerOffer == offer);
}

TEST_CASE_METHOD(Simulated, "no suite but the agreed one is ever installed on either side") {
  loss = 0.2;
  duplicate = 0.2;
  traffic(a, 1s, 600s);
  traffic(b, 1s, 600s);
  runFor(600s);
  for (const auto& ours : a.plane->installed) {
    for (const auto& theirs : b.plane->installed) {
      if (ours.send == theirs.receive) {
        CHECK(ours.suite == theirs.suite);
        CHECK(ours.receive == theirs.send);
        CHECK(ours.localIndex == theirs.remoteIndex);
        CHECK(ours.remoteIndex == theirs.localIndex);
        CHECK(ours.slot != theirs.slot);
      }
    }
  }
}
