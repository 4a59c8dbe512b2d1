#include "control/daemon.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "control/backend.hpp"
#include "control/control_protocol.hpp"
#include "control/device.hpp"
#include "control/event_loop.hpp"
#include "control/map_check.hpp"
#include "control/metrics_page.hpp"
#include "control/metrics_server.hpp"
#include "control/privileged_confine.hpp"
#include "control/privileged_directories.hpp"
#include "control/stream_server.hpp"
#include "control/test_overrides.hpp"
#include "control/uapi.hpp"
#include "crypto/aead.hpp"
#include "netlink/monitor.hpp"

namespace adit::control {
namespace {

constexpr std::uint32_t kInitialMtu = 1420;
/// Kernel events come in bursts; one look at the end of a burst is enough.
constexpr auto kReconcileDelay = std::chrono::milliseconds(50);
/// A net for events that the kernel did not report.
constexpr auto kReconcileInterval = std::chrono::seconds(30);
constexpr auto kAnswerPatience = std::chrono::seconds(2);

std::filesystem::path undoFile(const std::string& name) {
  return volatileDirectory(name) / "undo.json";
}

/// What the worker keeps in its folders while the interface is up.
void removeVolatileFiles(const std::string& name) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(volatileDirectory(name), ignored)) {
    std::filesystem::remove(entry.path(), ignored);
  }
}

std::string errorText(const config::Outcome& outcome) {
  std::string text;
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.severity == config::Severity::Error) {
      text += (text.empty() ? "" : "\n") + diagnostic.toString();
    }
  }
  return text;
}

/// The kernel's side, as the device sees it.
struct Kernel {
  std::unique_ptr<netlink::RouteSocket> routing;
  std::unique_ptr<nat::KernelFirewall> firewall;
  std::unique_ptr<netlink::Monitor> monitor;

  static Result<Kernel> open() {
    auto routing = netlink::RouteSocket::open();
    if (!routing) {
      return tl::unexpected(routing.error());
    }
    auto firewall = nat::KernelFirewall::open();
    if (!firewall) {
      return tl::unexpected(firewall.error());
    }
    auto monitor = netlink::Monitor::open();
    if (!monitor) {
      return tl::unexpected(monitor.error());
    }
    return Kernel{std::move(*routing), std::move(*firewall), std::move(*monitor)};
  }
};

class Daemon {
 public:
  Daemon(std::string name, DaemonSockets& sockets, Privileged& privileged)
      : name_(std::move(name)),
        privileged_(privileged),
        clock_(testClock()),
        resolver_(loop_),
        state_(*clock_, stateDirectory(name_), volatileDirectory(name_)),
        sockets_(sockets) {}

  /// Brings the interface up. On failure nothing is left.
  Result<std::vector<std::string>> start();
  /// What does not work, once it is up; the log has it already.
  [[nodiscard]] std::vector<std::string> warnings() const { return device_->warnings(); }
  /// Until the interface is down; returns the exit status.
  int run();

 private:
  Result<void> check(const config::Config& config);
  Result<void> startDevice(const config::Outcome& outcome);
  void serve();
  void watchKernel();
  void handleSignals();
  void undoStart();
  void endWhenAnswered();
  void scheduleReconcile();

  std::string name_;
  Privileged& privileged_;
  EventLoop loop_;
  std::unique_ptr<Clock> clock_;
  crypto::SystemRandom random_;
  SystemResolver resolver_;
  StateStore state_;
  DaemonSockets& sockets_;
  std::optional<Kernel> kernel_;
  ChosenBackend backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<StreamServer> controlServer_;
  std::unique_ptr<StreamServer> wireguardServer_;
  std::unique_ptr<MetricsServer> metricsServer_;
  EventSource kernelEvents_;
  EventSource endedConnections_;
  EventSource reconcileTimer_;
  EventSource endTimer_;
  std::vector<EventSource> signals_;
  /// A daemon that was killed has left this interface.
  bool adopted_ = false;
  bool running_ = false;
  bool endWanted_ = false;
};

Result<std::vector<std::string>> Daemon::start() {
  // Before there are threads: all of them inherit the blocked signals.
  handleSignals();
  adopted_ = std::filesystem::exists(undoFile(name_));
  config::Outcome outcome = privileged_.loadConfig();
  if (!outcome.ok()) {
    return fail("{}", errorText(outcome));
  }
  std::vector<std::string> remarks = state_.load();
  if (!sockets_.metricsTrouble.empty()) {
    remarks.push_back(sockets_.metricsTrouble);
  }
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    remarks.push_back(diagnostic.toString());
  }
  if (auto started = startDevice(outcome); !started) {
    undoStart();
    return tl::unexpected(started.error());
  }
  if (endWanted_) {
    undoStart();
    return fail("interrupted: {} is not up", name_);
  }
  watchKernel();
  return remarks;
}

Result<void> Daemon::check(const config::Config& config) {
  return checkMappings(name_, config);
}

Result<void> Daemon::startDevice(const config::Outcome& outcome) {
  const config::Config& config = *outcome.config;
  if (auto initialized = crypto::initializeAead(); !initialized) {
    return initialized;
  }
  if (auto checked = check(config); !checked) {
    return checked;
  }
  auto kernel = Kernel::open();
  if (!kernel) {
    return tl::unexpected(kernel.error());
  }
  kernel_ = std::move(*kernel);
  const auto undo = UndoRecord::load(undoFile(name_), name_);
  if (!undo) {
    return tl::unexpected(undo.error());
  }
  for (const std::string& refused : undo->refused) {
    spdlog::warn("{}", refused);
  }
  if (adopted_) {
    spdlog::info("{}: taking over what a daemon that was killed left", name_);
  } else if (auto run = privileged_.runHooks(HookKind::PreUp); !run) {
    return run;
  }
  // From here on there is something to undo, also for a successor.
  if (auto saved = undo->save(undoFile(name_)); !saved) {
    return saved;
  }
  auto backend = openBackend({.wanted = config.interface.backend,
                              .name = name_,
                              .mtu = config.interface.mtu.value_or(kInitialMtu),
                              .adopted = adopted_},
                             {*clock_, privileged_, *kernel_->routing});
  if (!backend) {
    return tl::unexpected(backend.error());
  }
  backend_ = std::move(*backend);
  spdlog::info("{}: {} data plane ({})", name_, backend_.dataPlane->name(), backend_.reason);
  DeviceOptions options{.name = name_,
                        .backendReason = backend_.reason,
                        .undoFile = undoFile(name_),
                        .adopted = adopted_,
                        .timing = testTiming(),
                        .endpointTiming = testEndpointTiming(),
                        .portLimits = testPortLimits(),
                        .portTiming = testPortTiming(),
                        .check = [this](const config::Config& fresh) { return check(fresh); },
                        .finished = [this] { endWhenAnswered(); }};
  device_ = std::make_unique<Device>(
      DeviceParts{loop_, *clock_, random_, privileged_, *backend_.dataPlane, *kernel_->routing,
                  *kernel_->firewall, resolver_, state_},
      std::move(options), *undo);
  serve();
  return device_->start(outcome);
}

void Daemon::endWhenAnswered() {
  // As a task, so that it comes after the answer to the request that this may be part of.
  controlServer_->whenFlushed([this] { loop_.exit(0); });
  // A client that does not read its answer must not keep the interface.
  endTimer_ = loop_.timer([this] { loop_.exit(0); });
  endTimer_.schedule(clock_->now() + kAnswerPatience);
  loop_.post([this] { controlServer_->checkFlushed(); });
}

void Daemon::undoStart() {
  if (device_) {
    for (const std::string& failure : device_->undo()) {
      spdlog::warn("{}: {}", name_, failure);
    }
  }
  controlServer_.reset();
  wireguardServer_.reset();
  metricsServer_.reset();
  device_.reset();
  if (backend_.dataPlane) {
    backend_.dataPlane->destroyInterface();
  } else if (adopted_) {
    // Nothing was touched: what a killed daemon left can still be taken over, or taken down.
    return;
  }
  removeVolatileFiles(name_);
}

void Daemon::serve() {
  controlServer_ = std::make_unique<StreamServer>(
      loop_, std::move(sockets_.control),
      StreamServer::Options{
          .delimiter = "\n", .maximumRequest = kMaxControlRequest, .readers = readersGroup()},
      [this](std::string_view request, Access access) {
        return handleControl(request, *device_, access);
      });
  if (sockets_.wireguard) {
    wireguardServer_ = std::make_unique<StreamServer>(
        loop_, std::move(sockets_.wireguard),
        StreamServer::Options{.delimiter = "\n\n", .maximumRequest = kMaxUapiRequest},
        [this](std::string_view request, Access) { return handleUapi(request, *device_); });
  }
  if (sockets_.metrics) {
    metricsServer_ = std::make_unique<MetricsServer>(
        loop_, *clock_, std::move(sockets_.metrics), sockets_.metricsHosts,
        [this] { return metricsPage(device_->snapshot()); });
  }
}

void Daemon::scheduleReconcile() {
  reconcileTimer_.schedule(clock_->now() + kReconcileDelay);
}

void Daemon::watchKernel() {
  reconcileTimer_ = loop_.timer([this] {
    device_->reconcile();
    reconcileTimer_.schedule(clock_->now() + kReconcileInterval);
  });
  reconcileTimer_.schedule(clock_->now() + kReconcileInterval);
  if (const int notices = kernel_->firewall->descriptor(); notices >= 0) {
    endedConnections_ =
        loop_.watch(notices, EPOLLIN, [this](std::uint32_t) { kernel_->firewall->takeNotices(); });
  }
  kernelEvents_ = loop_.watch(kernel_->monitor->descriptor(), EPOLLIN, [this](std::uint32_t) {
    if (auto read = kernel_->monitor->dispatch([this](netlink::Change) { scheduleReconcile(); });
        !read) {
      spdlog::warn("{}: {}", name_, read.error().message);
    }
  });
}

void Daemon::handleSignals() {
  const auto end = [this] {
    endWanted_ = true;
    loop_.post([this] {
      // While it starts, start() itself looks at the wish.
      if (!running_) {
        return;
      }
      if (auto down = device_->down(); !down) {
        spdlog::warn("{}: {}", name_, down.error().message);
      }
    });
  };
  signals_.push_back(loop_.signal(SIGTERM, end));
  signals_.push_back(loop_.signal(SIGINT, end));
  signals_.push_back(loop_.signal(SIGHUP, [this] {
    if (!running_) {
      return;
    }
    if (auto reloaded = device_->reload(); !reloaded) {
      spdlog::error("{}: reload: {}", name_, reloaded.error().message);
    }
  }));
}

int Daemon::run() {
  running_ = true;
  loop_.keepWatchdog();
  const int status = loop_.run();
  controlServer_.reset();
  wireguardServer_.reset();
  metricsServer_.reset();
  device_.reset();
  backend_.dataPlane->destroyInterface();
  backend_.dataPlane.reset();
  if (auto run = privileged_.runHooks(HookKind::PostDown); !run) {
    spdlog::warn("{}: {}", name_, run.error().message);
  }
  removeVolatileFiles(name_);
  return status;
}

}  // namespace

int runDaemon(const std::string& name, DaemonSockets& sockets, Privileged& privileged,
              StartObserver& observer) {
  Daemon daemon(name, sockets, privileged);
  const auto remarks = daemon.start();
  if (!remarks) {
    observer.failed(remarks.error().message);
    return 1;
  }
  for (const std::string& remark : *remarks) {
    spdlog::warn("{}: {}", name, remark);
  }
  std::vector<std::string> told = *remarks;
  for (const std::string& warning : daemon.warnings()) {
    told.push_back(fmt::format("{}: warning: {}", name, warning));
  }
  observer.ready(told);
  return daemon.run();
}

Result<std::vector<std::string>> cleanUp(const std::string& name, Privileged& privileged) {
  auto kernel = Kernel::open();
  if (!kernel) {
    return tl::unexpected(kernel.error());
  }
  const bool known = std::filesystem::exists(undoFile(name));
  const auto link = kernel->routing->findLink(name);
  if (!known) {
    return fail("{} is not up", name);
  }
  std::vector<std::string> failures;
  auto undo = UndoRecord::load(undoFile(name), name);
  if (!undo) {
    failures.push_back(undo.error().message);
    undo = UndoRecord{};
  }
  undo->checkTable(*kernel->routing, link && *link ? (*link)->index : 0);
  failures.insert(failures.end(), undo->refused.begin(), undo->refused.end());
  // Without a readable configuration there are no hooks to run; the rest is undone all the same.
  const bool hooks = undo->hooksRun && privileged.loadConfig().ok();
  const auto note = [&](const Result<void>& result) {
    if (!result) {
      failures.push_back(result.error().message);
    }
  };
  if (hooks) {
    note(privileged.runHooks(HookKind::PreDown));
  }
  if (undo->dns) {
    note(privileged.setDns({}, {}));
  }
  Reconciler reconciler(*kernel->routing, *kernel->firewall, privileged, *undo, [] {});
  for (std::string& failure : DeviceTune::cleanUp(volatileDirectory(name) / kTuneRecord)) {
    failures.push_back(std::move(failure));
  }
  for (std::string& failure : reconciler.remove(name)) {
    failures.push_back(std::move(failure));
  }
  if (link && *link) {
    note(kernel->routing->deleteLink((*link)->index));
  }
  if (hooks) {
    note(privileged.runHooks(HookKind::PostDown));
  }
  removeVolatileFiles(name);
  std::error_code ignored;
  std::filesystem::remove(volatileDirectory(name), ignored);
  return failures;
}

}  // namespace adit::control
