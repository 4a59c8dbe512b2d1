// tune: what of this machine slows a tunnel down, and changing it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/diagnostics.hpp"
#include "cli/output.hpp"
#include "cli/tune_text.hpp"
#include "config/values.hpp"
#include "control/control_client.hpp"
#include "control/device_tune.hpp"
#include "control/paths.hpp"
#include "control/privileged_directories.hpp"
#include "control/tune_request.hpp"
#include "tune/apply.hpp"

namespace adit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TuneArguments {
  std::string name;
  std::vector<std::string> nics;
  std::string bandwidth;
  std::string delay;
  std::string root = "/";
  bool json = false;
};

/// The machine at `root`; of a recorded one only files are known.
class Target {
 public:
  explicit Target(const std::string& root)
      : files_(root), nics_(root == "/" ? tune::kernelNicControl() : tune::noNicControl()) {}
  [[nodiscard]] tune::Machine machine() { return {files_, *nics_}; }
  [[nodiscard]] const tune::Files& files() const { return files_; }

 private:
  tune::RootedFiles files_;
  std::unique_ptr<tune::NicControl> nics_;
};

/// Of `adit tune apply`; daemons have their own.
std::filesystem::path recordFile() {
  return control::runtimeDirectory() / control::kTuneRecord;
}

int printJson(const Json& json) {
  return print(json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

int needRoot(std::string_view command) {
  return complain(fmt::format(
      "adit tune {0} needs root, for it writes to /proc and /sys: run `sudo adit tune {0}`",
      command));
}

Result<void> addPath(const TuneArguments& arguments, tune::Request& request) {
  if (!arguments.bandwidth.empty()) {
    const auto rate = config::parseRate(arguments.bandwidth);
    if (!rate) return fail("--bandwidth: {}", rate.error().message);
    request.bandwidth = *rate;
  }
  if (!arguments.delay.empty()) {
    const auto delay = parseDelay(arguments.delay);
    if (!delay) return fail("--delay: {}", delay.error().message);
    request.delay = *delay;
  }
  return {};
}

/// What an interface's file asks for; without one, everything is computed.
Result<tune::Request> requestOf(const TuneArguments& arguments, const tune::Files& files) {
  tune::Request request;
  if (!arguments.name.empty()) {
    const auto named = control::resolveConfigName(arguments.name);
    if (!named) return tl::unexpected(named.error());
    const auto outcome = checkConfig(named->file, Warnings::LeftToDaemon);
    if (!outcome) return fail("{} cannot be used", named->file.string());
    request = control::tuneRequest(*outcome->config, named->interface, files);
  } else {
    if (arguments.root == "/") {
      if (auto running = control::runningInterfaces()) request.tunnels = std::move(*running);
    }
    const std::string nic = tune::defaultNic(files);
    if (!nic.empty()) request.nics = tune::nicsBehind(files, nic);
  }
  if (!arguments.nics.empty()) request.nics = arguments.nics;
  if (request.nics.empty()) {
    return fail("there is no default route, so nobody knows which NIC to tune: name it with --nic");
  }
  if (auto added = addPath(arguments, request); !added) return tl::unexpected(added.error());
  return request;
}

int plan(const TuneArguments& arguments) {
  Target target(arguments.root);
  const auto request = requestOf(arguments, target.files());
  if (!request) return complain(request.error());
  tune::Record record;
  // Without root the record cannot be read; what is applied then shows as it is.
  if (arguments.root == "/") {
    if (auto loaded = tune::Record::load(recordFile(), target.files())) record = *loaded;
  }
  const auto made = tune::makePlan(target.machine(), *request, record);
  if (!made) return complain(made.error());
  return arguments.json ? printJson(planToJson(*made)) : print(formatPlan(*made));
}

/// The daemon of an interface with [Tune] applies it itself, and would undo what differs.
std::optional<std::string> keptByDaemon(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto named = control::resolveConfigName(name);
  if (!named || !control::ControlClient::connect(named->interface)) return std::nullopt;
  const auto outcome = checkConfig(named->file, Warnings::LeftToDaemon);
  if (!outcome || !control::wantsTuning(outcome->config->tune)) return std::nullopt;
  return fmt::format(
      "{0} is up and its daemon keeps [Tune] applied: change the file and run `adit reload {0}`",
      named->interface);
}

int apply(const TuneArguments& arguments) {
  if (::geteuid() != 0) return needRoot("apply");
  if (const auto kept = keptByDaemon(arguments.name)) return complain(*kept);
  Target target("/");
  const auto request = requestOf(arguments, target.files());
  if (!request) return complain(request.error());
  auto record = tune::Record::load(recordFile(), target.files());
  if (!record) return complain(record.error());
  const auto done = tune::tuneMachine(
      target.machine(), *request, *record,
      [](const tune::Record& now) { return now.save(recordFile()); },
      [&](const tune::ItemResult& result) {
        if (!arguments.json && result.outcome != tune::Outcome::Already) {
          print(formatResult(result));
        }
      });
  if (!done) return complain(done.error());
  if (arguments.json) {
    printJson(reportToJson(*done));
  } else {
    const auto changed =
        std::ranges::count(done->results, tune::Outcome::Done, &tune::ItemResult::outcome);
    print(fmt::format("{} changed; `adit tune revert` puts the old values back\n", changed));
    for (const std::string& note : done->remarks) {
      remark(fmt::format("note: {}", note));
    }
    for (const std::string& warning : done->warnings) {
      remark(fmt::format("warning: {}", warning));
    }
  }
  return done->ok() ? kSuccess : kFailure;
}

int revert(const TuneArguments&) {
  if (::geteuid() != 0) return needRoot("revert");
  Target target("/");
  auto record = tune::Record::load(recordFile(), target.files());
  if (!record) return complain(record.error());
  if (record->entries.empty()) {
    return print("Nothing was applied by `adit tune apply` since the machine started.\n");
  }
  const std::size_t before = record->entries.size();
  const auto lines = tune::revert(target.machine(), *record);
  if (const auto saved = record->save(recordFile()); !saved) return complain(saved.error());
  for (const std::string& line : lines) {
    remark(line);
  }
  const std::size_t left = record->entries.size();
  print(fmt::format("{} of {} files reverted\n", before - left, before));
  return left == 0 ? kSuccess : kFailure;
}

int status(const TuneArguments& arguments) {
  if (::geteuid() != 0) return needRoot("status");
  Target target("/");
  std::vector<TuneStanding> all;
  const auto add = [&](const std::filesystem::path& file, std::string keeper) -> Result<void> {
    const auto record = tune::Record::load(file, target.files());
    if (!record) return tl::unexpected(record.error());
    if (!record->entries.empty()) {
      all.push_back({std::move(keeper), tune::standing(target.machine(), *record)});
    }
    return {};
  };
  if (auto added = add(recordFile(), "adit tune apply"); !added) return complain(added.error());
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(control::runtimeDirectory(), ignored)) {
    if (!entry.is_directory(ignored)) continue;
    const std::string name = entry.path().filename();
    const std::filesystem::path file = control::volatileDirectory(name) / control::kTuneRecord;
    if (auto added = add(file, name); !added) remark(added.error().message);
  }
  return arguments.json ? printJson(standingToJson(all)) : print(formatStanding(all));
}

using Arguments = std::shared_ptr<TuneArguments>;

CLI::App* addCommand(CLI::App& tune, Action& action, const char* name, const char* description,
                     const Arguments& arguments, int (*command)(const TuneArguments&)) {
  CLI::App* sub = tune.add_subcommand(name, description);
  sub->callback([&action, arguments, command] {
    action = [arguments, command] { return command(*arguments); };
  });
  return sub;
}

void addRequestOptions(CLI::App* sub, const Arguments& arguments) {
  sub->add_option("NAME", arguments->name,
                  "an interface or its file, whose [Tune] is used; without it, all is computed");
  sub->add_option("--nic", arguments->nics,
                  "NIC to tune; without it, Public of the file, or that of the default route");
  sub->add_option("--bandwidth", arguments->bandwidth,
                  "of the path to the peer, as in 500mbit; without it, the NIC's speed");
  sub->add_option("--delay", arguments->delay,
                  "round trip to the peer, as in 40ms; without it, 100ms");
}

}  // namespace

void addTuneCommands(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<TuneArguments>();
  CLI::App* tune = app.add_subcommand(
      "tune", "Tune the machine for the tunnel: queues, interrupts, CPUs, TCP; and back");
  tune->require_subcommand(1);
  tune->footer(
      "With [Tune] Profile = auto in its file, an interface's daemon applies it while it is up.\n"
      "Examples:\n"
      "  adit tune plan\n"
      "  sudo adit tune apply --bandwidth 1gbit --delay 40ms\n"
      "  sudo adit tune revert");

  CLI::App* planCommand = addCommand(
      *tune, action, "plan", "Print every file that would be written, and why", arguments, plan);
  addRequestOptions(planCommand, arguments);
  planCommand->add_option("--root", arguments->root,
                          "folder of a recorded machine: what its /proc and /sys hold");
  planCommand->add_flag("--json", arguments->json, "one JSON object: changes, notes");

  CLI::App* applyCommand =
      addCommand(*tune, action, "apply", "Write it, read it back, and record the old values",
                 arguments, apply);
  addRequestOptions(applyCommand, arguments);
  applyCommand->add_flag("--json", arguments->json,
                         "one JSON object: ok, results, warnings, notes");

  addCommand(*tune, action, "revert", "Put the old values back", arguments, revert);
  addCommand(*tune, action, "status", "List what was written and whether it still holds", arguments,
             status)
      ->add_flag("--json", arguments->json, "one JSON array, by who keeps it");
}

}  // namespace adit::cli
