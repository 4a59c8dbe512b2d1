// Findings for the person, and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/finding.hpp"

namespace adit::cli {

/// What was looked at, beside what was found.
struct Examination {
  std::vector<doctor::Finding> findings;
  std::vector<std::string> tunnels;
  bool probed = false;
  /// What could not be looked at, and why.
  std::vector<std::string> remarks;
};

std::string formatExamination(const Examination& examination, bool color);
nlohmann::ordered_json examinationToJson(const Examination& examination);

}  // namespace adit::cli
