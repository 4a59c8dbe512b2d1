#include "control/privileged_process.hpp"

#include <spdlog/spdlog.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <vector>

#include "config/parser.hpp"
#include "control/privileged_channel.hpp"
#include "control/privileged_confine.hpp"
#include "control/privileged_protocol.hpp"

namespace adit::control {
namespace {

constexpr std::array kForwarded{SIGTERM, SIGINT, SIGHUP};

/// Whom forwardSignal() sends to; a handler has no other way to know.
std::atomic<pid_t> forwardTo{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void forwardSignal(int number) {
  const int saved = errno;
  if (const pid_t pid = forwardTo.load(); pid > 0) ::kill(pid, number);
  errno = saved;
}

/// Holds the forwarded signals back from construction on; they stay pending.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int number : kForwarded)
      sigaddset(&held, number);
    ::sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  /// The caller's mask.
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

/// Passes the signals on to `worker` while it lives, and swallows them after that.
class SignalForwarding {
 public:
  explicit SignalForwarding(pid_t worker) {
    forwardTo = worker;
    struct sigaction action {};
    action.sa_handler = forwardSignal;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kForwarded.size(); ++i) {
      ::sigaction(kForwarded[i], &action, &before_[i]);
    }
    sigset_t passed;
    sigemptyset(&passed);
    for (const int number : kForwarded)
      sigaddset(&passed, number);
    ::sigprocmask(SIG_UNBLOCK, &passed, nullptr);
  }
  ~SignalForwarding() {
    forwardTo = 0;
    for (std::size_t i = 0; i < kForwarded.size(); ++i) {
      ::sigaction(kForwarded[i], &before_[i], nullptr);
    }
  }
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

 private:
  std::array<struct sigaction, kForwarded.size()> before_{};
};

bool isSingleThreaded() {
  std::error_code error;
  std::size_t threads = 0;
  for ([[maybe_unused]] const auto& thread :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    ++threads;
  }
  return threads <= 1;
}

void reportFailure(const SeparationOptions& options, const std::string& message) {
  spdlog::critical("{}", message);
  if (options.failed) options.failed(message);
}

int runWorker(const SeparationOptions& options, Privileged& privileged,
              const std::function<int(Privileged&)>& worker) {
  try {
    return worker(privileged);
  } catch (const std::exception& error) {
    reportFailure(options, error.what());
    return 1;
  }
}

std::vector<int> capabilitiesFor(const SeparationOptions& options, const config::Outcome& outcome) {
  auto capabilities =
      workerCapabilities(outcome.config ? outcome.config->interface.listenPort : std::nullopt);
  if (options.keepNetRaw) capabilities.push_back(CAP_NET_RAW);
  return capabilities;
}

/// The child: never returns into the caller's stack, which belongs to the parent.
[[noreturn]] void becomeWorker(const SeparationOptions& options, const WorkerIdentity& identity,
                               const std::vector<int>& capabilities, pid_t parent, UniqueFd socket,
                               const std::function<int(Privileged&)>& worker) {
  // A session of its own: Ctrl-C reaches the parent alone, which passes it on once, and the worker
  // has no terminal whose input it could write (TIOCSTI) for the shell that aditd was started from.
  ::setsid();
  ::prctl(PR_SET_NAME, "aditd-worker", 0, 0, 0);
  auto ready = confine(identity, capabilities, parent);
  if (ready) ready = enterOwnDirectories(options.interface);
  int status = 1;
  if (ready) {
    RemotePrivileged privileged(std::move(socket));
    status = runWorker(options, privileged, worker);
  } else {
    reportFailure(options, ready.error().message);
  }
  spdlog::default_logger()->flush();
  std::fflush(nullptr);
  ::_exit(status);
}

/// Waits for `worker` to end without reaping it, so that its number stays its own while signals
/// are passed on; then reaps it. The exit status, or 128 + signal.
int reap(pid_t worker) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return 1;
  }
  forwardTo = 0;
  ::waitpid(worker, nullptr, 0);
  if (info.si_code == CLD_EXITED) return info.si_status;
  spdlog::error("the worker process was killed by signal {}", info.si_status);
  return 128 + info.si_status;
}

int serveWorker(pid_t worker, int socket, PrivilegedServer& server,
                const std::function<void()>& cleanup) {
  // Outlives the cleanup, which a second SIGTERM must not cut short.
  const SignalForwarding forwarding(worker);
  if (auto served = server.serve(socket); !served) {
    spdlog::error("the worker process does not take its answer: {}", served.error().message);
    ::kill(worker, SIGKILL);
  }
  const int status = reap(worker);
  if (cleanup) cleanup();
  return status;
}

int failedToStart(const SeparationOptions& options, const Error& error) {
  reportFailure(options, error.message);
  if (options.cleanup) options.cleanup();
  return 1;
}

int runInProcess(const SeparationOptions& options, const std::function<int(Privileged&)>& worker) {
  if (auto made = makeOwnDirectories(options.interface, ::geteuid(), ::getegid()); !made) {
    return failedToStart(options, made.error());
  }
  forbidDumps();
  // Before the working directory changes, which the path may be relative to.
  const std::filesystem::path file = std::filesystem::absolute(options.configFile);
  if (auto entered = enterOwnDirectories(options.interface); !entered) {
    return failedToStart(options, entered.error());
  }
  DirectPrivileged privileged(options.interface, file, options.system);
  const int status = runWorker(options, privileged, worker);
  if (options.cleanup) options.cleanup();
  return status;
}

int runInChild(const SeparationOptions& options, const WorkerIdentity& identity,
               const std::function<int(Privileged&)>& worker) {
  auto channel = makeChannel();
  if (!channel) return failedToStart(options, channel.error());
  if (auto made = makeOwnDirectories(options.interface, identity.uid, identity.gid); !made) {
    return failedToStart(options, made.error());
  }
  forbidDumps();
  DirectPrivileged direct(options.interface, options.configFile, options.system);
  config::Outcome outcome = direct.loadConfig();
  const std::vector<int> capabilities = capabilitiesFor(options, outcome);
  const pid_t self = ::getpid();

  const SignalsHeld held;
  const pid_t child = ::fork();
  if (child < 0) return failedToStart(options, failErrno(errno, "fork").value());
  if (child == 0) {
    channel->privileged.reset();
    ::sigprocmask(SIG_SETMASK, &held.before(), nullptr);
    becomeWorker(options, identity, capabilities, self, std::move(channel->worker), worker);
  }
  channel->worker.reset();
  PrivilegedServer server(direct, std::move(outcome));
  return serveWorker(child, channel->privileged.get(), server, options.cleanup);
}

}  // namespace

int runSeparated(const SeparationOptions& options, const std::function<int(Privileged&)>& worker) {
  if (!isSingleThreaded()) throw std::logic_error("runSeparated: there are threads already");
  if (auto named = config::checkInterfaceName(options.interface); !named) {
    return failedToStart(options, named.error());
  }
  if (auto rights = checkRights(); !rights) return failedToStart(options, rights.error());
  const WorkerIdentity identity = workerIdentity();
  if (auto separable = checkSeparable(identity); !separable) {
    spdlog::info("aditd runs as one process: {}", separable.error().message);
    return runInProcess(options, worker);
  }
  return runInChild(options, identity, worker);
}

}  // namespace adit::control
