#include "cli/bench_text.hpp"

#include <algorithm>

#include "cli/table.hpp"

namespace adit::cli {
namespace {

using bench::CoreLoad;
using bench::Report;
using bench::Step;
using bench::StepResult;
using Json = nlohmann::ordered_json;

/// Of those that a table shows.
constexpr std::size_t kShownCores = 4;
/// Columns before this one are words, and the others numbers.
constexpr std::size_t kFirstNumber = 2;

std::string noResult(const Error& reason) {
  return fmt::format("no result: {}", reason.message);
}

/// Small rates have digits behind the point.
std::string rateText(double mbps) {
  return mbps < 100 ? fmt::format("{:.2f}", mbps) : fmt::format("{:.0f}", mbps);
}

std::string coreText(const CoreLoad& core) {
  return fmt::format("{}: {:.0f} ({:.0f})", core.cpu, core.busy(), core.softirq);
}

/// The busiest, in the order of their numbers.
std::string coresText(const StepResult& result) {
  std::vector<CoreLoad> cores = result.cores;
  std::ranges::sort(cores, std::ranges::greater(), &CoreLoad::busy);
  if (cores.size() > kShownCores) cores.resize(kShownCores);
  std::ranges::sort(cores, {}, &CoreLoad::cpu);
  std::string text;
  for (const CoreLoad& core : cores) {
    text += (text.empty() ? "" : "  ") + coreText(core);
  }
  return text.empty() ? "unknown" : text;
}

/// In percent of the same load over the bare link.
std::string ofBare(const Report& report, const StepResult& result) {
  Step below = result.step;
  below.layer = bench::Layer::Bare;
  const StepResult* bare = bench::findStep(report, below);
  if (bare == nullptr || !bare->figures) return "-";
  return fmt::format("{:.0f} %", 100 * result.figures->mbps / bare->figures->mbps);
}

Row resultRow(const Report& report, const StepResult& result) {
  Row row{std::string(bench::layerTitle(result.step.layer)), bench::loadTitle(result.step)};
  if (!result.figures) {
    row.push_back(noResult(result.figures.error()));
    return row;
  }
  const bench::Figures& figures = *result.figures;
  row.push_back(rateText(figures.mbps));
  row.push_back(ofBare(report, result));
  row.push_back(figures.retransmits ? std::to_string(*figures.retransmits) : "-");
  row.push_back(figures.lostPercent ? fmt::format("{:.1f} %", *figures.lostPercent) : "-");
  row.push_back(figures.roundTrip ? fmt::format("{:.2f}", *figures.roundTrip) : "-");
  row.push_back(coresText(result));
  return row;
}

std::string ceilingText(const Report& report) {
  if (!report.ceiling) {
    return fmt::format("Expected ceiling: no result: {}\n", report.ceiling.error().message);
  }
  const bench::Ceiling& ceiling = *report.ceiling;
  std::string text = fmt::format(
      "Expected ceiling of the tunnel: {} Mbit/s, by the {} (one core of {}: {}; bare link: {})\n",
      rateText(ceiling.mbps), ceiling.cipherMbps < ceiling.linkMbps ? "cipher" : "link",
      report.suite, rateText(ceiling.cipherMbps), rateText(ceiling.linkMbps));
  double best = 0;
  for (const StepResult& result : report.results) {
    if (result.step.layer == bench::Layer::Tunnel && result.figures) {
      best = std::max(best, result.figures->mbps);
    }
  }
  if (best > 0) {
    text += fmt::format("The tunnel's best is {:.0f} % of that.\n", 100 * best / ceiling.mbps);
  }
  return text;
}

std::string rateCell(const std::optional<Result<double>>& rate) {
  if (!rate) return "not measured";
  return *rate ? rateText(**rate) : "no result";
}

Json rateJson(const std::optional<Result<double>>& rate) {
  return rate && *rate ? Json(**rate) : Json();
}

}  // namespace

std::string formatStep(std::size_t number, std::size_t all, const StepResult& result) {
  std::string text = fmt::format("[{}/{}] {}: ", number, all, bench::stepTitle(result.step));
  if (!result.figures) return text + noResult(result.figures.error());
  text += fmt::format("{} Mbit/s", rateText(result.figures->mbps));
  if (const CoreLoad* busiest = bench::busiestCore(result)) {
    text += fmt::format(", cpu{} {:.0f} % busy (softirq {:.0f} %)", busiest->cpu, busiest->busy(),
                        busiest->softirq);
  }
  return text;
}

std::string formatReport(const Report& report) {
  std::string text = fmt::format("{}: data plane {}, cipher {}, MTU {}\n\n", report.peer,
                                 report.backend.empty() ? "unknown" : report.backend,
                                 report.suite.empty() ? "unknown" : report.suite,
                                 report.mtu == 0 ? "unknown" : std::to_string(report.mtu));
  std::vector<Row> rows{{"LAYER", "LOAD", "MBIT/S", "OF BARE", "RETRANSMITS", "LOST", "RTT MS",
                         "CORE: BUSY % (SOFTIRQ %)"}};
  for (const StepResult& result : report.results) {
    rows.push_back(resultRow(report, result));
  }
  text += table(rows, kFirstNumber) + '\n' + ceilingText(report);
  for (const std::string& note : report.notes) {
    text += fmt::format("note: {}\n", note);
  }
  return text;
}

std::string formatComparison(const Report& before, const Report& after) {
  std::vector<Row> rows{{"LAYER", "LOAD", "BEFORE", "AFTER", "CHANGE"}};
  std::string reasons;
  const auto explain = [&](const Step& step, const char* when, const auto& rate) {
    if (!rate || *rate) return;
    reasons +=
        fmt::format("no result {}: {}: {}\n", when, bench::stepTitle(step), rate->error().message);
  };
  for (const bench::Comparison& each : bench::compare(before, after)) {
    const auto change = each.change();
    rows.push_back({std::string(bench::layerTitle(each.step.layer)), bench::loadTitle(each.step),
                    rateCell(each.before), rateCell(each.after),
                    change ? fmt::format("{:+.1f} %", *change) : "-"});
    explain(each.step, "before", each.before);
    explain(each.step, "after", each.after);
  }
  std::string text = fmt::format("Mbit/s, before ({}) and after ({})\n\n{}{}", before.started,
                                 after.started, table(rows, kFirstNumber), reasons);
  for (const std::string& line : bench::differences(before, after)) {
    text += fmt::format("note: differs too: {}\n", line);
  }
  return text;
}

Json comparisonToJson(const Report& before, const Report& after) {
  Json json{{"before", before.started},
            {"results", Json::array()},
            {"differences", bench::differences(before, after)}};
  for (const bench::Comparison& each : bench::compare(before, after)) {
    const auto change = each.change();
    json["results"].push_back(
        {{"layer", bench::layerName(each.step.layer)},
         {"protocol", each.step.transport == bench::Transport::Tcp ? "tcp" : "udp"},
         {"streams", each.step.streams},
         {"direction", each.step.direction == bench::Direction::Send ? "send" : "receive"},
         {"before_mbps", rateJson(each.before)},
         {"after_mbps", rateJson(each.after)},
         {"change_percent", change ? Json(*change) : Json()}});
  }
  return json;
}

}  // namespace adit::cli
