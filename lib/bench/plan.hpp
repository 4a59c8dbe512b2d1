// Which runs a benchmark consists of.
#pragma once

#include <vector>

#include "bench/model.hpp"

namespace adit::bench {

struct PlanOptions {
  std::vector<Layer> layers{kLayers.begin(), kLayers.end()};
  /// Numbers of parallel streams.
  std::vector<unsigned> streams{1, 4};
};

/// By layer from the bottom up: TCP with each number of streams, both directions; then UDP with one
/// stream, for the layers where it tells something of its own. A mapped port is of one protocol,
/// and the one that leads to iperf3 has to be TCP, for its control connection.
std::vector<Step> planSteps(const PlanOptions& options);

}  // namespace adit::bench
