// monitor: what passes right now, by peer, mapping and core.
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "cli/monitor_terminal.hpp"
#include "cli/monitor_text.hpp"
#include "cli/output.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

using std::chrono::milliseconds;

struct MonitorArguments {
  std::string name;
  double interval = 1;
  bool once = false;
};

/// Every interface that is up, or the one that was named, which must be up at the start.
Result<MonitorLook> look(const std::string& name) {
  MonitorLook result;
  std::vector<std::string> interfaces;
  if (name.empty()) {
    auto running = control::runningInterfaces();
    if (!running) return tl::unexpected(running.error());
    interfaces = std::move(*running);
  } else {
    const auto named = control::resolveConfigName(name);
    if (!named) return tl::unexpected(named.error());
    interfaces.push_back(named->interface);
  }
  for (const std::string& interface : interfaces) {
    auto view = control::ControlClient::connect(interface).and_then(
        [](control::ControlClient client) { return client.show(false); });
    if (view) {
      result.devices.push_back(std::move(*view));
    } else if (!name.empty() && result.devices.empty()) {
      return tl::unexpected(view.error());
    } else {
      result.failures.push_back(view.error().message);
    }
  }
  result.cpus = doctor::parseCpuReading(readFile("/proc/stat").value_or(""));
  result.taken = std::chrono::steady_clock::now().time_since_epoch();
  result.wallClock = std::chrono::seconds(std::time(nullptr));
  return result;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

/// Two looks and one picture, as wide as it needs to be.
int once(const MonitorArguments& arguments, milliseconds interval) {
  constexpr MonitorSize kPaper{.columns = 120, .rows = 0};
  const auto before = look(arguments.name);
  if (!before) return complain(before.error());
  std::this_thread::sleep_for(interval);
  const auto now = look(arguments.name);
  if (!now) return complain(now.error());
  return print(joined(monitorLines(*before, *now, kPaper, wantsColor())));
}

int live(const MonitorArguments& arguments, milliseconds interval) {
  auto before = look(arguments.name);
  if (!before) return complain(before.error());
  auto terminal = Terminal::open();
  if (!terminal) return complain(terminal.error());
  auto now = before;
  auto next = std::chrono::steady_clock::now() + interval;
  for (;;) {
    MonitorSize size = terminal->size();
    size.rows -= size.rows > 2 ? 1 : 0;
    auto lines = monitorLines(*before, *now, size, wantsColor());
    lines.emplace_back(size.columns >= 20 ? "q or Ctrl-C ends it" : "q ends");
    if (!terminal->draw(lines)) return kFailure;
    const auto left = std::chrono::ceil<milliseconds>(next - std::chrono::steady_clock::now());
    const auto event = terminal->wait(std::max(left, milliseconds(0)));
    if (event == Terminal::Event::Quit) return kSuccess;
    if (std::chrono::steady_clock::now() < next) continue;
    next = std::chrono::steady_clock::now() + interval;
    before = std::move(now);
    now = look(arguments.name);
    if (!now) {
      // The interface may come back, as after a restart.
      MonitorLook gone;
      gone.failures.push_back(now.error().message);
      now = std::move(gone);
    }
  }
}

int monitor(const MonitorArguments& arguments) {
  constexpr double kShortest = 0.1;
  constexpr double kLongest = 3600;
  if (!(arguments.interval >= kShortest && arguments.interval <= kLongest)) {
    return complain(fmt::format("--interval: {} s is not between {} and {}", arguments.interval,
                                kShortest, kLongest));
  }
  const milliseconds interval(std::lround(arguments.interval * 1000));
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  return arguments.once || !terminal ? once(arguments, interval) : live(arguments, interval);
}

}  // namespace

void addMonitorCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<MonitorArguments>();
  CLI::App* sub =
      app.add_subcommand("monitor", "Show live what passes: by peer, by mapping, by core");
  sub->add_option("NAME", arguments->name, "an interface or its file; without it, every interface");
  sub->add_option("--interval", arguments->interval, "seconds between two looks; 1 without it");
  sub->add_flag("--once", arguments->once,
                "print once, after one interval; so it is where the output is no terminal");
  sub->footer(
      "q or Ctrl-C ends it. In a core's bar, # is softirq and : the rest.\n"
      "Examples:\n"
      "  adit monitor\n"
      "  adit monitor adit0 --once --interval 5");
  sub->callback([&action, arguments] { action = [arguments] { return monitor(*arguments); }; });
}

}  // namespace adit::cli
