// The daemon's one loop, over sd-event(3): descriptors, timers on the boot-time clock, signals.
#pragma once

#include <systemd/sd-event.h>

#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "util/clock.hpp"

namespace adit::control {

/// A thing the loop watches; letting go of it ends the watch. Move-only.
class EventSource {
 public:
  EventSource() = default;

  /// For a timer: when to call next, absolute on the boot-time clock; once per call.
  void schedule(BootTime when);
  /// For a timer: not before the next schedule().
  void cancel();
  /// For a descriptor: which of EPOLLIN and EPOLLOUT to wait for.
  void setEvents(std::uint32_t events);
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(state_); }

 private:
  friend class EventLoop;
  struct State;
  struct Release {
    void operator()(State* state) const;
  };
  explicit EventSource(State* state) : state_(state) {}
  std::unique_ptr<State, Release> state_;
};

/// Not thread-safe. Must outlive its sources' callbacks, not the sources themselves.
class EventLoop {
 public:
  /// Throws std::system_error when the kernel has no epoll descriptor left.
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// `callback` gets the epoll events that are ready. The descriptor stays the caller's.
  [[nodiscard]] EventSource watch(int descriptor, std::uint32_t events,
                                  std::function<void(std::uint32_t)> callback);
  /// A timer that is not scheduled yet.
  [[nodiscard]] EventSource timer(std::function<void()> callback);
  /// Blocks the signal's default action and calls back instead.
  [[nodiscard]] EventSource signal(int number, std::function<void()> callback);
  /// Runs `task` from the loop, once, after what is running now. Unlike a callback, a task may call
  /// pumpUntil().
  void post(std::function<void()> task);

  /// From now on tells systemd's watchdog, where there is one, that the loop goes round.
  void keepWatchdog();

  /// Until exit(); returns its code.
  int run();
  void exit(int code) { exitCode_ = code; }
  /// Keeps the loop going until `done`, which something in the loop sets. From outside run() or
  /// from a task.
  void pumpUntil(const bool& done);

 private:
  void step();

  sd_event* event_ = nullptr;
  std::deque<std::function<void()>> tasks_;
  std::optional<int> exitCode_;
};

}  // namespace adit::control
