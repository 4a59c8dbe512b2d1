#include "util/clock.hpp"

#include <ctime>

namespace adit {
namespace {

std::chrono::nanoseconds read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

BootTime SystemClock::now() const {
  return read(CLOCK_BOOTTIME);
}

std::chrono::nanoseconds SystemClock::realTime() const {
  return read(CLOCK_REALTIME);
}

}  // namespace adit
