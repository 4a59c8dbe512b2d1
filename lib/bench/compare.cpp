#include "bench/compare.hpp"

namespace adit::bench {
namespace {

std::optional<Result<double>> rateOf(const StepResult* result) {
  if (result == nullptr) return std::nullopt;
  return result->figures.map([](const Figures& figures) { return figures.mbps; });
}

}  // namespace

std::optional<double> Comparison::change() const {
  if (!before || !after || !*before || !*after) return std::nullopt;
  return 100 * (**after - **before) / **before;
}

std::vector<Comparison> compare(const Report& before, const Report& after) {
  std::vector<Comparison> rows;
  for (const StepResult& result : after.results) {
    rows.push_back({result.step, rateOf(findStep(before, result.step)), rateOf(&result)});
  }
  for (const StepResult& result : before.results) {
    if (findStep(after, result.step) == nullptr) {
      rows.push_back({result.step, rateOf(&result), std::nullopt});
    }
  }
  return rows;
}

std::vector<std::string> differences(const Report& before, const Report& after) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view what, const std::string& old, const std::string& now) {
    if (old != now) {
      lines.push_back(fmt::format("{}: {} before, {} after", what, old.empty() ? "unknown" : old,
                                  now.empty() ? "unknown" : now));
    }
  };
  add("the cipher", before.suite, after.suite);
  add("the data plane", before.backend, after.backend);
  add("the MTU", before.mtu == 0 ? "" : std::to_string(before.mtu),
      after.mtu == 0 ? "" : std::to_string(after.mtu));
  add("the peer", before.peer, after.peer);
  add("the kernel", before.kernel, after.kernel);
  add("the processor", before.processor, after.processor);
  add("the number of cores", std::to_string(before.cores), std::to_string(after.cores));
  add("adit", before.aditVersion, after.aditVersion);
  return lines;
}

}  // namespace adit::bench
