// aditd: serves one tunnel interface.
#include <fcntl.h>
#include <sodium.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "config/parser.hpp"
#include "control/daemon.hpp"
#include "control/metrics_server.hpp"
#include "control/paths.hpp"
#include "control/privileged_confine.hpp"
#include "control/privileged_direct.hpp"
#include "control/privileged_directories.hpp"
#include "control/privileged_process.hpp"
#include "control/privileged_unit.hpp"
#include "control/stream_server.hpp"
#include "daemon/arguments.hpp"
#include "dataplane/kernel/kernel.hpp"
#include "nat/prerequisites.hpp"
#include "netlink/route.hpp"
#include "start_report.hpp"

namespace {

using adit::Result;
using adit::UniqueFd;
using adit::config::MetricsAddress;
using adit::control::DaemonSockets;
using adit::control::NamedConfig;
using adit::daemon::Arguments;
namespace control = adit::control;

int complain(const std::string& message) {
  fmt::print(stderr, "aditd: {}\n", message);
  return 1;
}

/// A daemon that was killed has left the interface to adit.ko, whose socket has the port.
bool leftInKernel(const std::string& name) {
  const auto routing = adit::netlink::RouteSocket::open();
  if (!routing) {
    return false;
  }
  const auto link = (*routing)->findLink(name);
  return link && *link && (*link)->kind == adit::dataplane::kernel::kLinkKind;
}

/// Root sees the holder of every socket but those that the kernel has for itself.
std::string holderOf(const adit::nat::Listener& listener) {
  return listener.process.empty()
             ? "the kernel, for a tunnel (adit.ko, WireGuard or the like: `ip -d link`)"
             : listener.toString();
}

/// The file is read again by the daemon proper; here its errors come before anything is made, and
/// a taken port is found while there are the rights to say who has it. `metrics` is where the file
/// wants them.
Result<void> checkBefore(const NamedConfig& named, std::optional<MetricsAddress>& metrics) {
  const adit::config::Outcome outcome = adit::config::load(named.file);
  if (!outcome.ok()) {
    std::string text;
    for (const auto& diagnostic : outcome.diagnostics) {
      text += (text.empty() ? "" : "\n") + diagnostic.toString();
    }
    return adit::fail("{}", text);
  }
  metrics = outcome.config->interface.metrics;
  const auto port = outcome.config->interface.listenPort.value_or(0);
  const auto listeners = adit::nat::localListeners();
  if (port == 0 || !listeners || leftInKernel(named.interface)) {
    return {};
  }
  for (const adit::nat::Listener& listener : *listeners) {
    if (listener.protocol == adit::nat::Protocol::Udp && listener.port == port) {
      return adit::fail(
          "{}: UDP port {} is taken by {}; choose another ListenPort or stop the other program",
          named.file.string(), port, holderOf(listener));
    }
  }
  return {};
}

/// Held as long as any process of the daemon lives. A daemon that has just been killed gets a
/// moment to be gone: until then it still has the port and the TUN device.
Result<UniqueFd> lockInterface(const std::string& name) {
  constexpr auto kPatience = std::chrono::seconds(3);
  constexpr auto kInterval = std::chrono::milliseconds(20);
  const std::filesystem::path folder = control::volatileDirectory(name);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      return adit::fail("cannot make {}: {}", folder.string(), error.message());
    }
    UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      // The one before us may have removed the folder in between.
      struct stat held {};
      struct stat now {};
      if (::fstat(lock.get(), &held) == 0 && ::stat(folder.c_str(), &now) == 0 &&
          held.st_ino == now.st_ino) {
        return lock;
      }
    } else if (lock && control::isServed(control::controlSocket(name))) {
      return adit::fail("{0} is up already; `adit reload {0}` applies a changed file", name);
    }
    if (std::chrono::steady_clock::now() > until) {
      return adit::fail("another aditd is busy with {}; try again when it is done", name);
    }
    std::this_thread::sleep_for(kInterval);
  }
}

/// The folder goes unless it holds what a killed daemon left.
void removeFolder(const std::string& name) {
  std::error_code ignored;
  std::filesystem::remove(control::volatileDirectory(name), ignored);
}

Result<DaemonSockets> makeSockets(const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(control::runtimeDirectory(), error);
  if (error) {
    return adit::fail("cannot make {}: {}", control::runtimeDirectory().string(), error.message());
  }
  DaemonSockets sockets;
  auto listener = control::listenAt(control::controlSocket(name), control::readersGroup());
  if (!listener) {
    return adit::wrapError(listener.error(), fmt::format("{} is up already", name));
  }
  sockets.control = std::move(*listener);
  std::filesystem::create_directories(control::wireguardDirectory(), error);
  if (auto wireguard = control::listenAt(control::wireguardSocket(name))) {
    sockets.wireguard = std::move(*wireguard);
  } else {
    spdlog::warn("wg(8) cannot be used with {}: {}", name, wireguard.error().message);
  }
  return sockets;
}

/// Without it the tunnel works all the same.
void addMetricsSocket(const MetricsAddress& address, DaemonSockets& sockets) {
  auto listener = control::listenForScrapes(address);
  if (!listener) {
    spdlog::warn("{}", listener.error().message);
    sockets.metricsTrouble = listener.error().message;
    return;
  }
  sockets.metrics = std::move(*listener);
  sockets.metricsHosts =
      address.path.empty() ? adit::metrics::Hosts::Loopback : adit::metrics::Hosts::Any;
}

/// Where a unix socket listens; empty for any other.
std::string pathOf(const UniqueFd& listener) {
  sockaddr_un address{};
  socklen_t length = sizeof(address);
  const bool known =
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0;
  return known && address.sun_family == AF_UNIX ? address.sun_path : "";
}

void removeFiles(const std::string& name) {
  std::error_code ignored;
  // Of a failed first start it is empty.
  std::filesystem::remove(control::stateDirectory(name), ignored);
  std::filesystem::remove(control::controlSocket(name), ignored);
  std::filesystem::remove(control::wireguardSocket(name), ignored);
  std::filesystem::remove(control::pidFile(name), ignored);
  removeFolder(name);
}

control::SeparationOptions separation(const NamedConfig& named, const DaemonSockets& sockets) {
  control::SeparationOptions options;
  options.interface = named.interface;
  // Whoever is told of it, such as `adit save`, works in another folder.
  options.configFile = std::filesystem::absolute(named.file).lexically_normal();
  options.cleanup = [&named, scrapes = pathOf(sockets.metrics)] {
    std::error_code ignored;
    if (!scrapes.empty()) std::filesystem::remove(scrapes, ignored);
    removeFiles(named.interface);
  };
  return options;
}

int serve(const NamedConfig& named, DaemonSockets& sockets, control::StartObserver& observer) {
  std::ofstream(control::pidFile(named.interface)) << ::getpid() << '\n';
  control::SeparationOptions options = separation(named, sockets);
  options.failed = [&](const std::string& message) { observer.failed(message); };
  return control::runSeparated(options, [&](control::Privileged& privileged) {
    return control::runDaemon(named.interface, sockets, privileged, observer);
  });
}

/// The unit adit-helper@NAME.
int help(const NamedConfig& named, DaemonSockets& sockets) {
  const control::SeparationOptions options = separation(named, sockets);
  return control::runHelper(options, std::move(sockets), [] { ::sd_notify(0, "READY=1"); });
}

/// The unit adit@NAME.
int work(const NamedConfig& named) {
  adit::daemon::StartNotice notice;
  return control::runHelped(
      named.interface, [&](const std::string& message) { notice.failed(message); },
      [&](control::Privileged& privileged, DaemonSockets& sockets) {
        return control::runDaemon(named.interface, sockets, privileged, notice);
      });
}

/// Standard input from nowhere, standard output and error to the log file.
Result<void> detach(const std::filesystem::path& logFile) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd log(::open(logFile.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) {
    return adit::failErrno(errno, "cannot write {}", logFile.string());
  }
  ::setsid();
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
  return {};
}

/// The daemon that is being started, for forwardToDaemon().
volatile sig_atomic_t startingDaemon = 0;

void forwardToDaemon(int number) {
  ::kill(startingDaemon, number);
}

int runInBackground(const NamedConfig& named, DaemonSockets& sockets) {
  const std::filesystem::path logFile = control::logFile(named.interface);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return complain(fmt::format("pipe: {}", std::strerror(errno)));
  }
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return complain(fmt::format("fork: {}", std::strerror(errno)));
  }
  if (child != 0) {
    writer.reset();
    sockets = {};
    // The daemon has a session of its own, so Ctrl-C does not reach it by itself.
    startingDaemon = child;
    ::signal(SIGINT, forwardToDaemon);
    ::signal(SIGTERM, forwardToDaemon);
    const int status = adit::daemon::awaitStart(reader, named.interface, logFile);
    // Whoever tries again finds nothing of a failed start in the way.
    while (status != 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  reader.reset();
  adit::daemon::StartPipe pipe(std::move(writer));
  if (auto detached = detach(logFile); !detached) {
    pipe.failed(detached.error().message);
    removeFiles(named.interface);
    return 1;
  }
  return serve(named, sockets, pipe);
}

int cleanUp(const NamedConfig& named) {
  control::DirectPrivileged privileged(named.interface, named.file);
  const auto failures = control::cleanUp(named.interface, privileged);
  if (!failures) {
    removeFolder(named.interface);
    return complain(failures.error().message);
  }
  removeFiles(named.interface);
  for (const std::string& failure : *failures) {
    complain(failure);
  }
  return failures->empty() ? 0 : 1;
}

int run(const Arguments& arguments) {
  const auto named = control::resolveConfigName(arguments.target);
  if (!named) {
    return complain(named.error().message);
  }
  if (arguments.worker) return work(*named);
  if (auto rights = control::checkRights(); !rights) {
    return complain(rights.error().message);
  }
  const auto lock = lockInterface(named->interface);
  if (!lock) {
    return complain(lock.error().message);
  }
  if (arguments.cleanup) {
    return cleanUp(*named);
  }
  std::optional<MetricsAddress> metrics;
  if (auto checked = checkBefore(*named, metrics); !checked) {
    removeFolder(named->interface);
    fmt::print(stderr, "{}\n", checked.error().message);
    return 1;
  }
  auto sockets = makeSockets(named->interface);
  if (sockets && metrics) addMetricsSocket(*metrics, *sockets);
  if (!sockets) {
    removeFolder(named->interface);
    return complain(sockets.error().message);
  }
  if (arguments.helper) return help(*named, *sockets);
  if (arguments.background) {
    return runInBackground(*named, *sockets);
  }
  adit::daemon::StartNotice notice;
  return serve(*named, *sockets, notice);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  Arguments arguments;
  adit::daemon::describeArguments(app, arguments);
  CLI11_PARSE(app, argc, argv);

  spdlog::set_default_logger(spdlog::stderr_logger_mt("aditd"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  spdlog::set_level(spdlog::level::from_str(arguments.logLevel));
  // A client that goes away in the middle of an answer is not our end.
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0022);
  if (sodium_init() < 0) {
    return complain("libsodium cannot be initialised");
  }
  return run(arguments);
}
