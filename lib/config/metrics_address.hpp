// Where a daemon serves its metrics.
#pragma once

#include <string>

#include "util/address.hpp"

namespace adit::config {

struct MetricsAddress {
  /// A loopback address, with a port.
  Endpoint endpoint;
  /// Absolute path of a unix socket; then there is no endpoint. Empty for none.
  std::string path;
  /// "127.0.0.1:9586", "unix:/run/adit/adit0.metrics"
  [[nodiscard]] std::string toString() const {
    return path.empty() ? endpoint.toString() : "unix:" + path;
  }
  friend bool operator==(const MetricsAddress&, const MetricsAddress&) = default;
};

}  // namespace adit::config
