#include "dataplane/user/peer_timers.hpp"

#include <catch2/catch.hpp>

using namespace adit;
using namespace adit::dataplane;
using namespace adit::dataplane::user;
using namespace std::chrono_literals;

namespace {

constexpr BootTime kStart = 1000s;

// A peer with a fresh, usable session and an endpoint.
struct Fixture {
  PeerTimers timers;
  PeerActivity activity;
  PeerSessions sessions{.usable = true, .any = true, .newestStart = kStart, .rejectAfter = 180s};
  PeerNeeds needs{.staged = false, .hasEndpoint = true, .persistentKeepalive = 0};

  TimerActions at(BootTime now) { return timers.evaluate(now, activity, sessions, needs); }
  void withoutKeys() { sessions = {}; }
};

bool quiet(const TimerActions& actions) {
  return !actions.sendKeepalive && !actions.wipeKeys && !actions.handshake;
}

}  // namespace

TEST_CASE("a peer without keys and traffic needs nothing, ever", "[timers]") {
  Fixture peer;
  peer.withoutKeys();
  const auto actions = peer.at(kStart);
  CHECK(quiet(actions));
  CHECK_FALSE(actions.next);
}

TEST_CASE("passive keepalive: 10 s after data came and nothing was sent", "[timers]") {
  Fixture peer;
  peer.activity.unacknowledgedSince = kStart + 5s;
  auto actions = peer.at(kStart + 6s);
  CHECK(quiet(actions));
  CHECK(actions.next == kStart + 15s);
  CHECK(quiet(peer.at(kStart + 15s - 1ns)));
  CHECK(peer.at(kStart + 15s).sendKeepalive);
  // Something was sent.
  peer.activity.unacknowledgedSince = {};
  peer.activity.lastSent = kStart + 15s;
  CHECK(quiet(peer.at(kStart + 60s)));
}

TEST_CASE("passive keepalive needs a key", "[timers]") {
  Fixture peer;
  peer.sessions.usable = false;
  peer.activity.unacknowledgedSince = kStart;
  CHECK_FALSE(peer.at(kStart + 11s).sendKeepalive);
}

TEST_CASE("persistent keepalive: after its interval without any packet", "[timers]") {
  Fixture peer;
  peer.needs.persistentKeepalive = 25;
  peer.activity.lastSent = kStart;
  peer.activity.lastReceived = kStart + 5s;
  auto actions = peer.at(kStart + 10s);
  CHECK(quiet(actions));
  CHECK(actions.next == kStart + 30s);
  CHECK(peer.at(kStart + 30s).sendKeepalive);
  peer.activity.lastSent = kStart + 30s;
  CHECK(peer.at(kStart + 30s).next == kStart + 55s);
}

TEST_CASE("persistent keepalive is sent at once when it is switched on", "[timers]") {
  Fixture peer;
  peer.needs.persistentKeepalive = 25;
  CHECK(peer.at(kStart).sendKeepalive);
}

TEST_CASE("a due persistent keepalive without a key asks for a handshake", "[timers]") {
  Fixture peer;
  peer.withoutKeys();
  peer.needs.persistentKeepalive = 25;
  auto actions = peer.at(kStart);
  CHECK(actions.handshake == HandshakeReason::Keepalive);
  CHECK_FALSE(actions.sendKeepalive);
  CHECK(actions.next == kStart + 5s);
  SECTION("but not while nobody knows where to") {
    Fixture lost;
    lost.withoutKeys();
    lost.needs = {.staged = false, .hasEndpoint = false, .persistentKeepalive = 25};
    CHECK(quiet(lost.at(kStart)));
  }
}

TEST_CASE("staged packets ask for a handshake at once, again every 5 s", "[timers]") {
  Fixture peer;
  peer.withoutKeys();
  peer.needs.staged = true;
  CHECK(peer.at(kStart).handshake == HandshakeReason::Staged);
  CHECK_FALSE(peer.at(kStart + 5s - 1ns).handshake);
  CHECK(peer.at(kStart + 1s).next == kStart + 5s);
  CHECK(peer.at(kStart + 5s).handshake == HandshakeReason::Staged);
  SECTION("until they are dropped") {
    peer.needs.staged = false;
    CHECK_FALSE(peer.at(kStart + 10s).handshake);
    SECTION("and then at once anew") {
      peer.needs.staged = true;
      CHECK(peer.at(kStart + 11s).handshake == HandshakeReason::Staged);
    }
  }
  SECTION("or until there is a key") {
    peer.sessions = Fixture().sessions;
    CHECK_FALSE(peer.at(kStart + 10s).handshake);
  }
}

TEST_CASE("after a handshake the next wish does not wait", "[timers]") {
  Fixture peer;
  peer.withoutKeys();
  peer.needs.staged = true;
  CHECK(peer.at(kStart).handshake);
  peer.timers.keyInstalled();
  CHECK(peer.at(kStart + 1s).handshake == HandshakeReason::Staged);
}

TEST_CASE("no reply: 15 s after data was sent without any authenticated packet", "[timers]") {
  Fixture peer;
  peer.activity.unansweredSince = kStart;
  peer.activity.lastDataSent = kStart + 3s;
  CHECK_FALSE(peer.at(kStart + 15s - 1ns).handshake);
  CHECK(peer.at(kStart + 1s).next == kStart + 15s);
  CHECK(peer.at(kStart + 15s).handshake == HandshakeReason::NoReply);
  CHECK_FALSE(peer.at(kStart + 19s).handshake);
  CHECK(peer.at(kStart + 20s).handshake == HandshakeReason::NoReply);
  SECTION("ends with an answer") {
    peer.activity.unansweredSince = {};
    CHECK_FALSE(peer.at(kStart + 25s).handshake);
  }
  SECTION("ends when nothing was sent for as long as a handshake is tried") {
    CHECK(peer.at(kStart + 3s + 105s - 1ns).handshake);
    CHECK_FALSE(peer.at(kStart + 3s + 110s).handshake);
  }
}

TEST_CASE("an aged key asks for a new one while it is used", "[timers]") {
  Fixture peer;
  peer.activity.keyAged = kStart + 120s;
  CHECK(peer.at(kStart + 120s).handshake == HandshakeReason::KeyAging);
  CHECK_FALSE(peer.at(kStart + 124s).handshake);
  CHECK(peer.at(kStart + 125s).handshake == HandshakeReason::KeyAging);
  CHECK_FALSE(peer.at(kStart + 120s + 91s).handshake);
  peer.activity.keyAged = {};
  CHECK_FALSE(peer.at(kStart + 130s).handshake);
}

TEST_CASE("keys are wiped at three times the reject age of the newest session", "[timers]") {
  Fixture peer;
  auto actions = peer.at(kStart);
  CHECK(actions.next == kStart + 540s);
  CHECK_FALSE(peer.at(kStart + 540s - 1ns).wipeKeys);
  CHECK(peer.at(kStart + 540s).wipeKeys);
  peer.withoutKeys();
  CHECK(quiet(peer.at(kStart + 541s)));
  SECTION("by the key's own limit") {
    Fixture brief;
    brief.sessions.rejectAfter = 2s;
    CHECK(brief.at(kStart + 6s).wipeKeys);
  }
}
