#include "tune/cpu_set.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "tune/text.hpp"

namespace adit::tune {
namespace {

constexpr unsigned kGroupBits = 32;
constexpr std::size_t kGroupDigits = 8;
/// Above NR_CPUS of every kernel (8192 at most).
constexpr std::uint64_t kLastCpu = 65535;

Result<unsigned> parseCpu(std::string_view text, std::string_view whole) {
  const auto cpu = parseUnsigned(text);
  if (!cpu || *cpu > kLastCpu) {
    return fail("\"{}\" in \"{}\" is no CPU; a list is written as 0-3,8", text, whole);
  }
  return static_cast<unsigned>(*cpu);
}

std::optional<unsigned> hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

Result<CpuSet> CpuSet::fromList(std::string_view text) {
  CpuSet result;
  text = trimmed(text);
  if (text.empty()) return result;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parseCpu(part.substr(0, dash), text);
    if (!first) return tl::unexpected(first.error());
    const auto last =
        dash == std::string_view::npos ? first : parseCpu(part.substr(dash + 1), text);
    if (!last) return tl::unexpected(last.error());
    if (*last < *first) {
      return fail("the range {} in \"{}\" is reversed; write {}-{}", part, text, *last, *first);
    }
    for (unsigned cpu = *first; cpu <= *last; ++cpu) {
      result.add(cpu);
    }
  }
  return result;
}

Result<CpuSet> CpuSet::fromMask(std::string_view text) {
  CpuSet result;
  text = trimmed(text);
  const std::vector<std::string_view> groups = split(text, ',');
  unsigned base = 0;
  for (const std::string_view group : std::vector(groups.rbegin(), groups.rend())) {
    if (group.empty() || group.size() > kGroupDigits) {
      return fail("\"{}\" is no CPU mask: a group has one to eight hexadecimal digits", text);
    }
    unsigned bit = base + 4 * static_cast<unsigned>(group.size());
    for (const char c : group) {
      bit -= 4;
      const auto digit = hexDigit(c);
      if (!digit) return fail("\"{}\" is no CPU mask", text);
      for (unsigned i = 0; i < 4; ++i) {
        if ((*digit >> i & 1U) != 0) result.add(bit + i);
      }
    }
    base += kGroupBits;
  }
  return result;
}

bool CpuSet::isSubsetOf(const CpuSet& other) const {
  return std::ranges::includes(other.cpus_, cpus_);
}

CpuSet CpuSet::operator&(const CpuSet& other) const {
  CpuSet result;
  std::ranges::set_intersection(cpus_, other.cpus_,
                                std::inserter(result.cpus_, result.cpus_.end()));
  return result;
}

CpuSet CpuSet::operator|(const CpuSet& other) const {
  CpuSet result;
  std::ranges::set_union(cpus_, other.cpus_, std::inserter(result.cpus_, result.cpus_.end()));
  return result;
}

CpuSet CpuSet::operator-(const CpuSet& other) const {
  CpuSet result;
  std::ranges::set_difference(cpus_, other.cpus_, std::inserter(result.cpus_, result.cpus_.end()));
  return result;
}

std::string CpuSet::toList() const {
  std::string text;
  for (auto at = cpus_.begin(); at != cpus_.end();) {
    const unsigned first = *at;
    unsigned last = first;
    while (++at != cpus_.end() && *at == last + 1) {
      last = *at;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last != first) text += fmt::format("-{}", last);
  }
  return text;
}

Result<std::string> CpuSet::toMask(std::size_t groups) const {
  std::vector<std::uint32_t> words(groups, 0);
  for (const unsigned cpu : cpus_) {
    const std::size_t word = cpu / kGroupBits;
    if (word >= groups) return fail("CPU {} has no place in a mask of {} groups", cpu, groups);
    words[word] |= std::uint32_t{1} << (cpu % kGroupBits);
  }
  std::string text;
  for (const std::uint32_t word : std::vector(words.rbegin(), words.rend())) {
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", word);
  }
  return text;
}

std::size_t maskGroups(std::string_view shown) {
  return split(trimmed(shown), ',').size();
}

}  // namespace adit::tune
