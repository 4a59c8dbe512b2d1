#include "cli/diagnostics.hpp"

#include <cstdio>

#include "cli/output.hpp"
#include "config/parser.hpp"

namespace adit::cli {
namespace {

void printDiagnostics(const config::Outcome& outcome) {
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    fmt::print(stderr, "{}\n", diagnostic.toString());
  }
}

}  // namespace

std::optional<config::Outcome> checkConfig(const std::filesystem::path& file, Warnings warnings) {
  config::Outcome outcome = config::load(file);
  if (!outcome.ok() || warnings == Warnings::Now) printDiagnostics(outcome);
  if (!outcome.ok()) return std::nullopt;
  return outcome;
}

std::optional<config::Config> readWireguardFile(const std::string& file) {
  config::Outcome outcome = config::load(file, config::Dialect::WireGuard);
  printDiagnostics(outcome);
  if (!outcome.ok()) complain("nothing was changed");
  return std::move(outcome.config);
}

}  // namespace adit::cli
