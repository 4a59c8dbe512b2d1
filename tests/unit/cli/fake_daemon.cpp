#include "fake_daemon.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <sstream>

#include "control/control_protocol.hpp"
#include "control/paths.hpp"

namespace adit::cli::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::array kVariables{"ADIT_RUNTIME_DIR", "ADIT_WIREGUARD_DIR", "ADIT_CONFIG_DIR"};

std::string contentOf(const fs::path& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Sandbox::Sandbox() {
  std::string name = (fs::temp_directory_path() / "adit-cli-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
  for (const char* variable : kVariables) {
    ::setenv(variable, name.c_str(), 1);
  }
  for (const char* variable : {"WG_COLOR_MODE", "WG_HIDE_KEYS", "ADITD"}) {
    ::unsetenv(variable);
  }
}

Sandbox::~Sandbox() {
  for (const char* variable : kVariables) {
    ::unsetenv(variable);
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Sandbox::write(const std::string& name, std::string_view text, mode_t mode) const {
  const fs::path file = path_ / name;
  std::ofstream(file) << text;
  REQUIRE(::chmod(file.c_str(), mode) == 0);
  return file.string();
}

SocketServer::SocketServer(fs::path path, std::string delimiter, Handler handler)
    : path_(std::move(path)),
      delimiter_(std::move(delimiter)),
      handler_(std::move(handler)),
      listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path_.native().size() < sizeof(address.sun_path));
  std::ranges::copy(path_.native(), address.sun_path);
  fs::remove(path_);
  REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0);
  REQUIRE(::listen(listener_.get(), 8) == 0);
  thread_ = std::thread([this] { run(); });
}

SocketServer::~SocketServer() {
  ended_ = true;
  // Wakes accept() and recv(); an answer that is on its way still goes out.
  ::shutdown(listener_.get(), SHUT_RDWR);
  if (const int current = current_; current >= 0) ::shutdown(current, SHUT_RD);
  thread_.join();
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void SocketServer::run() {
  while (!ended_) {
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) continue;
    current_ = connection.get();
    if (!ended_) serve(connection);
    current_ = -1;
  }
}

void SocketServer::serve(const UniqueFd& connection) {
  std::string received;
  std::array<char, 65536> chunk;
  for (;;) {
    const ssize_t count = ::recv(connection.get(), chunk.data(), chunk.size(), 0);
    if (count <= 0) return;
    received.append(chunk.data(), static_cast<std::size_t>(count));
    for (auto end = received.find(delimiter_); end != std::string::npos;
         end = received.find(delimiter_)) {
      const std::string answer = handler_(std::string_view(received).substr(0, end));
      if (answer.empty()) return;
      ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      received.erase(0, end + delimiter_.size());
    }
  }
}

FakeDaemon::FakeDaemon(control::DeviceApi& device, const std::string& name)
    : control_(control::controlSocket(name), "\n",
               [&device](std::string_view line) { return control::handleControl(line, device); }) {}

Outcome shell(const std::string& command) {
  std::string folder = (fs::temp_directory_path() / "adit-run-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const fs::path out = fs::path(folder) / "out";
  const fs::path err = fs::path(folder) / "err";
  const std::string line =
      fmt::format("adit() {{ '{}' \"$@\"; }}\n{{ {}\n}} >'{}' 2>'{}' </dev/null", ADIT_PROGRAM,
                  command, out.string(), err.string());
  const int status = std::system(line.c_str());
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contentOf(out),
                  contentOf(err)};
  fs::remove_all(folder);
  return outcome;
}

Outcome runAdit(const std::string& arguments) {
  return shell("adit " + arguments);
}

}  // namespace adit::cli::testing
