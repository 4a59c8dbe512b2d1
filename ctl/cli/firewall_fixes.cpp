#include "cli/firewall_fixes.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "control/paths.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

using nlohmann::json;

constexpr mode_t kMode = 0600;

std::filesystem::path fileOf(const std::string& interface) {
  return control::runtimeDirectory() / (interface + ".fixes");
}

/// Shell texts, oldest first.
std::vector<std::string> noted(const std::string& interface) {
  const auto text = readFile(fileOf(interface));
  const json list = text ? json::parse(*text, nullptr, false) : json();
  std::vector<std::string> commands;
  for (const json& command : list.is_array() ? list : json::array()) {
    if (command.is_string()) commands.push_back(command.get<std::string>());
  }
  return commands;
}

Result<void> note(const std::string& interface, const std::vector<std::string>& commands) {
  return replaceFile(fileOf(interface), json(commands).dump(), kMode, Durability::Process);
}

/// What the tools print belongs to standard error: standard output is for --json.
Result<void> runShell(const std::string& text) {
  const int status = std::system(("{ " + text + "; } >&2").c_str());
  if (status == 0) return {};
  return fail("`{}` failed with status {}", text, WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

}  // namespace

Result<void> applyFix(const std::string& interface, const nat::Obstacle& obstacle) {
  std::vector<std::string> commands = noted(interface);
  if (std::ranges::find(commands, obstacle.undo) == commands.end()) {
    commands.push_back(obstacle.undo);
    if (auto written = note(interface, commands); !written) return written;
  }
  return runShell(obstacle.fix);
}

std::vector<std::string> undoFixes(const std::string& interface) {
  std::vector<std::string> failures;
  std::vector<std::string> commands = noted(interface);
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) {
    if (const auto done = runShell(*command); !done) failures.push_back(done.error().message);
  }
  std::error_code ignored;
  std::filesystem::remove(fileOf(interface), ignored);
  return failures;
}

}  // namespace adit::cli
