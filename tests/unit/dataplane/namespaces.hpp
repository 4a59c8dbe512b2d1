// Network namespaces of a test's own: nothing of the machine's network is touched.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "skip.hpp"
#include "util/unique_fd.hpp"

namespace adit::test {

/// True when the test can make namespaces; else says so.
inline bool canMakeNamespaces() {
  if (::geteuid() == 0) return true;
  adit::testing::skip("making network namespaces needs root");
  return false;
}

/// Fails the test. Unlike REQUIRE it may be used on any thread whose result is waited for.
inline void must(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

/// Runs a command in the calling thread's namespace.
inline void run(const std::string& command) {
  INFO(command);
  const int status = std::system(command.c_str());
  REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

/// A new namespace with loopback up. It goes when nothing uses it any more.
class Namespace {
 public:
  Namespace() {
    const UniqueFd before = current();
    REQUIRE(::unshare(CLONE_NEWNET) == 0);
    fd_ = current();
    run("ip link set lo up");
    REQUIRE(::setns(before.get(), CLONE_NEWNET) == 0);
  }

  /// Puts the calling thread into the namespace for the life of this object.
  class Visit {
   public:
    explicit Visit(const Namespace& where) : before_(current()) {
      must(::setns(where.fd_.get(), CLONE_NEWNET) == 0, "setns");
    }
    ~Visit() { ::setns(before_.get(), CLONE_NEWNET); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    UniqueFd before_;
  };

  /// For `ip link set … netns`.
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
  }

 private:
  static UniqueFd current() {
    UniqueFd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    must(static_cast<bool>(fd), "open the network namespace");
    return fd;
  }

  UniqueFd fd_;
};

}  // namespace adit::test
