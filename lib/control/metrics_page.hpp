// A device as Prometheus reads it: peers by public key and name, no secrets and no addresses of
// anybody.
#pragma once

#include <string>

#include "control/device_api.hpp"

namespace adit::control {

/// The whole page; docs/metrics.md lists the names.
std::string metricsPage(const DeviceSnapshot& device);

}  // namespace adit::control
