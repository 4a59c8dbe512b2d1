#include "bench/host.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace adit::bench {
namespace {

/// What process 1 tells once: 0 for ready, else an errno.
void tell(int pipe, int code) {
  [[maybe_unused]] const ssize_t written = ::write(pipe, &code, sizeof code);
}

bool mountOwnFiles() {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0 ||
      ::mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0) {
    return false;
  }
  // Only tuning would need it, and some containers do not permit it.
  ::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  return true;
}

/// Process 1: reaps what others leave behind, and ends with its parent.
[[noreturn]] void serve(int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(number, SIG_IGN);
  }
  // The kernel reaps the children of a process that ignores this.
  std::signal(SIGCHLD, SIG_IGN);
  if (!mountOwnFiles()) {
    tell(pipe, errno);
    ::_exit(1);
  }
  // Ends it if the parent died before the first line of this function.
  std::signal(SIGPIPE, SIG_DFL);
  tell(pipe, 0);
  ::close(pipe);
  while (true) {
    ::pause();
  }
}

Result<UniqueFd> openNamespace(pid_t pid, const char* kind) {
  const std::string path = fmt::format("/proc/{}/ns/{}", pid, kind);
  UniqueFd space(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return failErrno(errno, "{}", path);
  return space;
}

Result<void> openInto(UniqueFd& target, pid_t pid, const char* kind) {
  auto space = openNamespace(pid, kind);
  if (!space) return tl::unexpected(space.error());
  target = std::move(*space);
  return {};
}

}  // namespace

Result<Host> Host::make() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failErrno(errno, "pipe");
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  Host host;
  // As fork(2), which has no flags. Nothing else runs in this process.
  constexpr unsigned long kFlags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD;
  host.pid_ = static_cast<pid_t>(::syscall(SYS_clone, kFlags, nullptr, nullptr, nullptr, nullptr));
  if (host.pid_ < 0) return failErrno(errno, "making namespaces for a machine");
  if (host.pid_ == 0) {
    ::close(ends[0]);
    serve(ends[1]);
  }
  write.reset();
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(read.get(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (got != sizeof code) return fail("the first process of a machine ended at once");
  if (code != 0) return failErrno(code, "mounting /proc and /run for a machine");
  for (auto& opened : {openInto(host.inside_.network, host.pid_, "net"),
                       openInto(host.inside_.mounts, host.pid_, "mnt"),
                       openInto(host.inside_.processes, host.pid_, "pid"),
                       openInto(host.network_.network, host.pid_, "net")}) {
    if (!opened) return tl::unexpected(opened.error());
  }
  return host;
}

Host::Host(Host&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      inside_(std::move(other.inside_)),
      network_(std::move(other.network_)) {}

Host::~Host() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::filesystem::path Host::file(const std::filesystem::path& absolute) const {
  return std::filesystem::path(fmt::format("/proc/{}/root", pid_)) / absolute.relative_path();
}

}  // namespace adit::bench
