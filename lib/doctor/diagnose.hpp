// From what was seen to what is wrong. Pure: every rule is a function of the observation.
#pragma once

#include <vector>

#include "doctor/finding.hpp"
#include "doctor/observation.hpp"

namespace adit::doctor {

/// All findings, the bottleneck first.
std::vector<Finding> diagnose(const Observation& seen);

}  // namespace adit::doctor
