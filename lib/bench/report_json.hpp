// A report as JSON, and back: `adit bench --json`, and the file that `--compare` reads.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "bench/model.hpp"

namespace adit::bench {

/// What has no value is null, and "reason" says why.
nlohmann::ordered_json reportToJson(const Report& report);

/// Members that are not known are skipped. Fails for what is not a report, or of a format to come.
Result<Report> reportFromJson(std::string_view text);

}  // namespace adit::bench
