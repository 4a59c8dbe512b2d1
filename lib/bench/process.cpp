#include "bench/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace adit::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// How long a program may take to obey a signal.
constexpr Milliseconds kObedience{1500};
constexpr int kNotStarted = 127;

/// The descriptors of a program that starts.
struct Streams {
  int input;
  int output;
  int errors;
  /// Gets the errno of what fails before the program runs; closed by a successful exec.
  int trouble;
};

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void giveUp(const Streams& streams) {
  const int code = errno;
  [[maybe_unused]] const ssize_t written = ::write(streams.trouble, &code, sizeof code);
  ::_exit(kNotStarted);
}

bool enter(const Place& place) {
  const auto join = [](const UniqueFd& space, int kind) {
    return !space || ::setns(space.get(), kind) == 0;
  };
  return join(place.network, CLONE_NEWNET) && join(place.processes, CLONE_NEWPID) &&
         join(place.mounts, CLONE_NEWNS);
}

[[noreturn]] void become(const Streams& streams, char* const* arguments, char* const* environment) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) {
    std::signal(number, SIG_DFL);
  }
  ::dup2(streams.input, STDIN_FILENO);
  ::dup2(streams.output, STDOUT_FILENO);
  ::dup2(streams.errors, STDERR_FILENO);
  ::execvpe(arguments[0], arguments, environment);
  giveUp(streams);
}

/// Only children enter a process namespace, so there is one process in between: it passes the exit
/// status on and leaves signals, which the whole group gets, to the program.
[[noreturn]] void runInside(const Streams& streams, char* const* arguments,
                            char* const* environment) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    std::signal(number, SIG_IGN);
  }
  const pid_t program = ::fork();
  if (program < 0) giveUp(streams);
  if (program == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    become(streams, arguments, environment);
  }
  for (const int descriptor : {streams.input, streams.output, streams.errors, streams.trouble}) {
    ::close(descriptor);
  }
  int status = 0;
  while (::waitpid(program, &status, 0) < 0) {
    if (errno != EINTR) ::_exit(kNotStarted);
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

Result<UniqueFd> memoryFile(std::string_view content = {}) {
  UniqueFd file(::memfd_create("adit-bench", MFD_CLOEXEC));
  if (!file) return failErrno(errno, "memfd_create");
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0) return failErrno(errno, "writing for a program");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<std::pair<UniqueFd, UniqueFd>> makePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failErrno(errno, "pipe");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

/// Waits for the end, the interrupt, or the time.
void waitFor(int ended, int interrupt, Milliseconds time) {
  std::array<pollfd, 2> sources{{{ended, POLLIN, 0}, {interrupt, POLLIN, 0}}};
  ::poll(sources.data(), interrupt < 0 ? 1 : 2, static_cast<int>(std::max<long>(time.count(), 0)));
}

void endGently(const Child& child, int number) {
  child.signal(number);
  const auto limit = Clock::now() + kObedience;
  while (child.running() && Clock::now() < limit) {
    waitFor(child.ended(), -1, std::chrono::duration_cast<Milliseconds>(limit - Clock::now()));
  }
  // Also where the program obeyed: what it started may ignore the signal, as shells' jobs do.
  child.signal(SIGKILL);
}

}  // namespace

Result<Child> Child::start(const Command& command, Output output) {
  Child child;
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = command.environment;
  // The first of two entries with one name counts.
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  const std::vector<char*> argv = pointersTo(arguments);
  const std::vector<char*> envp = pointersTo(environment);

  auto input = memoryFile(command.input);
  auto trouble = makePipe();
  if (!input) return tl::unexpected(input.error());
  if (!trouble) return tl::unexpected(trouble.error());
  UniqueFd sink;
  if (output == Output::Piped) {
    auto pipe = makePipe();
    if (!pipe) return tl::unexpected(pipe.error());
    child.output_ = std::move(pipe->first);
    sink = std::move(pipe->second);
  } else {
    auto kept = memoryFile();
    auto errors = memoryFile();
    if (!kept || !errors) return tl::unexpected((!kept ? kept : errors).error());
    child.output_ = std::move(*kept);
    child.errors_ = std::move(*errors);
  }
  const Streams streams{.input = input->get(),
                        .output = sink ? sink.get() : child.output_.get(),
                        .errors = sink ? sink.get() : child.errors_.get(),
                        .trouble = trouble->second.get()};
  const pid_t parent = ::getpid();
  child.pid_ = ::fork();
  if (child.pid_ < 0) return failErrno(errno, "fork");
  if (child.pid_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kNotStarted);
    if (command.place == nullptr) become(streams, argv.data(), envp.data());
    if (!enter(*command.place)) giveUp(streams);
    runInside(streams, argv.data(), envp.data());
  }
  // Both sides do it, so that it holds whoever is first.
  ::setpgid(child.pid_, child.pid_);
  child.handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  trouble->second.reset();
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(trouble->first.get(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (got == sizeof code) return failErrno(code, "{}", command.arguments.front());
  if (!child.handle_) return failErrno(errno, "pidfd_open");
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      handle_(std::move(other.handle_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

Child::~Child() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  reap();
}

bool Child::running() const {
  if (pid_ <= 0) return false;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

void Child::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

int Child::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Child::contentOf(const UniqueFd& file) {
  std::string content;
  std::array<char, 16384> block{};
  ssize_t got = 0;
  // The position in the file is the writer's.
  while ((got = ::pread(file.get(), block.data(), block.size(),
                        static_cast<off_t>(content.size()))) > 0) {
    content.append(block.data(), static_cast<std::size_t>(got));
  }
  return content;
}

Result<Ended> runToEnd(const Command& command, Milliseconds limit, const Interrupt& interrupt,
                       Milliseconds interval, const std::function<void()>& tick) {
  auto child = Child::start(command);
  if (!child) return tl::unexpected(child.error());
  Ended ended;
  const auto deadline = Clock::now() + limit;
  auto next = interval.count() > 0 ? Clock::now() + interval : deadline;
  while (child->running()) {
    const auto now = Clock::now();
    if (interrupt.signal() != 0) ended.how = Ended::How::Interrupted;
    if (now >= deadline) ended.how = Ended::How::TooLate;
    if (ended.how != Ended::How::Itself) {
      endGently(*child, SIGINT);
      break;
    }
    if (now >= next) {
      tick();
      next += interval;
      continue;
    }
    const auto until = std::min(next, deadline) - now;
    waitFor(child->ended(), interrupt.descriptor(), std::chrono::ceil<Milliseconds>(until));
  }
  ended.status = child->reap();
  ended.output = child->output();
  ended.errors = child->errors();
  return ended;
}

std::string lastWords(const Ended& ended) {
  for (const std::string* text : {&ended.errors, &ended.output}) {
    const auto last = text->find_last_not_of(" \n");
    if (last == std::string::npos) continue;
    const auto before = text->rfind('\n', last);
    const std::size_t first = before == std::string::npos ? 0 : before + 1;
    return text->substr(first, last + 1 - first);
  }
  return fmt::format("it ended with status {} and without a word", ended.status);
}

}  // namespace adit::bench
