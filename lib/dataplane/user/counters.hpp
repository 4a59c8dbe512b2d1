// Statistics that packet threads write and the control thread reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataplane/dataplane.hpp"

namespace adit::dataplane::user {

/// A number in which only sums matter: relaxed.
class Counter {
 public:
  void add(std::uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A time, written once per batch by packet threads; zero for never.
class TimeCell {
 public:
  [[nodiscard]] BootTime get() const { return BootTime(value_.load(std::memory_order_relaxed)); }
  void set(BootTime time) { value_.store(time.count(), std::memory_order_relaxed); }
  void clear() { value_.store(0, std::memory_order_relaxed); }
  void setIfClear(BootTime time) {
    if (value_.load(std::memory_order_relaxed) == 0) set(time);
  }
  /// Spares the cache line when there is nothing to clear.
  void clearIfSet() {
    if (value_.load(std::memory_order_relaxed) != 0) clear();
  }

 private:
  std::atomic<BootTime::rep> value_{0};
};

class DropCounters {
 public:
  void add(Drop drop, std::uint64_t n = 1) { counters_[static_cast<std::size_t>(drop)].add(n); }
  [[nodiscard]] DropCounts get() const {
    DropCounts counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = counters_[i].get();
    }
    return counts;
  }

 private:
  std::array<Counter, kDropCount> counters_;
};

}  // namespace adit::dataplane::user
