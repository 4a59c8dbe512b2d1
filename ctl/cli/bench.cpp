// bench: how fast each layer is, measured with iperf3; and the ciphers alone.
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <memory>

#include "bench/aead_speed.hpp"
#include "bench/html.hpp"
#include "bench/local_network.hpp"
#include "bench/plan.hpp"
#include "bench/report_json.hpp"
#include "bench/runner.hpp"
#include "cli/bench_peer.hpp"
#include "cli/bench_server.hpp"
#include "cli/bench_text.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/output.hpp"
#include "config/values.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

using bench::Interrupt;
using bench::Report;
using Json = nlohmann::ordered_json;

struct BenchArguments {
  PeerArguments peer;
  bool local = false;
  std::string backend = "auto";
  std::string cipher = "auto";
  unsigned seconds = 5;
  std::vector<unsigned> streams{1, 4};
  std::vector<std::string> layers{"bare", "tunnel", "mapped"};
  std::string udpRate;
  bool json = false;
  std::string html;
  std::string compare;
};

struct ShowArguments {
  std::string file;
  bool json = false;
  std::string html;
  std::string compare;
};

struct CryptoArguments {
  bench::AeadOptions options;
  bool json = false;
};

std::string timeText() {
  std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

/// The first "model name" of /proc/cpuinfo; empty where the architecture has no such line.
std::string processorName() {
  constexpr std::string_view kLabel = "model name";
  const std::string text = readFile("/proc/cpuinfo").value_or("");
  const auto start = text.find(kLabel);
  if (start == std::string::npos) return "";
  const auto end = std::min(text.find('\n', start), text.size());
  const auto colon = text.find(": ", start);
  return colon < end ? text.substr(colon + 2, end - colon - 2) : "";
}

Report describeMachine(const std::string& iperfVersion) {
  Report report;
  report.started = timeText();
  report.aditVersion = ADIT_VERSION;
  report.iperfVersion = iperfVersion;
  utsname names{};
  if (::uname(&names) == 0) report.kernel = names.release;
  report.processor = processorName();
  report.cores = static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return report;
}

Result<Report> readReport(const std::string& file) {
  auto report =
      readFile(file).and_then([](const std::string& text) { return bench::reportFromJson(text); });
  if (!report) return wrapError(report.error(), file);
  return report;
}

/// What it can be asked beforehand is, so that no minute of measuring is lost.
Result<void> checkWritable(const std::string& file) {
  if (file.empty()) return {};
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (::access(folder.c_str(), W_OK) != 0) return failErrno(errno, "--html: {}", folder.string());
  return {};
}

/// Prints the report as the person wants it, and gives the exit status.
int show(const Report& report, bool json, const std::string& html, const std::string& compare) {
  std::optional<Report> before;
  if (!compare.empty()) {
    auto read = readReport(compare);
    if (!read) return complain(read.error());
    before = std::move(*read);
  }
  int status = bench::measuredAnything(report) && !report.interrupted ? kSuccess : kFailure;
  if (!html.empty()) {
    const auto written = replaceFile(html, bench::reportToHtml(report, before ? &*before : nullptr),
                                     0644, Durability::Process);
    if (!written) status = complain(written.error());
  }
  std::string text;
  if (json) {
    Json object = bench::reportToJson(report);
    if (before) object["comparison"] = comparisonToJson(*before, report);
    text = object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  } else {
    text = formatReport(report);
    if (before) text += '\n' + formatComparison(*before, report);
  }
  return print(text) == kSuccess ? status : kFailure;
}

Result<std::vector<bench::Step>> stepsOf(const BenchArguments& arguments) {
  bench::PlanOptions plan;
  plan.streams = arguments.streams;
  plan.layers.clear();
  for (const std::string& name : arguments.layers) {
    const auto layer = bench::layerFromName(name);
    if (!layer) return fail("--layers: \"{}\" is none of bare, tunnel, mapped", name);
    plan.layers.push_back(*layer);
  }
  return bench::planSteps(plan);
}

Result<bench::RunOptions> runOptionsOf(const BenchArguments& arguments) {
  bench::RunOptions options{.seconds = arguments.seconds};
  if (!arguments.udpRate.empty()) {
    const auto rate = config::parseRate(arguments.udpRate);
    if (!rate) return fail("--udp-rate: {}", rate.error().message);
    options.udpRate = *rate;
  }
  return options;
}

void announce(const BenchArguments& arguments, std::size_t steps) {
  remark(fmt::format("{} steps of {} s each", steps, arguments.seconds));
}

void tellStep(std::size_t number, std::size_t all, const bench::StepResult& result) {
  remark(formatStep(number, all, result));
}

/// What bounds the tunnel, from what was measured.
void addCeiling(Report& report) {
  std::optional<double> speed;
  const auto suite = crypto::suiteFromName(report.suite);
  if (suite && !report.interrupted) {
    if (const auto ready = crypto::initializeAead(); ready) {
      speed = bench::chosenAeadSpeed(*suite);
    } else {
      report.notes.push_back(ready.error().message);
    }
  }
  report.ceiling = bench::ceilingOf(report, speed);
  if (report.ceiling && report.backend == "kernel") {
    report.notes.emplace_back(
        "the cipher's speed is that of adit's userspace libraries; the kernel's own may differ");
  }
}

void measureInto(Report& report, const bench::Targets& targets, const BenchArguments& arguments,
                 const std::vector<bench::Step>& steps, const bench::RunOptions& options,
                 const Interrupt& interrupt) {
  constexpr double kQuiet = 10;
  announce(arguments, steps.size());
  if (const auto load = bench::otherLoad(interrupt); load && *load > kQuiet) {
    report.notes.push_back(fmt::format(
        "other programs used {:.0f} % of this machine's processors before the first step", *load));
    remark(report.notes.back());
  }
  report.results = bench::runSteps(steps, targets, options, interrupt, tellStep);
  report.interrupted = interrupt.signal() != 0;
}

/// Backend, cipher and MTU of the laboratory's server.
void addStatus(Report& report, const bench::LocalNetwork& network, const Interrupt& interrupt) {
  const auto text = network.status(interrupt);
  const Json json = text ? Json::parse(*text, nullptr, false) : Json();
  const auto view = text ? control::viewFromJson(json) : tl::unexpected(text.error());
  if (!view) {
    report.notes.push_back(fmt::format("status of the tunnel: {}", view.error().message));
    return;
  }
  report.backend = view->device.backend;
  report.mtu = view->device.mtu;
  if (!view->device.peers.empty() && view->device.peers.front().suite) {
    report.suite = crypto::suiteName(*view->device.peers.front().suite);
  }
}

Result<Report> measureLocally(const BenchArguments& arguments,
                              const std::vector<bench::Step>& steps,
                              const bench::RunOptions& options, Report report,
                              const Interrupt& interrupt) {
  if (::geteuid() != 0) {
    return fail(
        "adit bench --local needs root, for it makes network namespaces: run `sudo adit bench "
        "--local`");
  }
  const auto daemon = findDaemon();
  if (!daemon) return tl::unexpected(daemon.error());
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return failErrno(error.value(), "/proc/self/exe");
  remark("three machines in namespaces: client, server, nas");
  const auto network = bench::LocalNetwork::make(
      {.adit = self, .daemon = *daemon, .backend = arguments.backend, .cipher = arguments.cipher},
      interrupt);
  if (!network) return tl::unexpected(network.error());
  report.mode = "local";
  report.peer = "nas";
  report.interface = bench::LocalNetwork::kInterface;
  report.notes.emplace_back(
      "both ends, the client and iperf3 share this machine's cores; links between namespaces pass "
      "large segments, which a real network does not");
  addStatus(report, *network, interrupt);
  measureInto(report, network->targets(), arguments, steps, options, interrupt);
  // `Cipher = auto` may have moved to another one during the first step.
  if (!report.interrupted) addStatus(report, *network, interrupt);
  return report;
}

Result<Report> measurePeer(const BenchArguments& arguments, const std::vector<bench::Step>& steps,
                           const bench::RunOptions& options, Report report,
                           const Interrupt& interrupt) {
  const auto target = findPeer(arguments.peer);
  if (!target) return tl::unexpected(target.error());
  report.mode = "peer";
  report.peer = target->name;
  report.interface = target->interface;
  report.backend = target->backend;
  report.mtu = target->mtu;
  report.suite = target->suite ? crypto::suiteName(*target->suite) : "";
  report.notes = target->notes;
  measureInto(report, target->targets, arguments, steps, options, interrupt);
  // The first packet may have made the session, and `Cipher = auto` moved to another one since.
  if (!report.interrupted && !report.interface.empty()) {
    if (const auto now = findPeer(arguments.peer); now && now->suite) {
      report.suite = crypto::suiteName(*now->suite);
    }
  }
  return report;
}

int measure(const BenchArguments& arguments) {
  if (arguments.local == !arguments.peer.peer.empty()) {
    return complain("name a peer, or say --local; `adit bench --help` has examples");
  }
  const auto steps = stepsOf(arguments);
  const auto options = runOptionsOf(arguments);
  if (!steps) return complain(steps.error());
  if (!options) return complain(options.error());
  if (const auto writable = checkWritable(arguments.html); !writable) {
    return complain(writable.error());
  }
  if (!arguments.compare.empty()) {
    if (const auto before = readReport(arguments.compare); !before) return complain(before.error());
  }
  const Interrupt interrupt;
  const auto version = bench::findIperf(interrupt);
  if (!version) return complain(version.error());
  auto report = (arguments.local ? measureLocally : measurePeer)(
      arguments, *steps, *options, describeMachine(*version), interrupt);
  if (!report) return complain(report.error());
  addCeiling(*report);
  const int status = show(*report, arguments.json, arguments.html, arguments.compare);
  if (report->interrupted) return complain("interrupted: the table has what was measured before");
  if (!bench::measuredAnything(*report)) return complain("nothing was measured");
  return status;
}

int showFile(const ShowArguments& arguments) {
  const auto report = readReport(arguments.file);
  if (!report) return complain(report.error());
  return show(*report, arguments.json, arguments.html, arguments.compare);
}

int measureCrypto(const CryptoArguments& arguments) {
  if (const auto ready = crypto::initializeAead(); !ready) return complain(ready.error());
  const auto rows = bench::measureAeads(arguments.options);
  return print(arguments.json ? bench::aeadsToJson(arguments.options, rows).dump(2) + '\n'
                              : bench::formatAeads(arguments.options, rows));
}

template <typename Arguments>
void addOutputOptions(CLI::App* app, const std::shared_ptr<Arguments>& arguments) {
  app->add_flag("--json", arguments->json, "one JSON object; what has no result is null");
  app->add_option("--html", arguments->html, "write a page with charts to this file");
  app->add_option("--compare", arguments->compare, "what --json printed before a change");
}

void addMeasuring(CLI::App* app, const std::shared_ptr<BenchArguments>& arguments) {
  app->add_option("PEER", arguments->peer.peer,
                  "name, public key, or address inside the tunnel; it runs `adit bench server`");
  app->add_flag("--local", arguments->local,
                "no peer: both ends in namespaces of this machine, removed afterwards");
  app->add_option("--seconds", arguments->seconds, "of each step")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app->add_option("--streams", arguments->streams, "numbers of parallel TCP streams")
      ->delimiter(',')
      ->check(CLI::Range(1U, bench::kMaxStreams))
      ->default_str("1,4");
  app->add_option("--layers", arguments->layers, "of bare, tunnel, mapped")
      ->delimiter(',')
      ->default_str("bare,tunnel,mapped");
  app->add_option("--udp-rate", arguments->udpRate,
                  "of UDP, as in 200mbit; without it, as fast as the sender can");
  addOutputOptions(app, arguments);
}

void addPeerOptions(CLI::App* app, const std::shared_ptr<BenchArguments>& arguments) {
  PeerArguments& peer = arguments->peer;
  app->add_option("--interface", peer.interface, "where several have such a peer");
  app->add_option("--address", peer.address, "the peer's address inside the tunnel");
  app->add_option("--endpoint", peer.endpoint, "the peer's address outside of it");
  app->add_option("--mapped", peer.mapped, "ADDRESS:PORT that leads to the peer's iperf3");
  app->add_option("--port", peer.port, "of the peer's iperf3")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app->add_option("--backend", arguments->backend, "of --local: auto, kernel, userspace")
      ->check(CLI::IsMember({"auto", "kernel", "userspace"}))
      ->capture_default_str();
  app->add_option("--cipher", arguments->cipher, "of --local: auto, or a suite's name")
      ->check(CLI::IsMember({"auto", "chacha20-poly1305", "aes-256-gcm", "aes-128-gcm"}))
      ->capture_default_str();
}

void addCrypto(CLI::App* app, Action& action) {
  const auto arguments = std::make_shared<CryptoArguments>();
  CLI::App* sub = app->add_subcommand(
      "crypto", "Measure each cipher and each implementation of it on one core");
  sub->add_option("--packet", arguments->options.packet, "bytes of plaintext in a packet")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  sub->add_option("--batch", arguments->options.batch, "packets handed over at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_option("--seconds", arguments->options.seconds, "for each cell of the table")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  sub->add_flag("--json", arguments->json, "one JSON object: packet_bytes, batch, results");
  sub->footer("Example:\n  adit bench crypto --packet 1372");
  sub->callback(
      [&action, arguments] { action = [arguments] { return measureCrypto(*arguments); }; });
}

void addShow(CLI::App* app, Action& action) {
  const auto arguments = std::make_shared<ShowArguments>();
  CLI::App* sub =
      app->add_subcommand("show", "Print again what --json printed, compare it, make its page");
  sub->add_option("FILE", arguments->file, "what --json printed")->required();
  addOutputOptions(sub, arguments);
  sub->footer("Example:\n  adit bench show after.json --compare before.json --html bench.html");
  sub->callback([&action, arguments] { action = [arguments] { return showFile(*arguments); }; });
}

}  // namespace

void addBenchCommands(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* bench = app.add_subcommand(
      "bench", "Measure the layers with iperf3: bare link, tunnel, mapped port; and the ciphers");
  bench->require_subcommand(0, 1);
  addMeasuring(bench, arguments);
  addPeerOptions(bench, arguments);
  addBenchServer(bench, action);
  addCrypto(bench, action);
  addShow(bench, action);
  bench->footer(
      "A step without a result says why, and is never a zero. Exit status 1 when nothing was\n"
      "measured, or it was interrupted. A peer called server, crypto or show: adit bench -- NAME\n"
      "Examples:\n"
      "  adit bench server                       on the one machine, and on the other:\n"
      "  adit bench nas --html bench.html\n"
      "  adit bench nas --json >before.json; sudo adit tune apply\n"
      "  adit bench nas --compare before.json\n"
      "  sudo adit bench --local --seconds 2");
  bench->callback([&action, arguments, bench] {
    if (!bench->get_subcommands().empty()) return;
    action = [arguments] { return measure(*arguments); };
  });
}

}  // namespace adit::cli
