// Kernel parameters by path. Those below net/ belong to the network namespace of the calling
// thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::netlink {

class Sysctl {
 public:
  /// `root` is /proc/sys, or a directory that stands for it in tests.
  explicit Sysctl(std::filesystem::path root = "/proc/sys") : root_(std::move(root)) {}

  /// `path` with slashes, relative to the root: "net/ipv4/conf/eth0.5/forwarding". The value has
  /// no trailing newline. ENOENT: this kernel (or container) does not have it.
  [[nodiscard]] Result<std::string> read(std::string_view path) const;

  /// Writes where the value differs, reads back, and returns the old value. EROFS and EACCES
  /// stand for a container whose parameters belong to its host; the message then names the
  /// command to run there.
  Result<std::string> write(std::string_view path, std::string_view value) const;

 private:
  std::filesystem::path root_;
};

}  // namespace adit::netlink
