#include "bench/model.hpp"

#include <algorithm>

namespace adit::bench {

std::string_view layerName(Layer layer) {
  switch (layer) {
    case Layer::Bare:
      return "bare";
    case Layer::Tunnel:
      return "tunnel";
    case Layer::Mapped:
      return "mapped";
  }
  return "";
}

std::optional<Layer> layerFromName(std::string_view name) {
  const auto* found = std::ranges::find(kLayers, name, layerName);
  return found == kLayers.end() ? std::nullopt : std::optional(*found);
}

std::string_view layerTitle(Layer layer) {
  switch (layer) {
    case Layer::Bare:
      return "bare link";
    case Layer::Tunnel:
      return "tunnel";
    case Layer::Mapped:
      return "mapped port";
  }
  return "";
}

std::string loadTitle(const Step& step) {
  return fmt::format("{}, {} stream{}, {}", step.transport == Transport::Tcp ? "TCP" : "UDP",
                     step.streams, step.streams == 1 ? "" : "s",
                     step.direction == Direction::Send ? "send" : "receive");
}

std::string stepTitle(const Step& step) {
  return fmt::format("{}, {}", layerTitle(step.layer), loadTitle(step));
}

const CoreLoad* busiestCore(const StepResult& result) {
  const auto busiest = std::ranges::max_element(result.cores, {}, &CoreLoad::busy);
  return busiest == result.cores.end() ? nullptr : &*busiest;
}

const StepResult* findStep(const Report& report, const Step& step) {
  const auto found = std::ranges::find(report.results, step, &StepResult::step);
  return found == report.results.end() ? nullptr : &*found;
}

bool measuredAnything(const Report& report) {
  return std::ranges::any_of(report.results,
                             [](const StepResult& result) { return result.figures.has_value(); });
}

Result<Ceiling> ceilingOf(const Report& report, std::optional<double> cipherMegabytes) {
  Ceiling ceiling;
  for (const StepResult& result : report.results) {
    const Step& step = result.step;
    if (step.layer == Layer::Bare && step.transport == Transport::Tcp && result.figures) {
      ceiling.linkMbps = std::max(ceiling.linkMbps, result.figures->mbps);
    }
  }
  if (ceiling.linkMbps <= 0) return fail("the bare link was not measured with TCP");
  if (!cipherMegabytes) return fail("which cipher the tunnel uses is not known");
  ceiling.cipherMbps = *cipherMegabytes * 8;
  ceiling.mbps = std::min(ceiling.linkMbps, ceiling.cipherMbps);
  return ceiling;
}

}  // namespace adit::bench
