// A machine made of namespaces: network, mounts and processes of its own. It needs no name on the
// system, and the kernel removes it, with all that runs in it, when this process ends in whatever
// way: process 1 of the machine dies with it, and takes the others along.
#pragma once

#include <filesystem>
#include <string>

#include "bench/process.hpp"

namespace adit::bench {

class Host {
 public:
  /// Needs root. /run is empty and the machine's own, and so are /proc, /sys, and the network,
  /// which has nothing but a loopback device that is down.
  static Result<Host> make();
  Host(Host&& other) noexcept;
  Host& operator=(Host&&) = delete;
  ~Host();

  /// For programs that see this machine alone.
  [[nodiscard]] const Place& inside() const { return inside_; }
  /// For ip(8): its network, but process numbers and files of this process.
  [[nodiscard]] const Place& network() const { return network_; }
  /// Process 1, as this process numbers it.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// A file of the machine, as this process reaches it.
  [[nodiscard]] std::filesystem::path file(const std::filesystem::path& absolute) const;

 private:
  Host() = default;
  pid_t pid_ = -1;
  Place inside_;
  Place network_;
};

}  // namespace adit::bench
