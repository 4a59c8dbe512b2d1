// What `adit bench` prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/compare.hpp"
#include "bench/model.hpp"

namespace adit::cli {

/// "[3/16] tunnel, TCP, 1 stream, send: 4583 Mbit/s, cpu0 98 % busy (softirq 41 %)"
std::string formatStep(std::size_t number, std::size_t all, const bench::StepResult& result);

/// The table of all steps, the ceiling, and the notes.
std::string formatReport(const bench::Report& report);

std::string formatComparison(const bench::Report& before, const bench::Report& after);
nlohmann::ordered_json comparisonToJson(const bench::Report& before, const bench::Report& after);

}  // namespace adit::cli
