#include "cli/drop_in.hpp"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "config/parser.hpp"
#include "control/control_client.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

namespace fs = std::filesystem;
using control::ControlClient;
using Json = nlohmann::ordered_json;

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

}  // namespace

DropIn::DropIn(fs::path config, std::string_view fileName)
    : config_(std::move(config)), path_(config::dropInFolder(config_) / fileName) {}

Result<std::string> DropIn::content() const {
  auto content = adit::readFile(path_);
  if (!content && content.error().code == ENOENT) return std::string();
  return content;
}

Result<config::Config> DropIn::judge(std::string_view content) const {
  config::Outcome outcome = config::loadWith(config_, path_, content);
  if (!outcome.ok()) return fail("{}", errorsOf(outcome.diagnostics));
  return std::move(*outcome.config);
}

Result<void> DropIn::write(std::string_view content) {
  if (const auto judged = judge(content); !judged) return tl::unexpected(judged.error());
  auto before = this->content();
  if (!before) return tl::unexpected(before.error());
  auto done = replace(content);
  if (done && !changed_) {
    changed_ = true;
    before_ = std::move(*before);
  }
  return done;
}

Result<void> DropIn::restore() {
  return changed_ ? replace(before_) : Result<void>{};
}

Result<void> DropIn::replace(std::string_view content) {
  const fs::path folder = path_.parent_path();
  if (::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return failErrno(errno, "{}", folder.string());
  }
  if (!content.empty()) return replaceFile(path_, content, kFileMode, Durability::PowerCut);
  std::error_code error;
  fs::remove(path_, error);
  return error ? Result<void>(failErrno(error.value(), "{}", path_.string())) : Result<void>{};
}

std::string errorsOf(const std::vector<config::Diagnostic>& diagnostics) {
  std::string text;
  for (const config::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == config::Severity::Error) {
      text += (text.empty() ? "" : "\n") + diagnostic.toString();
    }
  }
  return text;
}

Result<control::NamedConfig> configOf(const std::string& name) {
  auto named = control::resolveConfigName(name);
  const bool isPath = named && name != named->interface;
  if (!named || isPath) return named;
  const auto view = ControlClient::connect(named->interface).and_then([](ControlClient client) {
    return client.show(false);
  });
  if (view && !view->device.configured.files.empty()) {
    named->file = view->device.configured.files.front().path;
  }
  return named;
}

Result<std::vector<std::string>> applied(const std::string& interface,
                                         const std::vector<DropIn*>& files) {
  auto client = ControlClient::connect(interface);
  if (!client && client.error().code == ENOENT) {
    return std::vector<std::string>{
        fmt::format("{} is not up; `adit up {}` applies the change", interface, interface)};
  }
  auto notes = std::move(client).and_then([](ControlClient daemon) { return daemon.reload(); });
  if (notes) return notes;
  std::string errors = notes.error().message;
  for (DropIn* file : files) {
    const auto restored = file->restore();
    errors += restored ? "" : "\n" + restored.error().message;
  }
  return fail("{}", errors);
}

int reportChange(bool json, const fs::path& file, const std::vector<std::string>& notes) {
  if (json) {
    return print(Json{{"ok", true}, {"file", file.string()}, {"notes", notes}}.dump(2) + '\n');
  }
  return print(notes.empty() ? "" : fmt::format("{}\n", fmt::join(notes, "\n")));
}

int refuseChange(bool json, const Error& error) {
  if (json) print(Json{{"ok", false}, {"error", error.message}}.dump(2) + '\n');
  return json ? kFailure : complain(error);
}

}  // namespace adit::cli
