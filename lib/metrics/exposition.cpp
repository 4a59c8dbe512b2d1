#include "metrics/exposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace adit::metrics {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Bytes of the UTF-8 character at the front of `text`; 0 where it is none (RFC 3629).
std::size_t characterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond the last character.
  const unsigned char second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return wrong ? 0 : length;
}

/// HELP texts escape the same but for the quote.
std::string escapedHelp(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\\\";
    } else if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::string numberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

std::string escapedLabel(std::string_view value) {
  std::string result;
  while (!value.empty()) {
    const std::size_t length = characterLength(value);
    const char c = value.front();
    if (length == 0) {
      result += kReplacement;
    } else if (c == '\\' || c == '"') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else {
      result += value.substr(0, length);
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

void Family::add(const Labels& labels, std::uint64_t value) {
  addText(labels, fmt::format("{}", value));
}

void Family::add(const Labels& labels, double value) {
  addText(labels, numberText(value));
}

void Family::addText(const Labels& labels, std::string_view value) {
  samples_ += name_;
  char separator = '{';
  for (const auto& [label, text] : labels) {
    samples_ += fmt::format("{}{}=\"{}\"", separator, label, escapedLabel(text));
    separator = ',';
  }
  samples_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

Family& Page::family(std::string name, Kind kind, std::string help) {
  for (Family& known : families_) {
    if (known.name_ == name) return known;
  }
  return families_.emplace_back(std::move(name), kind, std::move(help));
}

std::string Page::text() const {
  std::string text;
  for (const Family& family : families_) {
    if (family.samples_.empty()) continue;
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", family.name_, escapedHelp(family.help_),
                        family.name_, family.kind_ == Kind::Counter ? "counter" : "gauge",
                        family.samples_);
  }
  return text;
}

}  // namespace adit::metrics
