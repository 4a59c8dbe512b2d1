// Programs that a benchmark runs: here, or on one of the machines of a laboratory; bounded in time,
// interruptible, and gone with us whatever happens.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/interrupt.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::bench {

/// Namespaces that a program is to run in. What is not set is that of this process.
struct Place {
  UniqueFd network;
  UniqueFd mounts;
  UniqueFd processes;
};

struct Command {
  /// The first is a program on PATH, or its path.
  std::vector<std::string> arguments;
  /// Null: here.
  const Place* place = nullptr;
  /// "NAME=value", beside what this process has.
  std::vector<std::string> environment = {};
  /// For its standard input.
  std::string input = {};
};

/// A program that runs. It leads a process group, which the destructor kills and reaps; the kernel
/// does so when this process is killed.
class Child {
 public:
  enum class Output : std::uint8_t {
    Kept,   ///< in memory, to be read at the end
    Piped,  ///< to be read from descriptor() as it comes; standard error too
  };
  static Result<Child> start(const Command& command, Output output = Output::Kept);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// Readable at its end.
  [[nodiscard]] int ended() const { return handle_.get(); }
  /// Of Output::Piped.
  [[nodiscard]] int descriptor() const { return output_.get(); }
  [[nodiscard]] bool running() const;
  /// To the whole group.
  void signal(int number) const;
  /// Waits; the exit status, or 128 + the number of a signal.
  int reap();
  /// What came so far, of Output::Kept.
  [[nodiscard]] std::string output() const { return contentOf(output_); }
  [[nodiscard]] std::string errors() const { return contentOf(errors_); }

 private:
  Child() = default;
  static std::string contentOf(const UniqueFd& file);

  pid_t pid_ = -1;
  UniqueFd handle_;
  UniqueFd output_;
  UniqueFd errors_;
};

struct Ended {
  enum class How : std::uint8_t { Itself, Interrupted, TooLate };
  How how = How::Itself;
  int status = 0;
  std::string output;
  std::string errors;
};

/// Runs a program to its end, or ends it. `tick` is called every `interval` meanwhile.
/// Errors: it cannot be started (ENOENT where it is not installed).
Result<Ended> runToEnd(const Command& command, std::chrono::milliseconds limit,
                       const Interrupt& interrupt, std::chrono::milliseconds interval = {},
                       const std::function<void()>& tick = {});

/// What went wrong with a program, in one line: its last words, or its exit status.
std::string lastWords(const Ended& ended);

}  // namespace adit::bench
