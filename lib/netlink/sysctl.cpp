#include "netlink/sysctl.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "util/unique_fd.hpp"

namespace adit::netlink {
namespace {

/// Values are short; the longest that we touch (tcp_rmem) has three numbers.
constexpr std::size_t kMaximumValue = 4096;

/// No way out of the root: a path is made of names alone.
bool isPlain(std::string_view path) {
  if (path.empty() || path.front() == '/') {
    return false;
  }
  for (const auto& part : std::filesystem::path(path)) {
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
  }
  return true;
}

std::string withoutTrailingSpace(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return std::string(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

tl::unexpected<Error> failWrite(int code, std::string_view path, std::string_view value) {
  if (code == EROFS || code == EACCES || code == EPERM) {
    return failErrno(code,
                     "set /proc/sys/{} to {} (where this is a container, run on its host: "
                     "sysctl -w {}={})",
                     path, value, path, value);
  }
  return failErrno(code, "set /proc/sys/{} to {}", path, value);
}

}  // namespace

Result<std::string> Sysctl::read(std::string_view path) const {
  if (!isPlain(path)) {
    return fail("\"{}\" is not the path of a kernel parameter", path);
  }
  const UniqueFd file(::open((root_ / path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return failErrno(errno, "read /proc/sys/{}", path);
  }
  std::array<char, kMaximumValue> buffer{};
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  if (size < 0) {
    return failErrno(errno, "read /proc/sys/{}", path);
  }
  return withoutTrailingSpace({buffer.data(), static_cast<std::size_t>(size)});
}

Result<std::string> Sysctl::write(std::string_view path, std::string_view value) const {
  auto old = read(path);
  if (!old || *old == value) {
    return old;
  }
  const UniqueFd file(::open((root_ / path).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file) {
    return failWrite(errno, path, value);
  }
  const std::string line = std::string(value) + "\n";
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return failWrite(errno, path, value);
  }
  const auto now = read(path);
  if (!now) {
    return now;
  }
  if (*now != value) {
    return fail("set /proc/sys/{} to {}: it reads {} afterwards", path, value, *now);
  }
  return old;
}

}  // namespace adit::netlink
