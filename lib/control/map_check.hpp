// Whether the mappings of a configuration may be applied on this machine.
#pragma once

#include <string>

#include "config/model.hpp"
#include "util/result.hpp"

namespace adit::control {

/// Fails with the mapping's line where a mapping would take a port away from a program of this
/// machine, or from another tunnel, without saying Override.
Result<void> checkMappings(const std::string& interface, const config::Config& config);

}  // namespace adit::control
