// Waiting for the next packet: a short spin, which saves most of a wake-up's latency, then sleep.
#pragma once

#include <poll.h>

#include <chrono>
#include <span>

namespace adit::dataplane::user {

/// Sets `revents` without waiting.
void pollNow(std::span<pollfd> descriptors);

/// One per thread.
class IdleWait {
 public:
  IdleWait();

  /// Returns when a descriptor is ready; `revents` of all are set. To be called after activity: it
  /// polls for at most 20 µs, giving the processor away in between, before it blocks. Where others
  /// want the processor, giving it away costs a whole time slice; it then blocks at once for a
  /// while, the longer the more often that happens.
  void waitReady(std::span<pollfd> descriptors);

 private:
  /// False when another process took the processor meanwhile.
  static bool yield();
  [[nodiscard]] bool spin(std::span<pollfd> descriptors);

  void noteContention();

  std::chrono::steady_clock::time_point noSpinBefore_{};
  /// How long the next pause will be.
  std::chrono::milliseconds pause_;
  unsigned calm_ = 0;
};

}  // namespace adit::dataplane::user
