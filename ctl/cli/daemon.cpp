#include "cli/daemon.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace adit::cli {
namespace {

namespace fs = std::filesystem;

bool isProgram(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<fs::path> findOnPath(std::string_view name) {
  const char* value = std::getenv("PATH");
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    // An empty or relative entry would run a program of whatever folder this is.
    if (!folder.starts_with('/')) continue;
    if (const fs::path path = fs::path(folder) / name; isProgram(path)) return path;
  }
  return std::nullopt;
}

/// While the daemon starts, an interrupt from the terminal is the daemon's to handle: it undoes
/// what it did, and we are there to say so. As system(3) does.
class InterruptsLeftToChild {
 public:
  InterruptsLeftToChild() {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
  }
  ~InterruptsLeftToChild() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGQUIT, SIG_DFL);
  }
  InterruptsLeftToChild(const InterruptsLeftToChild&) = delete;
  InterruptsLeftToChild& operator=(const InterruptsLeftToChild&) = delete;
};

/// Attributes that give a child the default handling of the signals that we ignore.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

Result<int> waitForExit(pid_t child, const std::string& program) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failErrno(errno, "waiting for {}", program);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail("{} was ended by signal {} ({})", program, WTERMSIG(status),
              ::strsignal(WTERMSIG(status)));
}

}  // namespace

Result<fs::path> findDaemon() {
  constexpr std::string_view kName = "aditd";
  if (const char* value = std::getenv("ADITD"); value != nullptr && *value != '\0') {
    if (isProgram(value)) return value;
    return fail("ADITD={}: not a program that can be run", value);
  }
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (!error) {
    for (const fs::path& folder : {own, own / "../daemon", own / "../sbin"}) {
      if (isProgram(folder / kName)) return (folder / kName).lexically_normal();
    }
  }
  if (auto path = findOnPath(kName)) return *path;
  return fail("aditd is neither beside adit ({}) nor on PATH; install it or name it in ADITD",
              own.string());
}

Result<int> runDaemon(const std::vector<std::string>& arguments) {
  const auto found = findDaemon();
  if (!found) return tl::unexpected(found.error());
  std::string program = found->string();
  std::vector<std::string> texts = arguments;
  std::vector<char*> argv{program.data()};
  for (std::string& text : texts) {
    argv.push_back(text.data());
  }
  argv.push_back(nullptr);

  const SpawnAttributes attributes;
  const InterruptsLeftToChild guard;
  pid_t child = 0;
  if (const int code =
          ::posix_spawn(&child, program.c_str(), nullptr, attributes.get(), argv.data(), environ);
      code != 0) {
    return failErrno(code, "{}", program);
  }
  return waitForExit(child, program);
}

}  // namespace adit::cli
