// The picture of `adit monitor`: pure, from two looks to lines of text.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "control/control_protocol.hpp"
#include "doctor/cpu_sample.hpp"

namespace adit::cli {

/// One look at everything.
struct MonitorLook {
  /// Monotonic.
  std::chrono::nanoseconds taken{};
  std::chrono::seconds wallClock{};
  doctor::CpuReading cpus;
  /// By interface, in the order of their names.
  std::vector<control::DeviceView> devices;
  /// Interfaces that did not answer, and why.
  std::vector<std::string> failures;
};

struct MonitorSize {
  std::size_t columns = 80;
  /// 0 is unlimited.
  std::size_t rows = 24;
};

/// Lines of at most `columns` characters (of the width of one), at most `rows` of them; what does
/// not fit is counted in the last one. Rates are those between the two looks; of one look alone
/// they are "-". No control characters but colours, where asked for.
std::vector<std::string> monitorLines(const MonitorLook& before, const MonitorLook& now,
                                      const MonitorSize& size, bool color);

}  // namespace adit::cli
