// doctor: what makes the tunnel fail or slow, in one sentence each.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "cli/doctor_machine.hpp"
#include "cli/doctor_text.hpp"
#include "cli/doctor_tunnel.hpp"
#include "cli/output.hpp"
#include "config/values.hpp"
#include "control/control_client.hpp"
#include "control/device_tune.hpp"
#include "control/privileged_directories.hpp"
#include "doctor/diagnose.hpp"

namespace adit::cli {
namespace {

/// Health is what the exit status tells, so failing needs another one.
constexpr int kError = 2;
/// Two looks at the counters, this far apart.
constexpr std::chrono::milliseconds kWatch{1000};

struct DoctorArguments {
  std::string name;
  std::string bandwidth;
  std::string root = "/";
  bool probe = false;
  bool json = false;
};

int failed(const Error& error) {
  complain(error);
  return kError;
}

/// The interfaces to look at: the named one, or all that are up.
Result<std::vector<std::string>> interfacesOf(const DoctorArguments& arguments) {
  if (arguments.root != "/") return std::vector<std::string>{};
  if (arguments.name.empty()) {
    // Whoever may not look into the folder still learns of the machine.
    return control::runningInterfaces().value_or(std::vector<std::string>{});
  }
  return std::vector{arguments.name};
}

/// An interface that has a file and is not up.
doctor::Finding downFinding(const std::string& name, const Error& error) {
  return {"interface-down", doctor::Severity::Fault, fmt::format("{} is not up", name),
          error.message,
          fmt::format("`adit up {0}`; {1} tells why an earlier one failed", name,
                      control::logFile(name).string())};
}

std::vector<std::filesystem::path> tuneRecords(const std::vector<std::string>& interfaces) {
  std::vector<std::filesystem::path> records{control::runtimeDirectory() / control::kTuneRecord};
  for (const std::string& name : interfaces) {
    records.push_back(control::volatileDirectory(name) / control::kTuneRecord);
  }
  return records;
}

doctor::CpuReading readCpus(const tune::Files& files) {
  return doctor::parseCpuReading(files.read("proc/stat").value_or(""));
}

class Doctor {
 public:
  explicit Doctor(const DoctorArguments& arguments)
      : arguments_(arguments), files_(arguments.root) {}

  Result<Examination> examine() {
    const auto interfaces = interfacesOf(arguments_);
    if (!interfaces) return tl::unexpected(interfaces.error());
    if (!arguments_.bandwidth.empty()) {
      const auto rate = config::parseRate(arguments_.bandwidth);
      if (!rate) return fail("--bandwidth: {}", rate.error().message);
      seen_.bandwidth = *rate;
    }
    const bool live = arguments_.root == "/";
    const doctor::CpuReading before = readCpus(files_);
    const auto start = std::chrono::steady_clock::now();
    for (const std::string& name : *interfaces) {
      if (auto opened = open(name); !opened) return tl::unexpected(opened.error());
    }
    seen_.machine = observeMachine(files_, publicNic());
    if (live) observeLive(*interfaces);
    for (const Machine& machine : machines_) {
      seen_.tunnels.push_back(observeTunnel(machine, files_, seen_.machine.nic));
    }
    if (live) watch(before, start);
    if (arguments_.probe) probe();
    result_.probed = arguments_.probe;
    std::ranges::copy(doctor::diagnose(seen_), std::back_inserter(result_.findings));
    doctor::order(result_.findings);
    return std::move(result_);
  }

 private:
  Result<void> open(const std::string& name) {
    auto machine = machineOf(name);
    if (machine) {
      result_.tunnels.push_back(machine->view.device.name);
      machines_.push_back(std::move(*machine));
      return {};
    }
    std::error_code ignored;
    const auto named = control::resolveConfigName(name);
    if (machine.error().code == ENOENT && named && std::filesystem::exists(named->file, ignored)) {
      result_.findings.push_back(downFinding(named->interface, machine.error()));
      return {};
    }
    if (!arguments_.name.empty()) return tl::unexpected(machine.error());
    result_.remarks.push_back(fmt::format("{}: {}", name, machine.error().message));
    return {};
  }

  [[nodiscard]] std::string publicNic() const {
    for (const Machine& machine : machines_) {
      if (const std::string& nic = machine.config.interface.publicInterface; !nic.empty()) {
        return nic;
      }
    }
    return {};
  }

  void observeLive(const std::vector<std::string>& interfaces) {
    const auto nics = tune::kernelNicControl();
    seen_.machine.irqbalance = observeIrqbalance({files_, *nics}, tuneRecords(interfaces));
    std::vector<std::filesystem::path> dated{"/proc/self/exe"};
    for (const Machine& machine : machines_) {
      dated.push_back(machine.named.file);
    }
    observeClock(dated, seen_.machine);
  }

  /// What moves between two looks.
  void watch(const doctor::CpuReading& before, std::chrono::steady_clock::time_point start) {
    std::this_thread::sleep_until(start + kWatch);
    seen_.machine.cpus = doctor::sharesBetween(before, readCpus(files_));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      const auto later =
          control::ControlClient::connect(machines_[i].named.interface)
              .and_then([](control::ControlClient client) { return client.show(false); });
      if (later) observeRates(*later, passed, seen_.tunnels[i]);
    }
  }

  void probe() {
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      probeTunnel(machines_[i], seen_.tunnels[i]);
    }
  }

  const DoctorArguments& arguments_;
  tune::RootedFiles files_;
  std::vector<Machine> machines_;
  doctor::Observation seen_;
  Examination result_;
};

int examine(const DoctorArguments& arguments) {
  if (arguments.probe && ::geteuid() != 0) {
    complain("doctor --probe needs root, for it sends packets of its own");
    return kError;
  }
  const auto examination = Doctor(arguments).examine();
  if (!examination) return failed(examination.error());
  using Json = nlohmann::ordered_json;
  const std::string text =
      arguments.json
          ? examinationToJson(*examination).dump(2, ' ', false, Json::error_handler_t::replace) +
                '\n'
          : formatExamination(*examination, wantsColor());
  if (print(text) != kSuccess) return kError;
  return doctor::isHealthy(examination->findings) ? kSuccess : kFailure;
}

}  // namespace

void addDoctorCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* sub = app.add_subcommand(
      "doctor", "Find out why a tunnel fails or is slow: the bottleneck first, and what mends it");
  sub->add_option("NAME", arguments->name,
                  "an interface or its file; without it, this machine and all that is up");
  sub->add_flag("--probe", arguments->probe,
                "send packets as well: path MTU, round trip, rate, mappings (some seconds)");
  sub->add_option("--bandwidth", arguments->bandwidth,
                  "of the path to the peer, as in 500mbit; without it, what is measured, or the "
                  "NIC's speed");
  sub->add_option("--root", arguments->root,
                  "folder of a recorded machine: what its /proc and /sys hold");
  sub->add_flag("--json", arguments->json, "one JSON object: healthy, findings");
  sub->footer(
      "Exit status 0 when healthy (advice alone is), 1 with findings, 2 when it cannot look.\n"
      "Examples:\n"
      "  adit doctor\n"
      "  sudo adit doctor adit0 --probe\n"
      "  adit doctor --json | jq -r '.findings[0].remedy'");
  sub->callback([&action, arguments] { action = [arguments] { return examine(*arguments); }; });
}

}  // namespace adit::cli
