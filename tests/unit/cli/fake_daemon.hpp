// A daemon with a fake device behind both of its sockets, and the adit program run against it.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "control/cli_fake_device.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli::testing {

/// A directory of the test's own, which ADIT_RUNTIME_DIR, ADIT_WIREGUARD_DIR and ADIT_CONFIG_DIR
/// point into while it lives.
class Sandbox {
 public:
  Sandbox();
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file with mode 0600 below the directory and gives its path.
  std::string write(const std::string& name, std::string_view text, mode_t mode = 0600) const;

 private:
  std::filesystem::path path_;
};

/// Serves one unix socket in a thread of its own until it is destroyed: whatever stands before
/// `delimiter` goes to `handler`, whose answer goes back. An empty answer closes the connection.
class SocketServer {
 public:
  using Handler = std::function<std::string(std::string_view)>;
  SocketServer(std::filesystem::path path, std::string delimiter, Handler handler);
  ~SocketServer();
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

 private:
  void run();
  void serve(const UniqueFd& connection);

  std::filesystem::path path_;
  std::string delimiter_;
  Handler handler_;
  UniqueFd listener_;
  std::atomic<bool> ended_ = false;
  /// The connection that is served now, or -1.
  std::atomic<int> current_ = -1;
  std::thread thread_;
};

/// adit's socket of the device.
class FakeDaemon {
 public:
  explicit FakeDaemon(control::DeviceApi& device, const std::string& name = "adit0");

 private:
  SocketServer control_;
};

struct Outcome {
  /// Exit status, or 128 + signal.
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs a shell command line; `adit` in it is the program under test.
Outcome shell(const std::string& command);
/// `adit ARGUMENTS`
Outcome runAdit(const std::string& arguments);

}  // namespace adit::cli::testing
