// What the CPUs did between two readings of /proc/stat (proc(5)).
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace adit::doctor {

/// Ticks since boot of one CPU.
struct CpuTicks {
  std::uint64_t total = 0;
  std::uint64_t idle = 0;
  std::uint64_t softirq = 0;
};
/// By CPU number; lines that are not understood are left out.
using CpuReading = std::map<unsigned, CpuTicks>;
CpuReading parseCpuReading(std::string_view stat);

/// Shares of the time between two readings, 0 to 1.
struct CpuShare {
  unsigned cpu = 0;
  double busy = 0;
  double softirq = 0;
};
/// Of the CPUs that were online at both; none whose counters did not move.
std::vector<CpuShare> sharesBetween(const CpuReading& before, const CpuReading& after);

}  // namespace adit::doctor
