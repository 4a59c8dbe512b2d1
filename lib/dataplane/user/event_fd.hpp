// Wakes a thread that sleeps in poll(2).
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "util/unique_fd.hpp"

namespace adit::dataplane::user {

/// Thread-safe.
class EventFd {
 public:
  EventFd() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool isOpen() const { return static_cast<bool>(fd_); }
  /// Makes the descriptor readable until the next drain().
  void notify() const {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, that is, when it is readable anyway.
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof(one));
  }
  void drain() const {
    std::uint64_t value = 0;
    [[maybe_unused]] const auto got = ::read(fd_.get(), &value, sizeof(value));
  }

 private:
  UniqueFd fd_;
};

}  // namespace adit::dataplane::user
