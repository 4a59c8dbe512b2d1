// A daemon that is killed and started again while its data plane goes on (adit.ko).
#include <catch2/catch.hpp>

#include "noise/sessions.hpp"
#include "simulator.hpp"

using namespace adit;
using namespace adit::noise;
using namespace adit::noise::test;
using crypto::Suite;

namespace {

struct Restored : World {
  Restored() {
    a.plane->sendApp();
    runFor(1s);
    b.plane->sendApp();
    runFor(20s);
    REQUIRE(b.plane->delivered == 1);
  }
  ~Restored() {
    for (const auto& what : violations) {
      UNSCOPED_INFO(what);
    }
    CHECK(violations.empty());
  }
};

}  // namespace

TEST_CASE_METHOD(Restored, "a restored session goes on without a handshake until its age asks") {
  const PeerState before = a.state();
  const std::size_t initiations = a.initiations.size();
  REQUIRE(a.restartDaemon());
  const PeerState after = a.state();
  CHECK(after.suite == before.suite);
  CHECK(after.role == before.role);
  CHECK(after.lastHandshake == before.lastHandshake);
  CHECK(after.lastHandshakeRealTime == before.lastHandshakeRealTime);
  traffic(a, 1s, 90s);
  runFor(90s);
  CHECK(a.initiations.size() == initiations);
  CHECK(b.plane->delivered == 91);
  traffic(a, 1s, 60s);
  runFor(60s);
  CHECK(a.initiations.size() > initiations);
  CHECK(b.plane->delivered == 151);
  CHECK(*a.state().lastHandshake > *before.lastHandshake);
}

TEST_CASE_METHOD(Restored, "a session whose suite is not allowed any more is not restored") {
  REQUIRE(a.state().suite == Suite::Aes256Gcm);
  a.policy.pinned = Suite::ChaCha20Poly1305;
  CHECK_FALSE(a.restartDaemon());
  CHECK_FALSE(a.state().suite);
  CHECK_FALSE(a.sessions->restoreSession(99, {Suite::Aes256Gcm, Role::Initiator, now}));
}

TEST_CASE_METHOD(Restored, "a restored session that nobody uses is wiped at its time") {
  const auto start = *a.state().lastHandshake;
  REQUIRE(a.restartDaemon());
  CHECK(a.sessions->nextDeadline() == start + 3 * timing.rejectAfter);
  // As if the data plane's own event was lost.
  a.plane->dropKeys();
  b.plane->dropKeys();
  runFor(start + 3 * timing.rejectAfter - now + 1s);
  CHECK_FALSE(a.state().suite);
  CHECK(a.keysDropped == 1);
}

TEST_CASE_METHOD(Restored, "the confirmation of a key of the daemon before is told apart") {
  CHECK_FALSE(b.sessions->keyConfirmed(Side::kPeer));
  CHECK_FALSE(b.sessions->keyConfirmed(99));
  REQUIRE(b.restartDaemon());
  const PeerState before = b.state();
  CHECK_FALSE(b.sessions->keyConfirmed(Side::kPeer));
  CHECK(b.state().lastHandshake == before.lastHandshake);
  // It is looked at in the data plane then, and restored in its turn.
  REQUIRE(b.sessions->restoreSession(Side::kPeer, {Suite::Aes128Gcm, Role::Responder, now}));
  CHECK(b.state().suite == Suite::Aes128Gcm);
  CHECK(b.state().lastHandshake == now);
}
