#include "doctor/cpu_sample.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace adit::doctor {
namespace {

/// The columns of a line (proc(5)): user nice system idle iowait irq softirq steal. Guest time is
/// counted in user time already.
constexpr std::size_t kColumns = 8;
constexpr std::size_t kIdle = 3;
constexpr std::size_t kWaiting = 4;
constexpr std::size_t kSoftirq = 6;
/// The oldest kernels with softirq have these.
constexpr std::size_t kFewestColumns = 7;

std::optional<std::pair<unsigned, CpuTicks>> parseLine(std::string_view line) {
  if (!line.starts_with("cpu")) return std::nullopt;
  line.remove_prefix(3);
  unsigned cpu = 0;
  // The line of all CPUs has no number.
  const auto number = std::from_chars(line.data(), line.data() + line.size(), cpu);
  if (number.ec != std::errc{}) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(number.ptr - line.data()));
  std::array<std::uint64_t, kColumns> ticks{};
  std::size_t count = 0;
  while (count < kColumns) {
    const auto start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const auto read = std::from_chars(line.data(), line.data() + line.size(), ticks[count]);
    if (read.ec != std::errc{}) return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
    ++count;
  }
  if (count < kFewestColumns) return std::nullopt;
  CpuTicks result;
  for (const std::uint64_t column : ticks) {
    result.total += column;
  }
  result.idle = ticks[kIdle] + ticks[kWaiting];
  result.softirq = ticks[kSoftirq];
  return std::pair(cpu, result);
}

/// Idle time may run backwards by a tick or two.
double grown(std::uint64_t before, std::uint64_t after) {
  return static_cast<double>(after - std::min(before, after));
}

}  // namespace

CpuReading parseCpuReading(std::string_view stat) {
  CpuReading reading;
  while (!stat.empty()) {
    const auto end = stat.find('\n');
    if (const auto line = parseLine(stat.substr(0, end))) reading.insert(*line);
    stat.remove_prefix(end == std::string_view::npos ? stat.size() : end + 1);
  }
  return reading;
}

std::vector<CpuShare> sharesBetween(const CpuReading& before, const CpuReading& after) {
  std::vector<CpuShare> shares;
  for (const auto& [cpu, now] : after) {
    const auto then = before.find(cpu);
    if (then == before.end()) continue;
    const double total = grown(then->second.total, now.total);
    if (total <= 0) continue;
    shares.push_back({cpu, std::clamp(1 - grown(then->second.idle, now.idle) / total, 0.0, 1.0),
                      std::clamp(grown(then->second.softirq, now.softirq) / total, 0.0, 1.0)});
  }
  return shares;
}

}  // namespace adit::doctor
