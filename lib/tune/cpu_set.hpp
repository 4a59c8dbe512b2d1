// Sets of CPUs, and the two ways in which the kernel writes them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"

namespace adit::tune {

/// A set of CPU numbers, in numeric order, of any size: no arithmetic on machine words.
class CpuSet {
 public:
  CpuSet() = default;
  CpuSet(std::initializer_list<unsigned> cpus) : cpus_(cpus) {}

  /// A list such as "0-3,8,10-11" (Documentation/core-api/printk-formats.rst, %*pbl); empty text is
  /// an empty set. A reversed range, or what is no number, is an error that shows it.
  static Result<CpuSet> fromList(std::string_view text);
  /// Hexadecimal groups of 32 bits separated by commas, the most significant first (%*pb).
  static Result<CpuSet> fromMask(std::string_view text);

  void add(unsigned cpu) { cpus_.insert(cpu); }
  [[nodiscard]] bool has(unsigned cpu) const { return cpus_.contains(cpu); }
  [[nodiscard]] bool empty() const { return cpus_.empty(); }
  [[nodiscard]] std::size_t size() const { return cpus_.size(); }
  [[nodiscard]] std::vector<unsigned> members() const { return {cpus_.begin(), cpus_.end()}; }
  [[nodiscard]] bool isSubsetOf(const CpuSet& other) const;

  [[nodiscard]] CpuSet operator&(const CpuSet& other) const;
  [[nodiscard]] CpuSet operator|(const CpuSet& other) const;
  [[nodiscard]] CpuSet operator-(const CpuSet& other) const;
  friend bool operator==(const CpuSet&, const CpuSet&) = default;

  /// "0-3,8"; empty for no CPU.
  [[nodiscard]] std::string toList() const;
  /// Exactly `groups` groups of eight digits. A CPU that has no place in them is an error: the
  /// kernel would refuse (EOVERFLOW), or worse, drop it.
  [[nodiscard]] Result<std::string> toMask(std::size_t groups) const;

 private:
  std::set<unsigned> cpus_;
};

/// How many groups the mask that a file shows has.
std::size_t maskGroups(std::string_view shown);

}  // namespace adit::tune
