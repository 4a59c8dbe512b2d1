// The client's side of the control socket: one connection, one request at a time, with errors
// written for the person at the terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "control/control_protocol.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

class ControlClient {
 public:
  /// How long an answer may take unless a call says otherwise.
  static constexpr std::chrono::milliseconds kPatience{10'000};
  /// For what runs hooks or resolves names.
  static constexpr std::chrono::milliseconds kLongPatience{120'000};

  /// Connects to the daemon of `interface`. Error codes that a caller can act on: ENOENT where no
  /// daemon runs, EACCES where the person may not ask.
  static Result<ControlClient> connect(std::string_view interface);

  Result<DeviceView> show(bool keys);
  /// The JSON object behind `show`, without keys.
  Result<nlohmann::ordered_json> status();
  Result<std::vector<std::string>> set(const DeviceChange& change);
  Result<std::vector<std::string>> reload();
  Result<void> saved(const std::vector<config::FileStamp>& files);
  Result<std::vector<std::string>> down();

  /// Sends one line and gives the line that answers it, without its newline.
  Result<std::string> request(std::string_view line, std::chrono::milliseconds patience);

  /// Waits until the daemon has closed this connection and its socket is gone.
  Result<void> waitForEnd(std::chrono::milliseconds patience);

 private:
  ControlClient(std::string interface, UniqueFd socket)
      : interface_(std::move(interface)), socket_(std::move(socket)) {}

  std::string interface_;
  UniqueFd socket_;
};

/// The interfaces whose daemon listens, sorted. A directory that is not there is none; one that
/// may not be read is an error.
Result<std::vector<std::string>> runningInterfaces();

}  // namespace adit::control
