#include "dataplane/user/idle_wait.hpp"

#include <sched.h>

#include <algorithm>

namespace adit::dataplane::user {
namespace {

using Time = std::chrono::steady_clock;

constexpr std::chrono::microseconds kSpin{20};
/// A yield that nobody else makes use of takes about one.
constexpr std::chrono::microseconds kContended{50};
// A slice given away at the wrong moment delays packets for long after it, since the scheduler lets
// the others catch up: on a machine that stays busy, the next try comes later each time.
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{12'800};
/// So many undisturbed waits in a row, and the machine is no longer taken for busy.
constexpr unsigned kCalm = 100;

}  // namespace

IdleWait::IdleWait() : pause_(kFirstPause) {}

void pollNow(std::span<pollfd> descriptors) {
  if (::poll(descriptors.data(), descriptors.size(), 0) > 0) return;
  for (pollfd& descriptor : descriptors) {
    descriptor.revents = 0;
  }
}

bool IdleWait::yield() {
  const auto before = Time::now();
  ::sched_yield();
  return Time::now() - before < kContended;
}

bool IdleWait::spin(std::span<pollfd> descriptors) {
  const auto start = Time::now();
  if (start < noSpinBefore_) return false;
  bool ready = false;
  do {
    ready = ::poll(descriptors.data(), descriptors.size(), 0) > 0;
    if (!ready && !yield()) {
      noteContention();
      return false;
    }
  } while (!ready && Time::now() - start < kSpin);
  if (++calm_ >= kCalm) pause_ = kFirstPause;
  return ready;
}

void IdleWait::noteContention() {
  calm_ = 0;
  noSpinBefore_ = Time::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

void IdleWait::waitReady(std::span<pollfd> descriptors) {
  if (spin(descriptors)) return;
  if (::poll(descriptors.data(), descriptors.size(), -1) > 0) return;
  for (pollfd& descriptor : descriptors) {
    descriptor.revents = 0;
  }
}

}  // namespace adit::dataplane::user
