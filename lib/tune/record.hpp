// What was changed and what was there before: kept beside the daemon's other volatile files, so
// that nothing is lost when whoever applied it is killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "tune/machine.hpp"
#include "util/result.hpp"

namespace adit::tune {

/// Counters of what the kernel has dropped, since boot.
struct Counters {
  /// /proc/net/softnet_stat, column 2: the per-CPU queue (netdev_max_backlog) was full.
  std::uint64_t backlogDrops = 0;
  /// Column 3: a round of softirq ended with packets left (netdev_budget).
  std::uint64_t squeezes = 0;
  /// Column 1.
  std::uint64_t packets = 0;
  /// /proc/net/stat/nf_conntrack, drop and early_drop: the connection table was full.
  std::uint64_t conntrackDrops = 0;
  friend bool operator==(const Counters&, const Counters&) = default;
};
Counters readCounters(const Files& files);

struct Record {
  struct Entry {
    /// As the file showed it before our first write, without its newline.
    std::string old;
    /// As we wrote it last.
    std::string now;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// By the path that Plan uses.
  std::map<std::string, Entry> entries;
  /// Affinities of interrupts from before a NIC's number of queues was changed, by path: its driver
  /// sets its own with each such change.
  std::map<std::string, std::string> reset;
  /// When something was applied last: only later drops count as a reason for more.
  Counters counters;
  /// /proc/sys/kernel/random/boot_id: all that is recorded ends with a reboot.
  std::string boot;

  /// An absent file, or one of an earlier boot, is an empty record. The file may have been written
  /// by a process with fewer rights: what adit cannot have written is left out (permitted.hpp).
  static Result<Record> load(const std::filesystem::path& path, const Files& files);
  /// Removes the file when there is nothing to record.
  [[nodiscard]] Result<void> save(const std::filesystem::path& path) const;
};

}  // namespace adit::tune
