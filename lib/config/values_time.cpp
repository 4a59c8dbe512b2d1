// Points in time as the grammar writes them.
#include <fmt/format.h>

#include "config/values.hpp"

namespace adit::config {
namespace {

using namespace std::chrono_literals;

/// The shape of the text: a digit stands for any digit.
constexpr std::string_view kShape = "0000-00-00T00:00:00Z";

tl::unexpected<ValueError> noTime() {
  return tl::unexpected(ValueError{0, "this is no UTC time; write it as in 2026-12-02T03:04:05Z"});
}

bool hasShape(std::string_view text) {
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i]) return false;
  }
  return true;
}

unsigned numberAt(std::string_view text, std::size_t first, std::size_t digits) {
  unsigned value = 0;
  for (const char c : text.substr(first, digits)) {
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value;
}

}  // namespace

Value<std::chrono::seconds> parseUtcTime(std::string_view text) {
  if (!hasShape(text)) return noTime();
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(numberAt(text, 0, 4))),
                                        std::chrono::month(numberAt(text, 5, 2)),
                                        std::chrono::day(numberAt(text, 8, 2))};
  const unsigned hours = numberAt(text, 11, 2);
  const unsigned minutes = numberAt(text, 14, 2);
  const unsigned seconds = numberAt(text, 17, 2);
  const bool exists = day.ok() && hours < 24 && minutes < 60 && seconds < 60;
  if (!exists || day.year() < std::chrono::year(1970)) return noTime();
  return std::chrono::sys_days(day).time_since_epoch() + hours * 1h + minutes * 1min + seconds * 1s;
}

std::string formatUtcTime(std::chrono::seconds time) {
  const std::chrono::sys_seconds point(time);
  const auto midnight = std::chrono::floor<std::chrono::days>(point);
  const std::chrono::year_month_day day(midnight);
  const std::chrono::hh_mm_ss clock(point - midnight);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace adit::config
