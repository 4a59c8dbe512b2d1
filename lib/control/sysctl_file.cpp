#include "control/sysctl_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "util/unique_fd.hpp"

namespace adit::control {
namespace {

constexpr std::size_t kMaxPath = 256;
constexpr std::size_t kMaxValue = 256;

constexpr std::array<std::string_view, 16> kLeaves{
    "forwarding",   "ip_forward",     "rp_filter",
    "accept_ra",    "src_valid_mark", "disable_ipv6",
    "rmem_max",     "rmem_default",   "rps_sock_flow_entries",
    "wmem_max",     "wmem_default",   "default_qdisc",
    "optmem_max",   "udp_rmem_min",   "udp_wmem_min",
    "addr_gen_mode"};
constexpr std::array<std::string_view, 3> kLeafPrefixes{"tcp_", "netdev_", "nf_conntrack_"};
/// Match a prefix, but are no tuning: one is a secret, the other opens ports on a peer's word.
constexpr std::array<std::string_view, 2> kNever{"tcp_fastopen_key", "nf_conntrack_helper"};

bool isPathCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_=+.-:@/").find(c) != std::string_view::npos;
}

bool allowedLeaf(std::string_view leaf) {
  if (std::ranges::find(kNever, leaf) != kNever.end()) return false;
  return std::ranges::find(kLeaves, leaf) != kLeaves.end() ||
         std::ranges::any_of(kLeafPrefixes,
                             [&](std::string_view prefix) { return leaf.starts_with(prefix); });
}

bool plainComponents(std::string_view path) {
  while (true) {
    const auto slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

/// net.ipv4.conf.all.forwarding; sysctl(8) swaps the two separators in names that have dots.
std::string sysctlName(std::string_view path) {
  std::string name(path);
  for (char& c : name) {
    c = c == '/' ? '.' : c == '.' ? '/' : c;
  }
  return name;
}

/// Why opening or reading failed, or opening for writing.
tl::unexpected<Error> explainOpen(int code, const std::string& file, const std::string& path,
                                  const std::string& value) {
  if (code == ENOENT) {
    return failErrno(code, "{}: this kernel, container or interface does not have it", file);
  }
  if (code == EROFS || code == EACCES || code == EPERM) {
    return failErrno(code, "{} cannot be written here; run on the host: sysctl -w {}='{}'", file,
                     sysctlName(path), value);
  }
  return failErrno(code, "{}", file);
}

/// The content without its last newline; sets `code` on failure.
std::string readAll(int file, int& code) {
  std::array<char, 4096> buffer;
  const ssize_t length = ::pread(file, buffer.data(), buffer.size(), 0);
  code = length < 0 ? errno : 0;
  std::string text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

/// The kernel shows lists of numbers with tabs where a person writes blanks.
std::string normalised(std::string text) {
  std::ranges::replace(text, '\t', ' ');
  return text;
}

}  // namespace

Result<void> checkSysctl(std::string_view path) {
  const bool wellFormed = path.size() <= kMaxPath && std::ranges::all_of(path, isPathCharacter) &&
                          path.starts_with("net/") && plainComponents(path);
  if (!wellFormed) return fail("a sysctl must be a file below /proc/sys/net");
  if (!allowedLeaf(path.substr(path.rfind('/') + 1))) {
    return fail("/proc/sys/{} is none of the settings that adit changes", path);
  }
  return {};
}

Result<std::string> readSysctlFile(const std::string& root, const std::string& path) {
  if (!plainComponents(path)) return fail("\"{}\" is not the path of a sysctl", path);
  const std::string name = root + "/" + path;
  const UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return failErrno(errno, "{}", name);
  int code = 0;
  std::string value = readAll(file.get(), code);
  if (code != 0) return failErrno(code, "{}", name);
  return value;
}

Result<std::string> writeSysctlFile(const std::string& root, const std::string& path,
                                    const std::string& value) {
  if (auto allowed = checkSysctl(path); !allowed) return tl::unexpected(allowed.error());
  const bool printable = std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
  if (value.empty() || value.size() > kMaxValue || !printable) {
    return fail("/proc/sys/{}: a value is printable text of 1 to {} bytes", path, kMaxValue);
  }
  const std::string name = root + "/" + path;
  auto old = readSysctlFile(root, path);
  if (!old) return explainOpen(old.error().code, name, path, value);
  if (normalised(*old) == value) return old;

  const UniqueFd writer(::open(name.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
  if (!writer) return explainOpen(errno, name, path, value);
  if (::write(writer.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    return failErrno(errno, "{}: the kernel refuses the value \"{}\"", name, value);
  }
  return old;
}

}  // namespace adit::control
