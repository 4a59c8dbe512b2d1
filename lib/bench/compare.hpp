// Two reports side by side: before and after one change.
#pragma once

#include <vector>

#include "bench/model.hpp"

namespace adit::bench {

struct Comparison {
  Step step;
  /// An error is the reason for "no result"; nothing where the report has no such step.
  std::optional<Result<double>> before;
  std::optional<Result<double>> after;
  /// Of throughput, percent of before; nothing unless both have figures.
  [[nodiscard]] std::optional<double> change() const;
};

/// Every step of the new report in its order, then what only the old one has.
std::vector<Comparison> compare(const Report& before, const Report& after);

/// What differs otherwise, so that figures cannot be compared without a thought: "the cipher:
/// aes-256-gcm before, chacha20-poly1305 after".
std::vector<std::string> differences(const Report& before, const Report& after);

}  // namespace adit::bench
