#include "control/privileged_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "util/unique_fd.hpp"

namespace adit::control {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// posix_spawn's two attribute objects, destroyed together.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  /// `input`, `output` and `errors` of -1 stand for /dev/null and for our own standard output and
  /// error. Returns errno.
  int prepare(int input, int output, int errors) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setsigmask(&attributes_, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (error == 0) error = posix_spawnattr_setpgroup(&attributes_, 0);
    if (error == 0) {
      error = posix_spawnattr_setflags(
          &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    if (error == 0) {
      error = input < 0 ? posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null",
                                                           O_RDONLY, 0)
                        : posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    }
    if (error == 0 && output >= 0) {
      error = posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    }
    if (error == 0 && errors >= 0) {
      error = posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    }
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    if (error == 0) error = posix_spawn_file_actions_addchdir_np(&actions_, "/");
    return error;
  }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

Result<UniqueFd> memoryFile(const char* name) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return failErrno(errno, "memfd_create");
  return file;
}

Result<UniqueFd> inputFile(const std::string& text) {
  auto file = memoryFile("adit-input");
  if (!file) return file;
  if (::write(file->get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file->get(), 0, SEEK_SET) != 0) {
    return failErrno(errno, "the input of a command");
  }
  return file;
}

/// A file of a fixed size, so that a program that never stops printing gets an error and not our
/// memory.
Result<UniqueFd> outputFile(std::size_t limit) {
  auto file = memoryFile("adit-output");
  if (!file) return file;
  if (::ftruncate(file->get(), static_cast<off_t>(limit)) != 0 ||
      ::fcntl(file->get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
    return failErrno(errno, "the output of a command");
  }
  return file;
}

/// What the program wrote. The offset is shared with it, so it says how much that was.
Bytes takeOutput(int file, std::size_t limit) {
  const off_t written = ::lseek(file, 0, SEEK_CUR);
  Bytes output(std::min(limit, static_cast<std::size_t>(std::max<off_t>(written, 0))));
  const ssize_t length = ::pread(file, output.data(), output.size(), 0);
  output.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  const Bytes zeros(output.size());
  if (::pwrite(file, zeros.data(), zeros.size(), 0) < 0) output.clear();
  return output;
}

/// A null-terminated array of pointers into `strings`, as exec wants it.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

int pollTimeout(SteadyClock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 1 << 30));
}

/// Whether `pid` ended before `deadline`; it stays to be reaped.
bool waitForEnd(pid_t pid, SteadyClock::time_point deadline) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (true) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == pid) {
      return true;
    }
    if (SteadyClock::now() >= deadline) return false;
    if (process) {
      pollfd waiting{process.get(), POLLIN, 0};
      ::poll(&waiting, 1, pollTimeout(deadline));
    } else {
      // Before Linux 5.3 there is no descriptor for a process.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

/// Waits for `pid` and reaps it; kills its process group at the deadline.
Result<CommandResult> awaitCommand(pid_t pid, std::chrono::milliseconds timeout) {
  CommandResult result;
  if (!waitForEnd(pid, SteadyClock::now() + timeout)) {
    result.timedOut = true;
    ::kill(-pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return failErrno(errno, "waiting for a command");
  }
  result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace

Result<CommandResult> runCommand(const Command& command) {
  UniqueFd input;
  UniqueFd output;
  if (!command.input.empty()) {
    auto file = inputFile(command.input);
    if (!file) return tl::unexpected(file.error());
    input = std::move(*file);
  }
  if (command.outputLimit > 0) {
    auto file = outputFile(command.outputLimit);
    if (!file) return tl::unexpected(file.error());
    output = std::move(*file);
  }
  SpawnSetup setup;
  if (const int error =
          setup.prepare(input.get(), output.get(), command.keepErrors ? output.get() : -1);
      error != 0) {
    return failErrno(error, "{}", command.arguments.front());
  }
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = command.environment;
  pid_t pid = 0;
  if (const int error =
          posix_spawn(&pid, arguments.front().c_str(), setup.actions(), setup.attributes(),
                      pointers(arguments).data(), pointers(environment).data());
      error != 0) {
    return failErrno(error, "{}", command.arguments.front());
  }
  auto result = awaitCommand(pid, command.timeout);
  if (result && output) result->output = takeOutput(output.get(), command.outputLimit);
  return result;
}

std::string describeEnd(const Command& command, const CommandResult& result) {
  if (result.timedOut) {
    return fmt::format("did not end within {} s and was killed",
                       std::chrono::duration<double>(command.timeout).count());
  }
  if (result.status > 128) return fmt::format("was killed by signal {}", result.status - 128);
  return fmt::format("exited with status {}", result.status);
}

std::string findProgram(std::string_view name, std::string_view searchPath) {
  while (!searchPath.empty()) {
    const std::string_view directory = searchPath.substr(0, searchPath.find(':'));
    searchPath.remove_prefix(std::min(directory.size() + 1, searchPath.size()));
    const std::string path = fmt::format("{}/{}", directory, name);
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
        ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return {};
}

}  // namespace adit::control
