// Runs a program of the system and waits for it: hooks, resolvconf, modprobe, PrivateKeyCommand.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/privileged_bytes.hpp"
#include "util/result.hpp"

namespace adit::control {

/// Where programs are looked for, and the PATH that they get.
inline constexpr std::string_view kSearchPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct Command {
  /// An absolute path, then the arguments.
  std::vector<std::string> arguments;
  /// NAME=VALUE; the program gets these and nothing else.
  std::vector<std::string> environment;
  /// What the program reads from its standard input; empty is /dev/null.
  std::string input;
  /// Bytes of standard output to keep; with 0 the program writes to ours. A write past the limit
  /// fails in the program.
  std::size_t outputLimit = 0;
  /// Standard error is kept with the output, instead of going to ours.
  bool keepErrors = false;
  /// After this the program and all of its process group are killed.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

struct CommandResult {
  /// As the shell's $?: the exit status, or 128 + the signal.
  int status = 0;
  bool timedOut = false;
  /// Wiped when it goes, since it may be a key.
  Bytes output;
  [[nodiscard]] bool ok() const { return status == 0 && !timedOut; }
};

/// Runs `command` in "/", with the standard error of this process, no other descriptor of ours,
/// no blocked signal and a process group of its own. Fails only when it could not be started or
/// waited for. Safe beside other threads.
Result<CommandResult> runCommand(const Command& command);

/// "exited with status 3", "was killed by signal 9", "did not end within 60 s and was killed".
std::string describeEnd(const Command& command, const CommandResult& result);

/// The absolute path of an executable of `searchPath` (directories separated by colons), else
/// empty.
std::string findProgram(std::string_view name, std::string_view searchPath);

}  // namespace adit::control
