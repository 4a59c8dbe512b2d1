#include "bench/cpu.hpp"

#include <charconv>

#include "util/file.hpp"

namespace adit::bench {
namespace {

using Words = std::vector<std::string_view>;

Words wordsOf(std::string_view line) {
  Words words;
  while (true) {
    const auto first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return words;
    line.remove_prefix(first);
    const auto length = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
}

template <typename Handle>
void forEachLine(std::string_view text, Handle handle) {
  while (!text.empty()) {
    const auto length = std::min(text.find('\n'), text.size());
    handle(wordsOf(text.substr(0, length)));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

template <typename Number>
std::optional<Number> numberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The processor in "cpu3" or "CPU3".
std::optional<unsigned> processorOf(std::string_view word, std::string_view prefix) {
  return word.starts_with(prefix) ? numberOf<unsigned>(word.substr(prefix.size())) : std::nullopt;
}

/// user nice system idle iowait irq softirq steal; old kernels have fewer.
void addTimes(CpuCounters& counters, const Words& words) {
  const auto cpu = words.empty() ? std::nullopt : processorOf(words.front(), "cpu");
  if (!cpu) return;
  std::array<std::uint64_t, 8> ticks{};
  for (std::size_t i = 0; i < ticks.size() && i + 1 < words.size(); ++i) {
    const auto number = numberOf<std::uint64_t>(words[i + 1]);
    if (!number) return;
    ticks[i] = *number;
  }
  counters[*cpu] = {.user = ticks[0] + ticks[1],
                    .system = ticks[2],
                    .idle = ticks[3] + ticks[4],
                    .irq = ticks[5],
                    .softirq = ticks[6],
                    .steal = ticks[7]};
}

/// Never negative: idle and iowait are known to step back.
std::uint64_t since(std::uint64_t before, std::uint64_t after) {
  return after > before ? after - before : 0;
}

}  // namespace

CpuCounters parseCpuCounters(std::string_view stat, std::string_view softirqs) {
  CpuCounters counters;
  forEachLine(stat, [&](const Words& words) { addTimes(counters, words); });
  std::vector<std::optional<unsigned>> columns;
  forEachLine(softirqs, [&](const Words& words) {
    if (columns.empty()) {
      for (const std::string_view word : words) {
        columns.push_back(processorOf(word, "CPU"));
      }
    } else if (!words.empty() && words.front() == "NET_RX:") {
      for (std::size_t i = 0; i < columns.size() && i + 1 < words.size(); ++i) {
        const auto found = columns[i] ? counters.find(*columns[i]) : counters.end();
        if (found == counters.end()) continue;
        found->second.received = numberOf<std::uint64_t>(words[i + 1]).value_or(0);
      }
    }
  });
  return counters;
}

CpuCounters readCpuCounters(const std::filesystem::path& root) {
  const auto stat = readFile(root / "proc/stat");
  const auto softirqs = readFile(root / "proc/softirqs");
  return parseCpuCounters(stat.value_or(""), softirqs.value_or(""));
}

std::vector<CoreLoad> loadBetween(const CpuCounters& before, const CpuCounters& after,
                                  std::chrono::duration<double> elapsed) {
  std::vector<CoreLoad> loads;
  for (const auto& [cpu, now] : after) {
    const auto found = before.find(cpu);
    if (found == before.end()) continue;
    const CoreTimes& then = found->second;
    const std::array<std::uint64_t, 6> spent{
        since(then.user, now.user),       since(then.system, now.system),
        since(then.softirq, now.softirq), since(then.irq, now.irq),
        since(then.steal, now.steal),     since(then.idle, now.idle)};
    std::uint64_t total = 0;
    for (const std::uint64_t ticks : spent) {
      total += ticks;
    }
    if (total == 0) continue;
    const auto percent = [&](std::uint64_t ticks) {
      return 100.0 * static_cast<double>(ticks) / static_cast<double>(total);
    };
    CoreLoad load{.cpu = cpu,
                  .user = percent(spent[0]),
                  .system = percent(spent[1]),
                  .softirq = percent(spent[2]),
                  .irq = percent(spent[3]),
                  .steal = percent(spent[4])};
    if (elapsed.count() > 0) {
      load.receivedPerSecond =
          static_cast<double>(since(then.received, now.received)) / elapsed.count();
    }
    loads.push_back(load);
  }
  return loads;
}

}  // namespace adit::bench
