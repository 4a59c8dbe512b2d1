#include "control/control_client.hpp"

#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/parser.hpp"
#include "control/paths.hpp"

namespace adit::control {
namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

tl::unexpected<Error> notUp(std::string_view interface, const std::filesystem::path& path) {
  return tl::unexpected(
      Error{fmt::format("{0} is not up (no daemon listens at {1}); start it with `adit up {0}`",
                        interface, path.string()),
            ENOENT});
}

tl::unexpected<Error> notAllowed(const std::filesystem::path& path) {
  const passwd* user = ::getpwuid(::getuid());
  return tl::unexpected(Error{
      fmt::format("{}: permission denied; run as root, or to see the status alone join the group "
                  "adit: `sudo usermod -aG adit {}`, and log in again",
                  path.string(), user != nullptr ? user->pw_name : "USER"),
      EACCES});
}

/// Waits until `events` or an end of the connection; ETIMEDOUT at `deadline`.
Result<void> waitFor(int fd, short events, SteadyTime deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready > 0) return {};
    if (ready == 0) {
      return tl::unexpected(Error{"the daemon does not answer; see its log", ETIMEDOUT});
    }
    if (errno != EINTR) return failErrno(errno, "poll");
  }
}

Result<void> sendAll(int fd, std::string_view data, SteadyTime deadline) {
  while (!data.empty()) {
    if (auto ready = waitFor(fd, POLLOUT, deadline); !ready) return ready;
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR && errno != EAGAIN) {
      return failErrno(errno, "sending to the daemon");
    }
  }
  return {};
}

/// Appends what has come. False at the end of the connection.
Result<bool> receiveSome(int fd, std::string& received, SteadyTime deadline) {
  if (auto ready = waitFor(fd, POLLIN, deadline); !ready) return tl::unexpected(ready.error());
  std::array<char, 65536> chunk;
  const ssize_t count = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (count > 0) {
    received.append(chunk.data(), static_cast<std::size_t>(count));
    return true;
  }
  if (count == 0 || errno == ECONNRESET) return false;
  if (errno == EINTR || errno == EAGAIN) return true;
  return failErrno(errno, "reading the daemon's answer");
}

Result<UniqueFd> connectTo(std::string_view interface) {
  const std::filesystem::path path = controlSocket(interface);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof(address.sun_path)) {
    return fail("{}: the path is longer than a socket's may be", text);
  }
  std::ranges::copy(text, address.sun_path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return failErrno(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return fd;
  }
  const int code = errno;
  if (code == ENOENT || code == ECONNREFUSED || code == ENOTDIR) return notUp(interface, path);
  if (code == EACCES || code == EPERM) return notAllowed(path);
  return failErrno(code, "{}", text);
}

}  // namespace

Result<ControlClient> ControlClient::connect(std::string_view interface) {
  if (auto valid = config::checkInterfaceName(interface); !valid) {
    return fail("\"{}\": {}", interface, valid.error().message);
  }
  auto socket = connectTo(interface);
  if (!socket) return tl::unexpected(socket.error());
  return ControlClient(std::string(interface), std::move(*socket));
}

Result<std::string> ControlClient::request(std::string_view line, milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  if (auto sent = sendAll(socket_.get(), line, deadline); !sent) {
    return wrapError(sent.error(), interface_);
  }
  std::string answer;
  for (std::size_t searched = 0;;) {
    const auto more = receiveSome(socket_.get(), answer, deadline);
    if (!more) return wrapError(more.error(), interface_);
    if (const auto end = answer.find('\n', searched); end != std::string::npos) {
      answer.resize(end);
      return answer;
    }
    if (!*more) {
      if (::geteuid() != 0) return notAllowed(controlSocket(interface_));
      return fail("{}: the daemon closed the connection without an answer; see {}", interface_,
                  logFile(interface_).string());
    }
    searched = answer.size();
    if (searched > kMaxControlResponse) return fail("{}: the answer has no end", interface_);
  }
}

Result<DeviceView> ControlClient::show(bool keys) {
  return request(encodeShowRequest(keys), kPatience).and_then([](std::string answer) {
    return decodeShowResponse(answer);
  });
}

Result<nlohmann::ordered_json> ControlClient::status() {
  return request(encodeStatusRequest(), kPatience).and_then([](std::string answer) {
    return decodeDeviceJson(answer);
  });
}

Result<std::vector<std::string>> ControlClient::set(const DeviceChange& change) {
  const std::string line = encodeSetRequest(change);
  if (line.size() > kMaxControlRequest) {
    return fail("{}: the change is too large; apply it in parts", interface_);
  }
  return request(line, kPatience).and_then([](std::string answer) {
    return decodeNotesResponse(answer);
  });
}

Result<std::vector<std::string>> ControlClient::reload() {
  return request(encodePlainRequest("reload"), kLongPatience).and_then([](std::string answer) {
    return decodeNotesResponse(answer);
  });
}

Result<void> ControlClient::saved(const std::vector<config::FileStamp>& files) {
  return request(encodeSavedRequest(files), kPatience)
      .and_then([](std::string answer) { return decodeNotesResponse(answer); })
      .map([](const std::vector<std::string>&) {});
}

Result<std::vector<std::string>> ControlClient::down() {
  return request(encodePlainRequest("down"), kLongPatience).and_then([](std::string answer) {
    return decodeNotesResponse(answer);
  });
}

Result<void> ControlClient::waitForEnd(milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string ignored;
  for (;;) {
    const auto more = receiveSome(socket_.get(), ignored, deadline);
    if (!more) return wrapError(more.error(), interface_);
    if (!*more) break;
    ignored.clear();
  }
  // The daemon closes its connections before the last of its clean-up; its socket goes last.
  constexpr milliseconds kPause{10};
  while (connectTo(interface_)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return tl::unexpected(
          Error{fmt::format("{}: the daemon still listens", interface_), ETIMEDOUT});
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

Result<std::vector<std::string>> runningInterfaces() {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(runtimeDirectory(), error);
  if (error == std::errc::no_such_file_or_directory) return names;
  if (error == std::errc::permission_denied) return notAllowed(runtimeDirectory());
  if (error) return failErrno(error.value(), "{}", runtimeDirectory().string());
  for (const auto& entry : entries) {
    const std::filesystem::path& path = entry.path();
    const std::string name = path.stem().string();
    if (path.extension() != ".sock" || !config::checkInterfaceName(name)) continue;
    const auto socket = connectTo(name);
    if (socket) {
      names.push_back(name);
    } else if (socket.error().code == EACCES) {
      return tl::unexpected(socket.error());
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace adit::control
