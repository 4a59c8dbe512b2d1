#include "control/event_loop.hpp"

#include <sys/epoll.h>

#include <system_error>

namespace adit::control {
namespace {

/// sd-event fails only for want of memory or descriptors, or by a mistake of ours.
void check(int result, const char* what) {
  if (result < 0) {
    throw std::system_error(-result, std::generic_category(), what);
  }
}

std::uint64_t microseconds(BootTime time) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::microseconds>(time).count());
}

}  // namespace

struct EventSource::State {
  sd_event_source* source = nullptr;
  std::function<void(std::uint32_t)> callback;
  bool running = false;
  bool released = false;

  /// A callback may let go of its own source; the state then goes when the callback is done.
  void call(std::uint32_t events) {
    running = true;
    callback(events);
    running = false;
    if (released) {
      delete this;
    }
  }

  static int onIo(sd_event_source*, int, std::uint32_t events, void* self) {
    static_cast<State*>(self)->call(events);
    return 0;
  }
  static int onTimer(sd_event_source*, std::uint64_t, void* self) {
    static_cast<State*>(self)->call(0);
    return 0;
  }
  static int onSignal(sd_event_source*, const signalfd_siginfo*, void* self) {
    static_cast<State*>(self)->call(0);
    return 0;
  }
};

void EventSource::Release::operator()(State* state) const {
  sd_event_source_disable_unref(state->source);
  state->source = nullptr;
  if (state->running) {
    state->released = true;
  } else {
    delete state;
  }
}

void EventSource::schedule(BootTime when) {
  check(sd_event_source_set_time(state_->source, microseconds(when)), "sd_event_source_set_time");
  check(sd_event_source_set_enabled(state_->source, SD_EVENT_ONESHOT),
        "sd_event_source_set_enabled");
}

void EventSource::cancel() {
  check(sd_event_source_set_enabled(state_->source, SD_EVENT_OFF), "sd_event_source_set_enabled");
}

void EventSource::setEvents(std::uint32_t events) {
  check(sd_event_source_set_io_events(state_->source, events), "sd_event_source_set_io_events");
}

EventLoop::EventLoop() {
  check(sd_event_new(&event_), "sd_event_new");
}

EventLoop::~EventLoop() {
  sd_event_unref(event_);
}

EventSource EventLoop::watch(int descriptor, std::uint32_t events,
                             std::function<void(std::uint32_t)> callback) {
  EventSource result(new EventSource::State{nullptr, std::move(callback)});
  check(sd_event_add_io(event_, &result.state_->source, descriptor, events,
                        EventSource::State::onIo, result.state_.get()),
        "sd_event_add_io");
  return result;
}

EventSource EventLoop::timer(std::function<void()> callback) {
  // One millisecond of accuracy: handshake jitter is a third of a second.
  constexpr std::uint64_t kAccuracyMicroseconds = 1000;
  EventSource result(
      new EventSource::State{nullptr, [call = std::move(callback)](std::uint32_t) { call(); }});
  check(sd_event_add_time(event_, &result.state_->source, CLOCK_BOOTTIME, UINT64_MAX,
                          kAccuracyMicroseconds, EventSource::State::onTimer, result.state_.get()),
        "sd_event_add_time");
  result.cancel();
  return result;
}

EventSource EventLoop::signal(int number, std::function<void()> callback) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  EventSource result(
      new EventSource::State{nullptr, [call = std::move(callback)](std::uint32_t) { call(); }});
  check(sd_event_add_signal(event_, &result.state_->source, number, EventSource::State::onSignal,
                            result.state_.get()),
        "sd_event_add_signal");
  return result;
}

void EventLoop::keepWatchdog() {
  check(sd_event_set_watchdog(event_, 1), "sd_event_set_watchdog");
}

void EventLoop::post(std::function<void()> task) {
  tasks_.push_back(std::move(task));
}

void EventLoop::step() {
  if (tasks_.empty()) {
    check(sd_event_run(event_, UINT64_MAX), "sd_event_run");
    return;
  }
  const std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  task();
}

int EventLoop::run() {
  while (!exitCode_) {
    step();
  }
  return *exitCode_;
}

void EventLoop::pumpUntil(const bool& done) {
  while (!done) {
    step();
  }
}

}  // namespace adit::control
