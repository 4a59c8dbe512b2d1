#include "bench/interrupt.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>

namespace adit::bench {
namespace {

volatile std::sig_atomic_t caught = 0;
volatile std::sig_atomic_t eventDescriptor = -1;

void remember(int number) {
  const int before = errno;
  if (caught == 0) caught = number;
  const std::uint64_t one = 1;
  // Nothing can be done about a failure here, and an eventfd that is full is readable already.
  [[maybe_unused]] const ssize_t written = ::write(eventDescriptor, &one, sizeof one);
  errno = before;
}

}  // namespace

Interrupt::Interrupt() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw std::runtime_error("eventfd");
  caught = 0;
  eventDescriptor = event_.get();
  struct sigaction action {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

int Interrupt::signal() const {
  return caught;
}

}  // namespace adit::bench
