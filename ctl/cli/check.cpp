// check and strip: what a configuration file says, without touching anything.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/diagnostics.hpp"
#include "cli/output.hpp"
#include "cli/strip.hpp"
#include "config/parser.hpp"
#include "control/kernel_module.hpp"
#include "control/paths.hpp"

namespace adit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckArguments {
  std::string name;
  bool json = false;
};

/// A file to look at need not be called NAME.conf.
Result<std::filesystem::path> fileOf(const std::string& text) {
  std::error_code ignored;
  if (text.find('/') != std::string::npos || std::filesystem::exists(text, ignored)) return text;
  return control::resolveConfigName(text).map(
      [](const control::NamedConfig& named) { return named.file; });
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Json toJson(const config::Diagnostic& diagnostic) {
  const config::Location& at = diagnostic.location;
  Json json;
  json["severity"] = diagnostic.severity == config::Severity::Error ? "error" : "warning";
  json["file"] = at.file ? Json(*at.file) : Json();
  json["line"] = at.line;
  json["column"] = at.column;
  json["message"] = diagnostic.message;
  return json;
}

/// A file may be written on one machine for another, so this is a warning only.
std::optional<config::Diagnostic> warnOfBackend(const config::Outcome& outcome,
                                                const std::filesystem::path& file) {
  if (!outcome.ok() || outcome.config->interface.backend != config::Backend::Kernel) return {};
  const auto obstacle = control::kernelModuleObstacle(control::kernelRelease());
  if (!obstacle) return {};
  config::Diagnostic warning;
  warning.severity = config::Severity::Warning;
  warning.location.file = std::make_shared<const std::string>(file.string());
  warning.message =
      fmt::format("Backend = kernel does not work on this machine: {}: {}, or use Backend = auto",
                  obstacle->reason, obstacle->remedy);
  return warning;
}

int checkAsJson(const std::filesystem::path& file) {
  const config::Outcome outcome = config::load(file);
  Json json;
  json["ok"] = outcome.ok();
  json["file"] = file.string();
  json["diagnostics"] = Json::array();
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    json["diagnostics"].push_back(toJson(diagnostic));
  }
  if (const auto warning = warnOfBackend(outcome, file)) {
    json["diagnostics"].push_back(toJson(*warning));
  }
  const int status = print(json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
  return outcome.ok() ? status : kFailure;
}

int check(const CheckArguments& arguments) {
  const auto file = fileOf(arguments.name);
  if (!file) return complain(file.error());
  if (arguments.json) return checkAsJson(*file);
  const auto outcome = checkConfig(*file);
  if (!outcome) return kFailure;
  if (const auto warning = warnOfBackend(*outcome, *file)) {
    fmt::print(stderr, "{}\n", warning->toString());
  }
  return print(fmt::format("{}: ok ({}, {})\n", file->string(),
                           plural(outcome->config->peers.size(), "peer"),
                           plural(outcome->config->maps.size(), "mapping")));
}

int strip(const std::string& name) {
  const auto file = fileOf(name);
  if (!file) return complain(file.error());
  const auto outcome = checkConfig(*file);
  if (!outcome) return kFailure;
  std::vector<std::string> remarks;
  const auto text = stripToWireguard(*outcome, remarks);
  if (!text) return complain(text.error());
  for (const std::string& each : remarks) {
    remark(each);
  }
  return print(*text);
}

}  // namespace

void addCheckCommands(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* checkCommand = app.add_subcommand("check", "Check a configuration file, without root");
  checkCommand->add_option("FILE", arguments->name, "a file, or NAME for /etc/adit/NAME.conf")
      ->required();
  checkCommand->add_flag("--json", arguments->json,
                         "one JSON object: ok, file, diagnostics with file, line and column");
  checkCommand->footer(
      "Every mistake is listed as FILE:LINE:COLUMN: what is wrong, what is right. Keys are never "
      "printed. Backend = kernel gets a warning where this machine cannot have adit.ko.\n"
      "Example:\n"
      "  adit check ./adit0.conf");
  checkCommand->callback(
      [&action, arguments] { action = [arguments] { return check(*arguments); }; });

  const auto name = std::make_shared<std::string>();
  CLI::App* stripCommand = app.add_subcommand(
      "strip", "Print what wg(8) understands of a configuration file, keys included");
  stripCommand->add_option("FILE", *name, "a file, or NAME for /etc/adit/NAME.conf")->required();
  stripCommand->footer("Example:\n  adit syncconf adit0 <(adit strip adit0)");
  stripCommand->callback([&action, name] { action = [name] { return strip(*name); }; });
}

}  // namespace adit::cli
