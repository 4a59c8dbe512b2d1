#include "dataplane/user/idle_wait.hpp"

#include <sched.h>

namespace adit::dataplane::user {
namespace {

using Time = std::chrono::steady_clock;

constexpr std::chrono::microseconds kSpin{20};
/// A yield that nobody else makes use of takes about one.
constexpr std::chrono::microseconds kContended{50};
constexpr std::chrono::milliseconds kNoSpin{100};

}  // namespace

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
  do {
    if (::poll(descriptors.data(), descriptors.size(), 0) > 0) return true;
    if (!yield()) {
      noSpinBefore_ = Time::now() + kNoSpin;
      return false;
    }
  } while (Time::now() - start < kSpin);
  return false;
}

void IdleWait::waitReady(std::span<pollfd> descriptors) {
  if (spin(descriptors)) return;
  if (::poll(descriptors.data(), descriptors.size(), -1) > 0) return;
  for (pollfd& descriptor : descriptors) {
    descriptor.revents = 0;
  }
}

}  // namespace adit::dataplane::user
