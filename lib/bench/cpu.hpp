// What the processors do meanwhile: /proc/stat and /proc/softirqs (proc(5)).
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "bench/model.hpp"

namespace adit::bench {

/// Clock ticks since the machine started, of one processor.
struct CoreTimes {
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  std::uint64_t idle = 0;
  std::uint64_t irq = 0;
  std::uint64_t softirq = 0;
  std::uint64_t steal = 0;
  /// NET_RX soft interrupts.
  std::uint64_t received = 0;
};

/// By the number of the processor, which may have holes.
using CpuCounters = std::map<unsigned, CoreTimes>;

/// Lines that are not understood are skipped; a machine may hide both files.
CpuCounters parseCpuCounters(std::string_view stat, std::string_view softirqs);
/// Of the machine, or of a recorded one.
CpuCounters readCpuCounters(const std::filesystem::path& root = "/");

/// What happened in between. A processor that came, went, or did not count is left out.
std::vector<CoreLoad> loadBetween(const CpuCounters& before, const CpuCounters& after,
                                  std::chrono::duration<double> elapsed);

}  // namespace adit::bench
