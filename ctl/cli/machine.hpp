// The mappings of a configuration on this machine, as the daemon would apply them.
#pragma once

#include "control/control_protocol.hpp"
#include "control/desired.hpp"
#include "control/paths.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct Machine {
  control::NamedConfig named;
  config::Config config;
  /// What the daemon says.
  control::DeviceView view;
  control::DesiredNetwork desired;
};

/// Of an interface that is up.
Result<Machine> machineOf(const std::string& name);

}  // namespace adit::cli
