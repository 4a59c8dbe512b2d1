// How the start of the daemon went, told to whoever waits for it: the process that went to the
// background, or systemd.
#pragma once

#include <string>
#include <vector>

#include "control/daemon.hpp"
#include "util/unique_fd.hpp"

namespace adit::daemon {

/// A pipe from the daemon to the process that started it.
class StartPipe final : public control::StartObserver {
 public:
  explicit StartPipe(UniqueFd writer) : writer_(std::move(writer)) {}
  void ready(const std::vector<std::string>& remarks) override;
  void failed(const std::string& message) override;

 private:
  void send(char verdict, const std::string& text);
  UniqueFd writer_;
};

/// Reads what a StartPipe was told, prints it on standard error and returns the exit status.
int awaitStart(const UniqueFd& reader, const std::string& name, const std::string& logFile);

/// For --foreground: standard error and sd_notify(3).
class StartNotice final : public control::StartObserver {
 public:
  void ready(const std::vector<std::string>& remarks) override;
  void failed(const std::string& message) override;
};

}  // namespace adit::daemon
