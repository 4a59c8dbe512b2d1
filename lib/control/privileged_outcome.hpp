// A loaded configuration as bytes, with the place of everything in it, so that the worker says
// FILE:LINE:COLUMN about files that it cannot read.
#pragma once

#include <span>

#include "config/model.hpp"
#include "control/privileged_bytes.hpp"
#include "util/result.hpp"

namespace adit::control {

Bytes encodeOutcome(const config::Outcome& outcome);
/// `bytes` come from the process that kept root: lengths are checked, enumerators are not.
Result<config::Outcome> decodeOutcome(std::span<const std::uint8_t> bytes);

}  // namespace adit::control
