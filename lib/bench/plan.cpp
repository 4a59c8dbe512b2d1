#include "bench/plan.hpp"

#include <algorithm>

namespace adit::bench {

std::vector<Step> planSteps(const PlanOptions& options) {
  constexpr std::array kDirections{Direction::Send, Direction::Receive};
  std::vector<unsigned> streams = options.streams;
  std::ranges::sort(streams);
  const auto repeated = std::ranges::unique(streams);
  streams.erase(repeated.begin(), repeated.end());
  std::vector<Step> steps;
  for (const Layer layer : kLayers) {
    if (std::ranges::find(options.layers, layer) == options.layers.end()) continue;
    for (const unsigned count : streams) {
      for (const Direction direction : kDirections) {
        steps.push_back({layer, Transport::Tcp, count, direction});
      }
    }
    if (layer == Layer::Mapped) continue;
    for (const Direction direction : kDirections) {
      steps.push_back({layer, Transport::Udp, 1, direction});
    }
  }
  return steps;
}

}  // namespace adit::bench
