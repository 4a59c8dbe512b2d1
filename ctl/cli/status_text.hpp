// The text of `adit status`.
#pragma once

#include <chrono>
#include <string>

#include "control/control_protocol.hpp"

namespace adit::cli {

/// Several lines for one interface. `now` is wall-clock time since the epoch.
std::string formatStatus(const control::DeviceView& view, std::chrono::seconds now, bool color);

}  // namespace adit::cli
