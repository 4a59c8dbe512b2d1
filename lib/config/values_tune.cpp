// Rates, sizes and CPU lists.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "config/diagnostics.hpp"
#include "config/values.hpp"

namespace adit::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr auto kRateUnits = std::to_array<Unit>(
    {{"gbit", 1'000'000'000}, {"mbit", 1'000'000}, {"kbit", 1'000}, {"bit", 1}});
constexpr auto kSizeUnits = std::to_array<Unit>({{"", 1},
                                                 {"k", 1ULL << 10},
                                                 {"kb", 1ULL << 10},
                                                 {"kib", 1ULL << 10},
                                                 {"m", 1ULL << 20},
                                                 {"mb", 1ULL << 20},
                                                 {"mib", 1ULL << 20},
                                                 {"g", 1ULL << 30},
                                                 {"gb", 1ULL << 30},
                                                 {"gib", 1ULL << 30}});
/// CPU numbers above every machine that Linux runs on (NR_CPUS is at most 8192).
constexpr std::uint64_t kLastCpu = 65535;

/// NUMBER UNIT times the unit's factor; nothing when it is none or does not fit.
std::optional<std::uint64_t> readQuantity(std::string_view text, std::span<const Unit> units) {
  const auto split = std::ranges::find_if_not(text, [](char c) { return c >= '0' && c <= '9'; });
  const auto digits = static_cast<std::size_t>(split - text.begin());
  std::string unit = lowered(text.substr(digits));
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? 0 : unit.find_first_not_of(' '));
  const auto* found = std::ranges::find_if(units.begin(), units.end(), [&](const Unit& u) {
                        return u.name == unit;
                      }).base();
  if (found == units.data() + units.size()) return std::nullopt;
  const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max() / found->factor;
  const auto number = parseNumber(text.substr(0, digits), 1, largest, "a number");
  if (!number) return std::nullopt;
  return *number * found->factor;
}

}  // namespace

Value<std::uint64_t> parseRate(std::string_view text) {
  const auto rate = readQuantity(text, kRateUnits);
  if (!rate) {
    return tl::unexpected(ValueError{
        0, fmt::format("{} is not a rate; write a whole number with kbit, mbit or gbit, as in "
                       "200mbit",
                       shown(text))});
  }
  return *rate;
}

std::string formatRate(std::uint64_t bitsPerSecond) {
  for (const Unit& unit : kRateUnits) {
    if (bitsPerSecond % unit.factor == 0) {
      return fmt::format("{}{}", bitsPerSecond / unit.factor, unit.name);
    }
  }
  return {};
}

Value<std::uint64_t> parseSize(std::string_view text) {
  const auto size = readQuantity(text, kSizeUnits);
  if (!size) {
    return tl::unexpected(
        ValueError{0, fmt::format("{} is not a size; write a whole number of bytes, or one with K, "
                                  "M or G",
                                  shown(text))});
  }
  return *size;
}

std::optional<ValueError> checkCpuList(std::string_view text) {
  if (equalIgnoringCase(text, "all")) return std::nullopt;
  std::vector<ValueError> errors;
  for (const Item& item : splitList(text, Separator::Comma, errors)) {
    const std::size_t dash = item.text.find('-');
    const auto first = parseNumber(item.text.substr(0, dash), 0, kLastCpu, "a CPU");
    if (!first) {
      return ValueError{item.offset, fmt::format("{} is not a CPU or a range of CPUs; write a list "
                                                 "such as 0-3,8",
                                                 shown(item.text))};
    }
    if (dash == std::string_view::npos) continue;
    const auto last = parseNumber(item.text.substr(dash + 1), 0, kLastCpu, "a CPU");
    if (!last) {
      return ValueError{item.offset + dash + 1,
                        fmt::format("{} does not end a range of CPUs; write a list such as 0-3,8",
                                    shown(item.text.substr(dash + 1)))};
    }
    if (*last < *first) {
      return ValueError{item.offset, fmt::format("the range {}-{} is reversed; write {}-{}", *first,
                                                 *last, *last, *first)};
    }
  }
  if (!errors.empty()) return errors.front();
  return std::nullopt;
}

}  // namespace adit::config
