// up, down and reload: starting and ending an interface's daemon.
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/diagnostics.hpp"
#include "cli/firewall_fixes.hpp"
#include "cli/lifecycle.hpp"
#include "cli/output.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;
using control::NamedConfig;

int needRoot(std::string_view command, std::string_view argument) {
  return complain(fmt::format("{0} needs root, for it changes the network: run `sudo adit {0} {1}`",
                              command, argument));
}

}  // namespace

int bringUp(const std::string& argument) {
  const auto named = control::resolveConfigName(argument);
  if (!named) return complain(named.error());
  const bool root = ::geteuid() == 0;
  if (!root && ::access(named->file.c_str(), R_OK) != 0 && errno == EACCES) {
    return needRoot("up", argument);
  }
  if (!checkConfig(named->file, Warnings::LeftToDaemon)) return kFailure;
  if (!root) return needRoot("up", argument);
  const auto running = ControlClient::connect(named->interface);
  if (running) {
    return complain(fmt::format("{0} is already up; `adit reload {0}` applies a changed file",
                                named->interface));
  }
  if (running.error().code != ENOENT) return complain(running.error());
  const auto status = runDaemon({"--daemon", argument});
  if (!status) return complain(status.error());
  return *status == 0 ? kSuccess : kFailure;
}

namespace {

/// The changes to other firewalls that `adit map check --fix` made.
void undoOtherFirewalls(const std::string& interface) {
  for (const std::string& failure : undoFixes(interface)) {
    remark(failure);
  }
}

int cleanUp(const std::string& interface, const std::string& argument) {
  if (::geteuid() != 0) return needRoot("down", argument);
  undoOtherFirewalls(interface);
  const auto status = runDaemon({"--cleanup", argument});
  if (!status) return complain(status.error());
  return *status == 0 ? kSuccess : kFailure;
}

int down(const std::string& argument) {
  const auto named = control::resolveConfigName(argument);
  if (!named) return complain(named.error());
  auto client = ControlClient::connect(named->interface);
  if (!client) {
    return client.error().code == ENOENT ? cleanUp(named->interface, argument)
                                         : complain(client.error());
  }
  const auto notes = client->down();
  if (!notes) return complain(notes.error());
  for (const std::string& note : *notes) {
    remark(note);
  }
  undoOtherFirewalls(named->interface);
  const auto ended = client->waitForEnd(ControlClient::kLongPatience);
  return ended ? kSuccess : complain(ended.error());
}

int reload(const std::string& argument) {
  const auto named = control::resolveConfigName(argument);
  if (!named) return complain(named.error());
  const auto notes = ControlClient::connect(named->interface).and_then([](ControlClient client) {
    return client.reload();
  });
  if (!notes) return complain(notes.error());
  if (notes->empty()) return print(fmt::format("{}: nothing changed\n", named->interface));
  return print(fmt::format("{}\n", fmt::join(*notes, "\n")));
}

using Command = int (*)(const std::string& argument);

CLI::App* addCommand(CLI::App& app, Action& action, const char* name, const char* description,
                     Command command) {
  const auto argument = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand(name, description);
  sub->add_option("NAME", *argument,
                  "an interface (its file is /etc/adit/NAME.conf), or the path of such a file")
      ->required();
  sub->callback([&action, argument, command] {
    action = [argument, command] { return command(*argument); };
  });
  return sub;
}

}  // namespace

void addLifecycleCommands(CLI::App& app, Action& action) {
  addCommand(app, action, "up", "Check a configuration and bring its interface up", bringUp)
      ->footer(
          "Everything that is wrong in the file is listed before anything is touched.\n"
          "Environment: ADITD names the daemon's program.\n"
          "Examples:\n"
          "  adit up adit0\n"
          "  adit up ./adit0.conf");
  addCommand(app, action, "down", "Take an interface down and undo all that it changed", down)
      ->footer(
          "Where no daemon runs any more, what it has left behind is removed.\n"
          "Example:\n"
          "  adit down adit0");
  addCommand(app, action, "reload", "Apply a changed file without dropping sessions", reload)
      ->footer(
          "Prints what changed. A wrong file changes nothing.\n"
          "Example:\n"
          "  adit reload adit0");
}

}  // namespace adit::cli
