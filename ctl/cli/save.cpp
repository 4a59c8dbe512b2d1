// save: the running state into the configuration file.
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/diagnostics.hpp"
#include "cli/output.hpp"
#include "cli/saving.hpp"
#include "config/diff.hpp"
#include "config/writer.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;

std::string report(const std::string& file, const config::SaveReport& done,
                   const config::Diff& changes) {
  std::string text = done.written ? fmt::format("saved in {}:\n", file)
                                  : fmt::format("{}: nothing to save\n", file);
  for (const std::string& line : changes.lines()) {
    if (std::ranges::find(done.notSaved, line) == done.notSaved.end()) {
      text += fmt::format("  {}\n", line);
    }
  }
  return text;
}

/// So that the next `adit save` does not take our own change for somebody else's.
Result<void> tellDaemon(ControlClient& client, const std::filesystem::path& file) {
  const auto now = checkConfig(file, Warnings::LeftToDaemon);
  if (!now) return fail("{} cannot be read back", file.string());
  return client.saved(now->files);
}

int saveRunning(const std::string& interface, ControlClient& client) {
  const auto running = client.show(true);
  if (!running) return complain(running.error());
  const auto& files = running->device.configured.files;
  if (files.empty()) return complain(fmt::format("{}: the daemon names no file", interface));
  const auto loaded = checkConfig(files.front().path, Warnings::LeftToDaemon);
  if (!loaded) return kFailure;
  if (loaded->files != files) {
    return complain(fmt::format(
        "{0} was changed since {1} has loaded it: `adit reload {1}` applies the file, and what was "
        "set by hand is lost then; or set it again and save",
        files.front().path.string(), interface));
  }
  std::vector<std::string> remarks;
  const auto wanted = withRunningState(*loaded->config, *running, remarks);
  if (!wanted) return complain(wanted.error());
  const auto done = config::save(*loaded, *wanted);
  if (!done) return complain(done.error());
  const int status =
      print(report(files.front().path.string(), *done, config::diff(*loaded->config, *wanted)));
  for (const std::string& line : done->notSaved) {
    remark("not saved: " + line);
  }
  for (const std::string& text : remarks) {
    remark(text);
  }
  const auto told = tellDaemon(client, files.front().path);
  return told ? status : complain(told.error());
}

int save(const std::string& argument) {
  const auto named = control::resolveConfigName(argument);
  if (!named) return complain(named.error());
  auto client = ControlClient::connect(named->interface);
  return client ? saveRunning(named->interface, *client) : complain(client.error());
}

}  // namespace

void addSaveCommand(CLI::App& app, Action& action) {
  const auto name = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("save", "Write what was set since into the interface's file");
  sub->add_option("NAME", *name, "an interface that is up, or the path of its file")->required();
  sub->footer(
      "Keys, port, mark and peers as they are now go into the file that the interface was started "
      "from; comments, order, host names and everything else in it stay. Where a peer was seen is "
      "not saved. A file that was edited meanwhile is left alone.\n"
      "Example:\n"
      "  adit set adit0 peer KEY allowed-ips 10.10.0.3/32\n"
      "  adit save adit0");
  sub->callback([&action, name] { action = [name] { return save(*name); }; });
}

}  // namespace adit::cli
