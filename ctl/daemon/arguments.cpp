#include "daemon/arguments.hpp"

namespace adit::daemon {

void describeArguments(CLI::App& app, Arguments& arguments) {
  app.name("aditd");
  app.description("aditd serves one adit tunnel interface. People use adit(8), which starts it.");
  app.add_option("INTERFACE", arguments.target,
                 "NAME of /etc/adit/NAME.conf, or the path of a file NAME.conf")
      ->required();
  auto* background = app.add_flag("--daemon", arguments.background,
                                  "Go to the background once the interface is up; 0 means up");
  auto* foreground =
      app.add_flag("--foreground", arguments.foreground,
                   "Stay in the foreground, and tell systemd of readiness (the default)");
  auto* cleanup = app.add_flag("--cleanup", arguments.cleanup,
                               "Remove what a killed daemon left of the interface, and end");
  auto* helper = app.add_flag("--helper", arguments.helper,
                              "Keep root for one worker; the unit adit-helper@ does");
  auto* worker = app.add_flag("--worker", arguments.worker,
                              "Face the network with the helper's help; the unit adit@ does");
  background->excludes(foreground)->excludes(cleanup);
  helper->excludes(worker)->excludes(background)->excludes(foreground)->excludes(cleanup);
  worker->excludes(background)->excludes(foreground)->excludes(cleanup);
  app.add_option("--log-level", arguments.logLevel, "trace, debug, info, warn, error or off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.set_version_flag("--version", "aditd " ADIT_VERSION, "Print the version and exit");
}

}  // namespace adit::daemon
