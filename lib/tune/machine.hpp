// The machine that is tuned, as an interface: files below /proc and /sys, and what is asked of a
// NIC's driver. Tests and `adit tune plan --root` put a recorded machine in its place.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "util/result.hpp"

namespace adit::tune {

/// Paths are relative to the root: "sys/class/net/eth0/speed".
class Files {
 public:
  virtual ~Files() = default;
  /// The content; errno in the error's code.
  [[nodiscard]] virtual Result<std::string> read(const std::string& path) const = 0;
  /// One write(2) of `value`, as the kernel wants it; errno in the error's code.
  virtual Result<void> write(const std::string& path, const std::string& value) = 0;
  /// Names in a folder, in any order; none where there is no such folder.
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& path) const = 0;
  /// The path without symbolic links; empty where it leads nowhere.
  [[nodiscard]] virtual std::string resolve(const std::string& path) const = 0;
};

/// The files below a folder of the machine.
class RootedFiles : public Files {
 public:
  explicit RootedFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}
  [[nodiscard]] Result<std::string> read(const std::string& path) const override;
  Result<void> write(const std::string& path, const std::string& value) override;
  [[nodiscard]] std::vector<std::string> list(const std::string& path) const override;
  [[nodiscard]] std::string resolve(const std::string& path) const override;

 private:
  std::filesystem::path root_;
};

/// Queues that serve receiving and sending, as `ethtool -l` calls them.
struct Channels {
  unsigned combined = 0;
  unsigned maximum = 0;
  friend bool operator==(const Channels&, const Channels&) = default;
};

class NicControl {
 public:
  virtual ~NicControl() = default;
  /// Nothing where the driver has no such choice.
  [[nodiscard]] virtual std::optional<Channels> channels(const std::string& nic) const = 0;
  virtual Result<void> setCombined(const std::string& nic, unsigned count) = 0;
};

/// The drivers of this network namespace, over SIOCETHTOOL.
std::unique_ptr<NicControl> kernelNicControl();
/// NICs whose drivers say nothing, as of a machine that is only read.
std::unique_ptr<NicControl> noNicControl();

struct Machine {
  Files& files;
  NicControl& nics;
};

/// The NIC of the IPv4 default route with the smallest metric (/proc/net/route), else of the IPv6
/// one; empty where there is none.
std::string defaultNic(const Files& files);
/// The NICs behind a bridge, a bond or a VLAN; `name` itself where there are none.
std::vector<std::string> nicsBehind(const Files& files, const std::string& name);

}  // namespace adit::tune
