#include "dataplane/user/idle_wait.hpp"

#include <sched.h>

#include <chrono>

namespace adit::dataplane::user {
namespace {

constexpr std::chrono::microseconds kSpin{20};

}  // namespace

void pollNow(std::span<pollfd> descriptors) {
  if (::poll(descriptors.data(), descriptors.size(), 0) > 0) return;
  for (pollfd& descriptor : descriptors) {
    descriptor.revents = 0;
  }
}

void waitReady(std::span<pollfd> descriptors) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    if (::poll(descriptors.data(), descriptors.size(), 0) > 0) return;
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < until);
  if (::poll(descriptors.data(), descriptors.size(), -1) > 0) return;
  for (pollfd& descriptor : descriptors) {
    descriptor.revents = 0;
  }
}

}  // namespace adit::dataplane::user
