#include "cli/doctor_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace adit::cli {
namespace {

using doctor::Finding;
using doctor::Severity;

std::string painted(Severity severity, bool color) {
  const std::string name(doctor::severityName(severity));
  if (!color) return name;
  const int paint = severity == Severity::Fault ? 31 : severity == Severity::Slow ? 33 : 36;
  return fmt::format("\x1b[1;{}m{}\x1b[0m", paint, name);
}

}  // namespace

std::string formatExamination(const Examination& examination, bool color) {
  std::string text;
  for (const Finding& finding : examination.findings) {
    text += fmt::format("{}: {}\n  seen: {}\n  do:   {}\n\n", painted(finding.severity, color),
                        finding.sentence, finding.evidence, finding.remedy);
  }
  for (const std::string& remark : examination.remarks) {
    text += fmt::format("not looked at: {}\n", remark);
  }
  const std::string seen =
      examination.tunnels.empty()
          ? "this machine (no interface is up)"
          : fmt::format("this machine, {}", fmt::join(examination.tunnels, ", "));
  text += fmt::format(
      "{}: {}{}\n", doctor::isHealthy(examination.findings) ? "healthy" : "not healthy", seen,
      examination.probed || examination.tunnels.empty() ? ""
                                                        : "; --probe sends packets and finds more");
  return text;
}

nlohmann::ordered_json examinationToJson(const Examination& examination) {
  nlohmann::ordered_json json;
  json["healthy"] = doctor::isHealthy(examination.findings);
  json["interfaces"] = examination.tunnels;
  json["probed"] = examination.probed;
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : examination.findings) {
    json["findings"].push_back({{"id", finding.id},
                                {"severity", doctor::severityName(finding.severity)},
                                {"sentence", finding.sentence},
                                {"evidence", finding.evidence},
                                {"remedy", finding.remedy}});
  }
  json["not_looked_at"] = examination.remarks;
  return json;
}

}  // namespace adit::cli
