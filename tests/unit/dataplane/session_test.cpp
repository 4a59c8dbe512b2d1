#include "dataplane/user/session.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "dataplane/user/key_history.hpp"
#include "dataplane/user/key_slots.hpp"
#include "dataplane/user/peer.hpp"
#include "sessions.hpp"

using namespace adit;
using namespace adit::dataplane::user;
using namespace std::chrono_literals;
using test::keysFor;

namespace {

constexpr BootTime kStart = 1000s;

struct Sessions {
  Peer peer{1, {}};
  std::vector<std::unique_ptr<Session>> all;

  Session* make(noise::KeySlot slot) {
    test::prepareAead();
    const auto number = static_cast<std::uint32_t>(all.size() + 1);
    all.push_back(std::make_unique<Session>(peer, keysFor(slot, number), kStart));
    return all.back().get();
  }
};

}  // namespace

TEST_CASE("counters are given out once, up to the limit", "[session]") {
  Sessions sessions;
  test::prepareAead();
  auto keys = keysFor(noise::KeySlot::Current, 1);
  keys.limits.rejectAfterMessages = 100;
  Session session(sessions.peer, keys, kStart);
  CHECK(session.reserve(10) == 0);
  CHECK(session.reserve(1) == 10);
  CHECK(session.reserve(64) == 11);
  CHECK(session.canSend(kStart));
  CHECK(session.reserve(24) == 75);
  CHECK(session.canSend(kStart));
  // What is left serves nobody: a batch that is tried again and again would never get through.
  CHECK_FALSE(session.reserve(2));
  CHECK_FALSE(session.canSend(kStart));
  for (int i = 0; i < 1000; ++i)
    CHECK_FALSE(session.reserve(64));
  CHECK(session.sent() == 100);
}

TEST_CASE("threads never get the same counter, nor one past the limit", "[session]") {
  Sessions sessions;
  test::prepareAead();
  auto keys = keysFor(noise::KeySlot::Current, 1);
  keys.limits.rejectAfterMessages = 20'001;
  Session session(sessions.peer, keys, kStart);
  std::array<std::vector<std::uint64_t>, 3> given;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < given.size(); ++t) {
    threads.emplace_back([&session, &mine = given[t], t] {
      while (const auto first = session.reserve(t + 1)) {
        for (std::uint64_t i = 0; i <= t; ++i)
          mine.push_back(*first + i);
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& mine : given)
    all.insert(all.end(), mine.begin(), mine.end());
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
  CHECK(all.back() < 20'001);
  CHECK(all.size() > 19'990);
  CHECK(session.sent() == 20'001);
}

TEST_CASE("the greatest limit does not overflow", "[session]") {
  Sessions sessions;
  test::prepareAead();
  auto keys = keysFor(noise::KeySlot::Current, 1);
  keys.limits.rejectAfterMessages = ~std::uint64_t{0};
  Session session(sessions.peer, keys, kStart);
  CHECK(session.reserve(64) == 0);
  CHECK(session.canSend(kStart));
}

TEST_CASE("age ends a key, and asks for a new one before", "[session]") {
  Sessions sessions;
  const Session& initiator = *sessions.make(noise::KeySlot::Current);
  const Session& responder = *sessions.make(noise::KeySlot::Next);
  CHECK(initiator.canSend(kStart + 180s - 1ns));
  CHECK_FALSE(initiator.canSend(kStart + 180s));
  CHECK(initiator.expired(kStart + 180s));
  CHECK_FALSE(initiator.agedForSending(kStart + 120s - 1ns));
  CHECK(initiator.agedForSending(kStart + 120s));
  CHECK_FALSE(responder.agedForSending(kStart + 170s));
  CHECK_FALSE(initiator.agedForReceiving(kStart + 165s - 1ns));
  CHECK(initiator.agedForReceiving(kStart + 165s));
  CHECK_FALSE(responder.agedForReceiving(kStart + 170s));
}

TEST_CASE("short limits never ask on receipt before they would on sending", "[session]") {
  Sessions sessions;
  test::prepareAead();
  auto keys = keysFor(noise::KeySlot::Current, 1);
  keys.limits.rekeyAfter = 4s;
  keys.limits.rejectAfter = 6s;
  const Session session(sessions.peer, keys, kStart);
  CHECK_FALSE(session.agedForReceiving(kStart + 3s));
  CHECK(session.agedForReceiving(kStart + 4s));
}

TEST_CASE("either role asks for a new key after many messages", "[session]") {
  Sessions sessions;
  test::prepareAead();
  for (const auto slot : {noise::KeySlot::Current, noise::KeySlot::Next}) {
    auto keys = keysFor(slot, 1);
    keys.limits.rekeyAfterMessages = 10;
    Session session(sessions.peer, keys, kStart);
    session.reserve(9);
    CHECK_FALSE(session.agedForSending(kStart));
    session.reserve(1);
    CHECK(session.agedForSending(kStart));
  }
}

TEST_CASE("the responder's session becomes current by its first packet", "[key-slots]") {
  Sessions sessions;
  KeySlots slots;
  Session* first = sessions.make(noise::KeySlot::Next);
  slots.installNext(first);
  CHECK(slots.current() == nullptr);
  CHECK(slots.promote(first));
  CHECK(slots.current() == first);
  CHECK_FALSE(slots.promote(first));

  Session* second = sessions.make(noise::KeySlot::Next);
  slots.installNext(second);
  CHECK(slots.current() == first);
  // Packets under the old key change nothing.
  CHECK_FALSE(slots.promote(first));
  CHECK(slots.promote(second));
  CHECK(slots.all() == std::array<Session*, 3>{second, first, nullptr});
  CHECK_FALSE(first->retired());

  Session* third = sessions.make(noise::KeySlot::Next);
  slots.installNext(third);
  CHECK(first->retired());
  CHECK(slots.all() == std::array<Session*, 3>{second, nullptr, third});
  Session* fourth = sessions.make(noise::KeySlot::Next);
  slots.installNext(fourth);
  CHECK(third->retired());
  CHECK_FALSE(slots.promote(third));
  CHECK(slots.current() == second);
}

TEST_CASE("the initiator's session is current at once", "[key-slots]") {
  Sessions sessions;
  KeySlots slots;
  Session* first = sessions.make(noise::KeySlot::Current);
  Session* second = sessions.make(noise::KeySlot::Current);
  Session* third = sessions.make(noise::KeySlot::Current);
  slots.installCurrent(first);
  CHECK(slots.current() == first);
  slots.installCurrent(second);
  CHECK(slots.all() == std::array<Session*, 3>{second, first, nullptr});
  slots.installCurrent(third);
  CHECK(slots.all() == std::array<Session*, 3>{third, second, nullptr});
  CHECK(first->retired());
}

TEST_CASE("an unconfirmed next session outlives an own handshake as previous", "[key-slots]") {
  Sessions sessions;
  KeySlots slots;
  Session* old = sessions.make(noise::KeySlot::Current);
  Session* theirs = sessions.make(noise::KeySlot::Next);
  Session* ours = sessions.make(noise::KeySlot::Current);
  slots.installCurrent(old);
  slots.installNext(theirs);
  slots.installCurrent(ours);
  CHECK(slots.all() == std::array<Session*, 3>{ours, theirs, nullptr});
  CHECK(old->retired());
  CHECK_FALSE(slots.promote(theirs));
  CHECK(slots.current() == ours);
}

TEST_CASE("cleared slots retire all sessions", "[key-slots]") {
  Sessions sessions;
  KeySlots slots;
  Session* current = sessions.make(noise::KeySlot::Current);
  Session* next = sessions.make(noise::KeySlot::Next);
  slots.installCurrent(current);
  slots.installNext(next);
  slots.clear();
  CHECK(slots.current() == nullptr);
  CHECK(current->retired());
  CHECK(next->retired());
}

TEST_CASE("no key is taken twice within 16 sessions", "[key-history]") {
  KeyHistory history;
  for (std::uint32_t i = 1; i <= 16; ++i) {
    REQUIRE(history.add(keysFor(noise::KeySlot::Current, i)));
  }
  for (std::uint32_t i = 1; i <= 16; ++i) {
    auto same = keysFor(noise::KeySlot::Next, i);
    same.localIndex = 77;
    CHECK_FALSE(history.add(same));
    // One direction is enough to repeat a nonce.
    auto sendAgain = keysFor(noise::KeySlot::Current, 100 + i);
    sendAgain.send = same.send;
    CHECK_FALSE(history.add(sendAgain));
    auto swapped = keysFor(noise::KeySlot::Current, 200 + i);
    swapped.send = same.receive;
    CHECK_FALSE(history.add(swapped));
  }
  CHECK(history.add(keysFor(noise::KeySlot::Current, 17)));
  CHECK(history.add(keysFor(noise::KeySlot::Current, 1)));
}
