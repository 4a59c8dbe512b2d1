#include "control/device.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>

#include "config/diff.hpp"
#include "control/device_peer.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {
namespace {

/// How long the machine has been suspended since boot.
std::chrono::nanoseconds suspendedTime() {
  timespec boot{};
  timespec running{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  ::clock_gettime(CLOCK_MONOTONIC, &running);
  return std::chrono::seconds(boot.tv_sec - running.tv_sec) +
         std::chrono::nanoseconds(boot.tv_nsec - running.tv_nsec);
}

/// Sets a flag for the life of the object.
class Changing {
 public:
  explicit Changing(bool& flag) : flag_(flag) { flag_ = true; }
  ~Changing() { flag_ = false; }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  bool& flag_;
};

tl::unexpected<Error> busy() {
  return fail("another change is under way; try again when it is done");
}

std::string joined(const std::vector<config::Diagnostic>& diagnostics) {
  std::string text;
  for (const config::Diagnostic& diagnostic : diagnostics) {
    text += (text.empty() ? "" : "\n") + diagnostic.toString();
  }
  return text;
}

}  // namespace

Device::Device(const DeviceParts& parts, DeviceOptions options, UndoRecord undo)
    : parts_(parts),
      options_(std::move(options)),
      undo_(std::move(undo)),
      timestamps_(parts.clock, parts.state, parts.state.mark()),
      sessions_(parts.clock, parts.random, timestamps_, *this, options_.timing),
      reconciler_(parts.routing, parts.firewall, parts.privileged, undo_, [this] { saveUndo(); }),
      tune_(parts.privileged, options_.name, options_.undoFile.parent_path() / kTuneRecord),
      dataPlaneEvents_(parts.loop.watch(parts.dataPlane.eventDescriptor(), EPOLLIN,
                                        [this](std::uint32_t) {
                                          parts_.dataPlane.dispatch(*this);
                                          scheduleTimers();
                                        })),
      timer_(parts.loop.timer([this] { runTimers(); })) {
  nextPeerId_ = parts_.dataPlane.inheritance().nextId;
  sessions_.setSuiteSpeeds(parts_.dataPlane.suiteSpeeds());
}

Device::~Device() = default;

dataplane::DeviceSettings Device::settingsOf(const config::InterfaceConfig& interface) const {
  dataplane::DeviceSettings settings;
  // A port that the system chose stays over a reload that does not name one.
  settings.listenPort = interface.listenPort.value_or(
      started_ ? parts_.dataPlane.deviceStats().listenPort : std::uint16_t{0});
  settings.bindAddress = interface.bindAddress.value_or(IpAddress{});
  settings.firewallMark = interface.firewallMark.value_or(0);
  if (interface.privateKey) {
    settings.publicKey = interface.privateKey->publicKey();
  }
  return settings;
}

Result<void> Device::configureDataPlane(const config::InterfaceConfig& interface) {
  dataplane::DeviceSettings settings = settingsOf(interface);
  // The mark of Table = auto is known only with the network's facts; it follows in applyNetwork().
  if (settings.firewallMark == 0) {
    settings.firewallMark = settings_.firewallMark;
  }
  if (auto configured = parts_.dataPlane.configure(settings); !configured) {
    if (configured.error().code == EADDRINUSE) {
      configured.error().message +=
          "; `ss -lunp` shows which: end it, or choose another ListenPort";
    }
    return configured;
  }
  settings_ = settings;
  privateKey_ = interface.privateKey;
  sessions_.setIdentity(privateKey_);
  return {};
}

Result<void> Device::runHooks(HookKind kind) {
  const UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool done = false;
  const EventSource finished =
      parts_.loop.watch(wake.get(), EPOLLIN, [&done](std::uint32_t) { done = true; });
  Result<void> result;
  std::thread runner([&] {
    result = parts_.privileged.runHooks(kind);
    ::eventfd_write(wake.get(), 1);
  });
  parts_.loop.pumpUntil(done);
  runner.join();
  return result;
}

void Device::takeConfig(const config::Outcome& outcome) {
  config_ = *outcome.config;
  files_ = outcome.files;
  fileWarnings_.clear();
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    fileWarnings_.push_back(diagnostic.place() + diagnostic.message);
  }
}

Result<void> Device::start(const config::Outcome& outcome) {
  if (auto checked = options_.check(*outcome.config); !checked) {
    return checked;
  }
  const Changing changing(changing_);
  takeConfig(outcome);
  if (auto configured = configureDataPlane(config_.interface); !configured) {
    return configured;
  }
  for (const config::PeerConfig& peer : config_.peers) {
    configurePeer(addPeer(peer.publicKey), peer);
  }
  updateInvitations();
  const auto report = applyNetwork();
  if (!report) {
    return tl::unexpected(report.error());
  }
  logReport(*report);
  setDns(config_.interface);
  if (!undo_.hooksRun) {
    undo_.hooksRun = true;
    saveUndo();
    if (auto run = runHooks(HookKind::PostUp); !run) {
      return run;
    }
  }
  started_ = true;
  removeForgottenPeers();
  greetPeers();
  scheduleTimers();
  // Keys must not outlive the machine's sleep (docs/protocol.md). A timer on the boot-time clock
  // that was missed during sleep fires right after it.
  suspendCheck_ = parts_.loop.timer([this, slept = suspendedTime()]() mutable {
    constexpr auto kNoticeable = std::chrono::seconds(1);
    if (suspendedTime() - slept > kNoticeable) {
      spdlog::info("{}: the machine was suspended; all sessions start anew", options_.name);
      sessions_.dropAllSessions();
      greetPeers();
    }
    slept = suspendedTime();
    watchHandshakes();
    updateInvitations();
    watchPorts();
    suspendCheck_.schedule(parts_.clock.now() + std::chrono::seconds(5));
  });
  suspendCheck_.schedule(parts_.clock.now());
  tune_.watch(parts_.loop, parts_.clock, [this] { reconcile(); });
  return {};
}

Result<ReconcileReport> Device::applyNetwork() {
  std::vector<Endpoint> endpoints;
  for (const auto& [id, peer] : peers_) {
    if (peer->endpoint && !peer->invitation) {
      endpoints.push_back(*peer->endpoint);
    }
  }
  facts_ = reconciler_.gatherFacts(
      config_, options_.name, endpoints,
      settings_.listenPort != 0 ? settings_.listenPort : parts_.dataPlane.deviceStats().listenPort);
  updatePortServer();
  desired_ = desiredNetwork(config_, facts_, leases());
  sessions_.setMtu(desired_.mtu);
  if (desired_.firewallMark != settings_.firewallMark) {
    dataplane::DeviceSettings settings = settings_;
    settings.firewallMark = desired_.firewallMark;
    if (auto configured = parts_.dataPlane.configure(settings); !configured) {
      return tl::unexpected(configured.error());
    }
    settings_ = settings;
  }
  auto report = reconciler_.apply(desired_, facts_.interfaceIndex);
  if (report) {
    tune_.apply(config_, *report);
    warnings_ = report->warnings;
    if (!desired_.mapsInactive.empty()) {
      warnings_.push_back("no mapping is active: " + desired_.mapsInactive);
    }
    askForPorts();
  }
  return report;
}

void Device::logReport(const ReconcileReport& report) const {
  for (const std::string& change : report.changes) {
    spdlog::info("{}: {}", options_.name, change);
  }
  for (const std::string& warning : report.warnings) {
    spdlog::warn("{}: {}", options_.name, warning);
  }
}

void Device::reconcile() {
  if (!started_ || changing_) {
    return;
  }
  if (const auto link = parts_.routing.findLink(options_.name); link && !*link) {
    spdlog::error("{}: somebody deleted the interface; taking down the rest", options_.name);
    parts_.loop.post([this] { down(); });
    return;
  }
  const std::vector<std::string> before = warnings_;
  auto report = applyNetwork();
  if (!report) {
    warnings_ = {report.error().message};
    report = ReconcileReport{{}, warnings_};
  }
  // A condition that lasts is reported once.
  std::erase_if(report->warnings, [&](const std::string& warning) {
    return std::ranges::find(before, warning) != before.end();
  });
  logReport(*report);
}

void Device::setDns(const config::InterfaceConfig& interface) {
  const bool wanted = !interface.dnsServers.empty() || !interface.dnsSearch.empty();
  dnsWarning_.clear();
  if (!wanted && !undo_.dns) {
    return;
  }
  // Before the change, so that whoever comes after a crash knows of it.
  undo_.dns = true;
  saveUndo();
  const auto set = parts_.privileged.setDns(interface.dnsServers, interface.dnsSearch);
  if (!set) {
    dnsWarning_ = set.error().message;
    spdlog::warn("{}: {}", options_.name, dnsWarning_);
  }
  undo_.dns = wanted == set.has_value();
  saveUndo();
}

void Device::saveUndo() {
  if (auto saved = undo_.save(options_.undoFile); !saved) {
    spdlog::warn("{}: {}", options_.name, saved.error().message);
  }
}

std::vector<std::string> Device::undo() {
  const Changing changing(changing_);
  started_ = false;
  std::vector<std::string> failures;
  const auto note = [&](const Result<void>& result) {
    if (!result) {
      failures.push_back(result.error().message);
    }
  };
  withdrawPorts();
  if (undo_.hooksRun) {
    note(runHooks(HookKind::PreDown));
    undo_.hooksRun = false;
    saveUndo();
  }
  if (undo_.dns) {
    note(parts_.privileged.setDns({}, {}));
  }
  for (std::string& failure : tune_.revert()) {
    failures.push_back(std::move(failure));
  }
  for (std::string& failure : reconciler_.remove(options_.name)) {
    failures.push_back(std::move(failure));
  }
  sessions_.dropAllSessions();
  note(parts_.state.flush());
  return failures;
}

/// The configuration as it would be written now: the file's, with what was set since.
config::Config Device::runningConfig() const {
  config::Config running = config_;
  running.interface.privateKey = privateKey_;
  running.peers.clear();
  for (const auto& [id, peer] : peers_) {
    if (peer->invitation) {
      continue;
    }
    const auto written =
        std::ranges::find(config_.peers, peer->publicKey, &config::PeerConfig::publicKey);
    config::PeerConfig entry = written == config_.peers.end() ? config::PeerConfig{} : *written;
    entry.publicKey = peer->publicKey;
    entry.name = peer->name;
    entry.presharedKey =
        peer->presharedKey.isZero() ? std::nullopt : std::optional(peer->presharedKey);
    entry.endpoint = peer->configuredEndpoint;
    entry.allowedIps = peer->allowedIps;
    entry.persistentKeepalive = peer->persistentKeepalive;
    entry.roam = peer->roam;
    running.peers.push_back(std::move(entry));
  }
  return running;
}

Result<std::vector<std::string>> Device::reload() {
  if (changing_) {
    return busy();
  }
  const Changing changing(changing_);
  const config::Outcome outcome = parts_.privileged.loadConfig();
  if (!outcome.ok()) {
    return fail("{}", joined(outcome.diagnostics));
  }
  if (auto checked = options_.check(*outcome.config); !checked) {
    return tl::unexpected(checked.error());
  }
  std::vector<std::string> notes;
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    notes.push_back(diagnostic.toString());
  }
  const config::Config& fresh = *outcome.config;
  for (const std::string& line : config::diff(runningConfig(), fresh).lines()) {
    notes.push_back(line);
  }
  if (fresh.interface.backend != config_.interface.backend) {
    notes.emplace_back("Backend takes effect at the next `adit down` and `adit up`");
  }
  if (fresh.interface.metrics != config_.interface.metrics) {
    notes.emplace_back("Metrics takes effect at the next `adit down` and `adit up`");
  }
  if (auto configured = configureDataPlane(fresh.interface); !configured) {
    return tl::unexpected(configured.error());
  }
  std::vector<crypto::PublicKey> gone;
  for (const auto& [id, peer] : peers_) {
    const auto same = [&](const config::PeerConfig& other) {
      return other.publicKey == peer->publicKey;
    };
    if (!peer->invitation && std::ranges::none_of(fresh.peers, same)) {
      gone.push_back(peer->publicKey);
    }
  }
  for (const crypto::PublicKey& key : gone) {
    removePeer(key);
  }
  takeConfig(outcome);
  trouble_.clear();
  for (const config::PeerConfig& peer : config_.peers) {
    configurePeer(addPeer(peer.publicKey), peer);
  }
  updateInvitations();
  const auto report = applyNetwork();
  if (!report) {
    return tl::unexpected(report.error());
  }
  logReport(*report);
  setDns(config_.interface);
  notes.insert(notes.end(), report->changes.begin(), report->changes.end());
  for (const std::string& warning : report->warnings) {
    notes.push_back("warning: " + warning);
  }
  if (!dnsWarning_.empty()) {
    notes.push_back("warning: " + dnsWarning_);
  }
  scheduleTimers();
  return notes;
}

Result<std::vector<std::string>> Device::down() {
  if (changing_ || undone_) {
    return busy();
  }
  std::vector<std::string> failures = undo();
  undone_ = true;
  options_.finished();
  return failures;
}

}  // namespace adit::control
