// A persistent TUN device with the virtio header and segmentation offload.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::dataplane::user {

/// What the kernel agreed to with TUNSETOFFLOAD.
struct TunOffload {
  /// Super-packets of TCP, both ways.
  bool tcp = false;
  /// Super-packets of UDP, both ways (Linux 6.2).
  bool udp = false;
};

struct TunSettings {
  std::string name;
  /// 0 leaves it.
  unsigned mtu = 0;
  /// More than one makes a multi-queue device. One that was left behind with a single queue keeps
  /// it.
  std::size_t queues = 1;
  bool offload = true;
  /// Opens /dev/net/tun, once for every queue. Empty: open(2) by ourselves.
  std::function<Result<UniqueFd>()> openDevice;
};

class Tun {
 public:
  Tun() = default;
  /// Creates the device, or takes over one of that name which nobody uses. It outlives this object
  /// (TUNSETPERSIST). Every queue is non-blocking. The error says what is missing: the right,
  /// /dev/net/tun, or the free name; and then no new device is left behind.
  static Result<Tun> open(const TunSettings& settings);
  /// Removes the device; the queues are closed.
  void destroy();

  [[nodiscard]] int queue(std::size_t index) const { return queues_[index].get(); }
  [[nodiscard]] std::size_t queues() const { return queues_.size(); }
  [[nodiscard]] const TunOffload& offload() const { return offload_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<UniqueFd> queues_;
  TunOffload offload_;
};

/// The device's MTU now, or 0 when it cannot be read.
unsigned readMtu(const std::string& interface);

}  // namespace adit::dataplane::user
