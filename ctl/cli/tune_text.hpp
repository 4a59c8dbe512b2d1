// What `adit tune` prints.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tune/apply.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// What holds of one record, and who keeps it: "adit tune apply", or an interface's daemon.
struct TuneStanding {
  std::string keeper;
  std::vector<tune::Standing> files;
};

/// A table of what would be written: file, old value, new value, why.
std::string formatPlan(const tune::Plan& plan);
nlohmann::ordered_json planToJson(const tune::Plan& plan);

/// "done      /proc/irq/38/smp_affinity_list: 0-1 -> 0"
std::string formatResult(const tune::ItemResult& result);
nlohmann::ordered_json reportToJson(const tune::ApplyReport& report);

std::string formatStanding(const std::vector<TuneStanding>& all);
nlohmann::ordered_json standingToJson(const std::vector<TuneStanding>& all);

/// "40ms", "0.5s", "200us".
Result<std::chrono::microseconds> parseDelay(std::string_view text);

}  // namespace adit::cli
