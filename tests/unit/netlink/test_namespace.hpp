// A network namespace that lives as long as the object, for tests that need the real kernel.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "skip.hpp"
#include "util/unique_fd.hpp"

/// Requires a Result to be good, and shows its error when it is not.
#define REQUIRE_OK(expression)                                 \
  do {                                                         \
    const auto& result_ = (expression);                        \
    INFO((result_ ? std::string() : result_.error().message)); \
    REQUIRE(result_.has_value());                              \
  } while (false)

namespace adit::test {

class Namespace {
 public:
  Namespace() {
    std::thread([this] {
      if (::unshare(CLONE_NEWNET) == 0) {
        descriptor_ = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
      }
    }).join();
  }

  [[nodiscard]] bool usable() const { return static_cast<bool>(descriptor_); }

  /// Runs `body` inside the namespace, to its end. A failed REQUIRE in it fails the test.
  void run(const std::function<void()>& body) const {
    std::exception_ptr thrown;
    std::thread([&] {
      try {
        REQUIRE(::setns(descriptor_.get(), CLONE_NEWNET) == 0);
        body();
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    if (thrown) {
      std::rethrow_exception(thrown);
    }
  }

  /// Runs a command of the shell inside the namespace, and requires that it succeeds.
  void shell(const std::string& command) const {
    run([&] {
      INFO(command);
      REQUIRE(std::system(command.c_str()) == 0);
    });
  }

  /// A name for this namespace that ip(8) understands.
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor_.get());
  }

 private:
  UniqueFd descriptor_;
};

/// False where namespaces cannot be made: the test is skipped.
inline bool haveNamespaces() {
  if (Namespace().usable()) {
    return true;
  }
  adit::testing::skip("cannot make a network namespace; run as root");
  return false;
}

}  // namespace adit::test
