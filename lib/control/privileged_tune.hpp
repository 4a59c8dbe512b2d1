// The writes of tuning, as the process that kept root allows them.
#pragma once

#include <set>
#include <string>

#include "config/model.hpp"
#include "tune/machine.hpp"
#include "util/result.hpp"

namespace adit::control {

/// Writes below /proc and /sys what lib/tune's list allows (tune/permitted.hpp), for the NICs that
/// the configuration leads to. What was written once may be put back whatever the configuration
/// says by then.
class TuneWriter {
 public:
  /// `root` is / except in tests. What an earlier daemon recorded for `interface` counts as
  /// written.
  TuneWriter(std::string interface, const std::string& root);

  /// The kernel's errno in the error's code; 0 for what is not allowed.
  Result<void> write(const config::Config* config, const std::string& path,
                     const std::string& value);

 private:
  [[nodiscard]] bool isAskedFor(const config::Config& config, const std::string& path) const;

  std::string interface_;
  tune::RootedFiles files_;
  std::set<std::string> written_;
};

}  // namespace adit::control
