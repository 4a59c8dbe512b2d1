// Which data plane serves an interface, and why.
#pragma once

#include <memory>
#include <string>

#include "config/model.hpp"
#include "control/privileged.hpp"
#include "dataplane/dataplane.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace adit::control {

struct ChosenBackend {
  std::unique_ptr<dataplane::DataPlane> dataPlane;
  /// For a person: "adit.ko is not loaded".
  std::string reason;
};

/// Creates the interface, or finds the one that a killed daemon left.
Result<ChosenBackend> openBackend(config::Backend wanted, const std::string& name,
                                  std::uint32_t mtu, const Clock& clock, Privileged& privileged);

}  // namespace adit::control
