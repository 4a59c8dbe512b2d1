// What the tests of processes with different rights share.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "control/privileged_confine.hpp"
#include "control/privileged_process.hpp"
#include "privileged_fixture.hpp"

namespace adit::control {

inline constexpr std::uint64_t kNetAdmin = std::uint64_t{1} << CAP_NET_ADMIN;
inline constexpr std::uint64_t kNetBind = std::uint64_t{1} << CAP_NET_BIND_SERVICE;
inline constexpr std::uint64_t kNetRaw = std::uint64_t{1} << CAP_NET_RAW;

/// Lines from other processes; reading ends when all of them are gone.
class Report {
 public:
  Report() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
  }
  void say(const std::string& line) const {
    const std::string text = line + "\n";
    if (::write(writer_.get(), text.data(), text.size()) < 0) std::abort();
  }
  /// Gives up writing, so that the others are the only writers left.
  void listen() { writer_.reset(); }
  /// The next line; "" at the end, "timeout" after ten seconds.
  std::string line() {
    while (buffer_.find('\n') == std::string::npos) {
      pollfd waiting{reader_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 10'000) != 1) return "timeout";
      char bytes[4096];
      const ssize_t length = ::read(reader_.get(), bytes, sizeof(bytes));
      if (length <= 0) return std::exchange(buffer_, "");
      buffer_.append(bytes, static_cast<std::size_t>(length));
    }
    const auto end = buffer_.find('\n');
    const std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return line;
  }

 private:
  UniqueFd reader_, writer_;
  std::string buffer_;
};

/// Scratch directories in place of the system's.
class Place {
 public:
  Place() {
    ::setenv("ADIT_STATE_DIR", scratch.file("state").c_str(), 1);
    ::setenv("ADIT_RUNTIME_DIR", scratch.file("run").c_str(), 1);
  }
  ~Place() {
    ::unsetenv("ADIT_STATE_DIR");
    ::unsetenv("ADIT_RUNTIME_DIR");
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] SeparationOptions options(const config::Config& config = {}) const {
    SeparationOptions options;
    options.interface = "tun7";
    options.configFile = "tun7.conf";
    options.system = systemWith(scratch, config);
    return options;
  }

  ScratchDirectory scratch;
};

/// Runs `body` in a child of its own; its exit status is what `body` returns.
inline pid_t forked(const std::function<int()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // The test framework's handlers would report a signal that is meant.
    for (const int number : {SIGTERM, SIGINT, SIGHUP})
      ::signal(number, SIG_DFL);
    ::_exit(body());
  }
  return child;
}

/// The exit status of `child`, or 1000 + the signal that killed it.
inline int await(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// A field of /proc/thread-self/status, such as "CapEff".
inline std::string statusField(const std::string& name) {
  std::ifstream in("/proc/thread-self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return line.substr(name.size() + 2);
  }
  return "absent";
}

/// All capability sets, the user, and whether more rights can be gained, of this thread.
inline std::string rights() {
  std::ostringstream text;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    text << set << "=" << std::stoull(statusField(set), nullptr, 16) << " ";
  }
  std::istringstream uids(statusField("Uid"));
  for (std::string uid; uids >> uid;)
    text << uid << " ";
  text << "NoNewPrivs=" << statusField("NoNewPrivs") << " groups=" << statusField("Groups");
  return text.str();
}

inline std::string expectedRights(std::uint64_t capabilities) {
  const std::string uid = std::to_string(workerIdentity().uid);
  return fmt::format(
      "CapInh=0 CapPrm={0} CapEff={0} CapBnd=0 CapAmb=0 {1} {1} {1} {1} "
      "NoNewPrivs=1 groups= ",
      capabilities, uid);
}

}  // namespace adit::control
