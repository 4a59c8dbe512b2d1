// Prometheus' text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace adit::metrics {

enum class Kind : std::uint8_t { Counter, Gauge };

/// Name and value; values may be any UTF-8, names are [a-zA-Z_][a-zA-Z0-9_]*.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// All samples of one name.
class Family {
 public:
  /// `name` by prometheus.io/docs/practices/naming: base units, and _total for counters alone.
  Family(std::string name, Kind kind, std::string help)
      : name_(std::move(name)), kind_(kind), help_(std::move(help)) {}

  void add(const Labels& labels, std::uint64_t value);
  void add(const Labels& labels, double value);

 private:
  friend class Page;
  void addText(const Labels& labels, std::string_view value);

  std::string name_;
  Kind kind_;
  std::string help_;
  std::string samples_;
};

class Page {
 public:
  /// In the order of their first use; the reference stays valid as long as the page.
  Family& family(std::string name, Kind kind, std::string help);
  /// Families without samples are left out.
  [[nodiscard]] std::string text() const;

 private:
  std::deque<Family> families_;
};

/// Backslash, quote and newline as the format wants them in a label's value. What is not UTF-8 is
/// replaced.
std::string escapedLabel(std::string_view value);

}  // namespace adit::metrics
