// From [Tune] to what lib/tune is asked for.
#pragma once

#include <string>

#include "config/model.hpp"
#include "tune/plan.hpp"

namespace adit::control {

/// Whether the file asks for any tuning.
bool wantsTuning(const config::TuneConfig& tune);

/// What [Tune] says: with Profile = auto the keys that are not given are computed, with explicit
/// they are off. Profile = off is read as auto: whoever asks does so by hand.
tune::Settings tuneSettings(const config::TuneConfig& tune);

/// For `interface` of that configuration: the NICs behind Public, or behind the default route, and
/// those that a key names.
tune::Request tuneRequest(const config::Config& config, const std::string& interface,
                          const tune::Files& files);

}  // namespace adit::control
