#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

/// Two or three digits that count.
std::string digits(double value) {
  return value >= 10 || value == std::floor(value) ? fmt::format("{:.0f}", value)
                                                   : fmt::format("{:.1f}", value);
}

}  // namespace

std::string percentText(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

std::string rateText(double bitsPerSecond) {
  if (bitsPerSecond >= 1e9) return digits(bitsPerSecond / 1e9) + " Gbit/s";
  if (bitsPerSecond >= 1e6) return digits(bitsPerSecond / 1e6) + " Mbit/s";
  return digits(bitsPerSecond / 1e3) + " kbit/s";
}

std::string sizeText(double bytes) {
  constexpr double kKibi = 1024;
  if (bytes >= kKibi * kKibi) return digits(bytes / kKibi / kKibi) + " MiB";
  return digits(bytes / kKibi) + " KiB";
}

std::string delayText(std::chrono::microseconds delay) {
  return digits(static_cast<double>(delay.count()) / 1000) + " ms";
}

std::string rateArgument(double bitsPerSecond) {
  return fmt::format("{:.0f}mbit", std::max(1.0, std::ceil(bitsPerSecond / 1e6)));
}

}  // namespace adit::doctor
