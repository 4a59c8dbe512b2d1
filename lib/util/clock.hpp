// Time, injected wherever a decision depends on it.
#pragma once

#include <chrono>
#include <cstdint>

namespace adit {

/// A point on the boot-time clock: monotonic, and counts suspended time, so that a key's age is
/// right after a resume.
using BootTime = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  /// CLOCK_BOOTTIME.
  [[nodiscard]] virtual BootTime now() const = 0;
  /// CLOCK_REALTIME since the Unix epoch; may step in either direction.
  [[nodiscard]] virtual std::chrono::nanoseconds realTime() const = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override;
  [[nodiscard]] std::chrono::nanoseconds realTime() const override;
};

}  // namespace adit
