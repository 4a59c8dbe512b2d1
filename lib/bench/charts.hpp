// The charts of a report's page; each is one <svg>.
#pragma once

#include <string>
#include <vector>

#include "bench/model.hpp"

namespace adit::bench {

/// Throughput of every load, a bar for each layer, and the ceiling.
std::string throughputChart(const Report& report);

/// One load over time, a line for each layer. Empty where no layer has a course over time.
std::string courseChart(const Report& report, const Step& load);

/// How busy each processor was in one step, and with what. Empty where that is not known.
std::string processorChart(const StepResult& result);

/// The loads of a report in their order, as steps of the first layer that has them.
std::vector<Step> loadsOf(const Report& report);

}  // namespace adit::bench
