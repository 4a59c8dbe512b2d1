#include "bench/charts.hpp"

#include <algorithm>
#include <cmath>

#include "bench/svg.hpp"

namespace adit::bench {
namespace {

using Anchor = Svg::Anchor;

/// Rates in Mbit/s, or in Gbit/s where they are large; one unit for a chart.
struct Unit {
  double divisor;
  const char* name;
  explicit Unit(double largest)
      : divisor(largest >= 2000 ? 1000 : 1), name(largest >= 2000 ? "Gbit/s" : "Mbit/s") {}
  [[nodiscard]] std::string text(double mbps) const {
    const double value = mbps / divisor;
    return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  }
};

const StepResult* resultOf(const Report& report, Step load, Layer layer) {
  load.layer = layer;
  return findStep(report, load);
}

double largestRate(const Report& report) {
  double largest = report.ceiling ? report.ceiling->mbps : 0;
  for (const StepResult& result : report.results) {
    if (result.figures) largest = std::max(largest, result.figures->mbps);
  }
  return largest;
}

/// Length that `value` has on an axis of `pixels`.
double scaled(double value, const Axis& axis, const Unit& unit, double pixels) {
  return pixels * value / unit.divisor / axis.top;
}

/// All layers of one load, for people who cannot see the bars.
std::string spoken(const Report& report, const Step& load, const Unit& unit) {
  std::string text = loadTitle(load) + ":";
  for (const Layer layer : kLayers) {
    if (const StepResult* result = resultOf(report, load, layer)) {
      text += fmt::format(" {} {}.", layerTitle(layer),
                          result->figures
                              ? fmt::format("{} {}", unit.text(result->figures->mbps), unit.name)
                              : "no result");
    }
  }
  return text;
}

/// Where the bars of throughputChart() are.
struct BarFrame {
  static constexpr double kLeft = 190;
  static constexpr double kWidth = 550;
  static constexpr double kBar = 16;
  static constexpr double kGap = 12;
  static constexpr double kTop = 28;
};

void drawBar(Svg& svg, double y, const StepResult& result, const Axis& axis, const Unit& unit) {
  const Layer layer = result.step.layer;
  if (!result.figures) {
    svg.text(BarFrame::kLeft + 4, y + BarFrame::kBar - 4, Anchor::Start,
             fmt::format("{}: no result", layerTitle(layer)), "small muted");
    return;
  }
  const double mbps = result.figures->mbps;
  const double width = scaled(mbps, axis, unit, BarFrame::kWidth);
  svg.rectangle(BarFrame::kLeft, y, width, BarFrame::kBar - 2,
                fmt::format("fill-{}", layerName(layer)),
                fmt::format("{}: {} {}", stepTitle(result.step), unit.text(mbps), unit.name));
  svg.text(BarFrame::kLeft + width + 4, y + BarFrame::kBar - 4, Anchor::Start, unit.text(mbps),
           "small");
}

void drawScale(Svg& svg, const Axis& axis, double bottom) {
  const double top = BarFrame::kTop;
  for (double tick = 0; tick <= axis.top * 1.0001; tick += axis.step) {
    const double x = BarFrame::kLeft + BarFrame::kWidth * tick / axis.top;
    svg.line(x, top, x, bottom, "grid");
    svg.text(x, bottom + 16, Anchor::Middle, fmt::format("{:.4g}", tick), "small muted");
  }
}

struct Frame {
  double left = 46;
  double top = 10;
  double width = 300;
  double height = 130;
  [[nodiscard]] double bottom() const { return top + height; }
};

/// Grid and labels of a chart whose values go upwards.
void drawGrid(Svg& svg, const Frame& frame, const Axis& axis) {
  for (double tick = 0; tick <= axis.top * 1.0001; tick += axis.step) {
    const double y = frame.bottom() - frame.height * tick / axis.top;
    svg.line(frame.left, y, frame.left + frame.width, y, "grid");
    svg.text(frame.left - 6, y + 4, Anchor::End, fmt::format("{:.4g}", tick), "small muted");
  }
}

struct Part {
  const char* cssClass;
  const char* name;
  double percent;
};

/// From the bottom up.
std::vector<Part> partsOf(const CoreLoad& core) {
  return {{"fill-softirq", "softirq", core.softirq},
          {"fill-system", "system", core.system},
          {"fill-user", "user", core.user},
          {"fill-other", "interrupts and hypervisor", core.irq + core.steal}};
}

void drawCore(Svg& svg, const Frame& frame, double x, double width, const CoreLoad& core) {
  double y = frame.bottom();
  for (const Part& part : partsOf(core)) {
    const double height = frame.height * std::min(part.percent, 100.0) / 100;
    y -= height;
    if (height < 0.05) continue;
    svg.rectangle(x, y, width, height, part.cssClass,
                  fmt::format("cpu{}: {} {:.0f} %", core.cpu, part.name, part.percent));
  }
}

}  // namespace

std::vector<Step> loadsOf(const Report& report) {
  std::vector<Step> loads;
  for (const StepResult& result : report.results) {
    const bool known = std::ranges::any_of(loads, [&](Step load) {
      load.layer = result.step.layer;
      return load == result.step;
    });
    if (!known) loads.push_back(result.step);
  }
  return loads;
}

std::string throughputChart(const Report& report) {
  const double largest = largestRate(report);
  const Unit unit(largest);
  const Axis axis = Axis::upTo(largest / unit.divisor, 6);
  const std::vector<Step> loads = loadsOf(report);
  double bottom = BarFrame::kTop;
  std::string description;
  for (const Step& load : loads) {
    for (const Layer layer : kLayers) {
      if (resultOf(report, load, layer) != nullptr) bottom += BarFrame::kBar;
    }
    bottom += BarFrame::kGap;
    description += spoken(report, load, unit) + ' ';
  }
  Svg svg(BarFrame::kLeft + BarFrame::kWidth + 60, bottom + 40, "Throughput by layer", description);
  drawScale(svg, axis, bottom);
  double y = BarFrame::kTop + BarFrame::kGap / 2;
  for (const Step& load : loads) {
    svg.text(BarFrame::kLeft - 10, y + BarFrame::kBar - 4, Anchor::End, loadTitle(load));
    for (const Layer layer : kLayers) {
      const StepResult* result = resultOf(report, load, layer);
      if (result == nullptr) continue;
      drawBar(svg, y, *result, axis, unit);
      y += BarFrame::kBar;
    }
    y += BarFrame::kGap;
  }
  if (report.ceiling) {
    const double x = BarFrame::kLeft + scaled(report.ceiling->mbps, axis, unit, BarFrame::kWidth);
    svg.line(x, BarFrame::kTop - 6, x, bottom, "ceiling");
    svg.text(x, BarFrame::kTop - 12, Anchor::Middle,
             fmt::format("expected ceiling {}", unit.text(report.ceiling->mbps)), "small");
  }
  svg.text(BarFrame::kLeft + BarFrame::kWidth, bottom + 34, Anchor::End, unit.name, "small muted");
  return std::move(svg).take();
}

std::string courseChart(const Report& report, const Step& load) {
  double largest = 0;
  double longest = 0;
  for (const Layer layer : kLayers) {
    const StepResult* result = resultOf(report, load, layer);
    if (result == nullptr || !result->figures) continue;
    for (const Sample& sample : result->figures->series) {
      largest = std::max(largest, sample.mbps);
      longest = std::max(longest, sample.end);
    }
  }
  if (largest <= 0 || longest <= 0) return "";
  const Frame frame;
  const Unit unit(largest);
  const Axis axis = Axis::upTo(largest / unit.divisor, 4);
  const Axis time = Axis::upTo(longest * 0.98, 5);
  const double seconds = std::max(longest, time.step);
  Svg svg(frame.left + frame.width + 14, frame.bottom() + 36,
          fmt::format("Throughput over time: {}", loadTitle(load)), spoken(report, load, unit));
  drawGrid(svg, frame, axis);
  for (double tick = 0; tick <= seconds * 1.0001; tick += time.step) {
    svg.text(frame.left + frame.width * tick / seconds, frame.bottom() + 16, Anchor::Middle,
             fmt::format("{:.3g}", tick), "small muted");
  }
  for (const Layer layer : kLayers) {
    const StepResult* result = resultOf(report, load, layer);
    if (result == nullptr || !result->figures) continue;
    std::vector<std::pair<double, double>> points;
    for (const Sample& sample : result->figures->series) {
      points.emplace_back(frame.left + frame.width * sample.end / seconds,
                          frame.bottom() - scaled(sample.mbps, axis, unit, frame.height));
    }
    svg.path(points, fmt::format("course line-{}", layerName(layer)));
  }
  svg.text(frame.left, frame.bottom() + 32, Anchor::Start, fmt::format("{}, seconds", unit.name),
           "small muted");
  return std::move(svg).take();
}

std::string processorChart(const StepResult& result) {
  if (result.cores.empty()) return "";
  const Frame frame{.left = 36, .top = 8, .width = 300, .height = 96};
  std::string description;
  for (const CoreLoad& core : result.cores) {
    description +=
        fmt::format("cpu{} {:.0f} % busy, softirq {:.0f} %. ", core.cpu, core.busy(), core.softirq);
  }
  Svg svg(frame.left + frame.width + 10, frame.bottom() + 24,
          fmt::format("Processors: {}", stepTitle(result.step)), description);
  drawGrid(svg, frame, {.top = 100, .step = 50});
  const double slot = frame.width / static_cast<double>(result.cores.size());
  const double bar = std::min(slot * 0.8, 60.0);
  // Labels that would touch each other are left out.
  constexpr double kLabelWidth = 22;
  const auto every = static_cast<std::size_t>(std::ceil(kLabelWidth / slot));
  for (std::size_t i = 0; i < result.cores.size(); ++i) {
    const double middle = frame.left + slot * (static_cast<double>(i) + 0.5);
    drawCore(svg, frame, middle - bar / 2, bar, result.cores[i]);
    if (i % every == 0) {
      svg.text(middle, frame.bottom() + 16, Anchor::Middle,
               result.cores.size() <= 8 ? fmt::format("cpu{}", result.cores[i].cpu)
                                        : std::to_string(result.cores[i].cpu),
               "small muted");
    }
  }
  return std::move(svg).take();
}

}  // namespace adit::bench
