#include "config/check.hpp"

#include <nlohmann/json.hpp>

#include "config/parser.hpp"

namespace adit::config {
namespace {

nlohmann::ordered_json toJson(const Diagnostic& diagnostic) {
  const Location& at = diagnostic.location;
  return {{"file", at.file ? *at.file : std::string()},
          {"line", at.line},
          {"column", at.column},
          {"severity", diagnostic.severity == Severity::Error ? "error" : "warning"},
          {"message", diagnostic.message}};
}

void printJson(const Outcome& outcome, std::ostream& out) {
  auto all = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    all.push_back(toJson(diagnostic));
  }
  // A file's name need not be UTF-8.
  out << all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace

int checkFile(const std::filesystem::path& path, std::ostream& out, bool json) {
  const Outcome outcome = load(path);
  if (json) {
    printJson(outcome, out);
  } else {
    for (const Diagnostic& diagnostic : outcome.diagnostics) {
      out << diagnostic.toString() << '\n';
    }
    if (outcome.ok()) out << path.string() << ": ok\n";
  }
  return outcome.ok() ? 0 : 1;
}

}  // namespace adit::config
