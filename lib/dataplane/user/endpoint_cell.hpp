// Where a peer is, as learned by the receiving thread and used by the sending one.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "dataplane/user/udp_socket.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"

namespace adit::dataplane::user {

/// Thread-safe; its lock is taken once per batch.
class EndpointCell {
 public:
  /// As configured or told by the control thread.
  void set(const Endpoint& endpoint, const LocalAddress& local) {
    const std::lock_guard lock(mutex_);
    assign(endpoint, local);
    moved_ = false;
  }

  /// As seen on an authenticated packet. True when the endpoint moved and nobody knows yet.
  bool learn(const Endpoint& endpoint, const LocalAddress& local) {
    const std::lock_guard lock(mutex_);
    if (known_ && endpoint == endpoint_) {
      if (local != destination_.source) destination_.source = local;
      return false;
    }
    assign(endpoint, local);
    return !std::exchange(moved_, true);
  }

  /// Nothing while no endpoint is known.
  [[nodiscard]] std::optional<Destination> destination() const {
    const std::lock_guard lock(mutex_);
    if (!known_) return std::nullopt;
    return destination_;
  }

  [[nodiscard]] std::optional<Endpoint> endpoint() const {
    const std::lock_guard lock(mutex_);
    if (!known_) return std::nullopt;
    return endpoint_;
  }

  /// The endpoint, once after each time that it was learned anew.
  std::optional<Endpoint> takeMoved() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(moved_, false)) return std::nullopt;
    return endpoint_;
  }
  [[nodiscard]] bool moved() const {
    const std::lock_guard lock(mutex_);
    return moved_;
  }

  /// `local` is not an address of this machine any more: leave the source to routing.
  void forgetSource(const LocalAddress& local) {
    const std::lock_guard lock(mutex_);
    if (destination_.source == local) destination_.source = {};
  }

  /// The path refused segmentation offload. Tried anew when the endpoint changes, or at `until`.
  void refuseSegmentation(BootTime until) {
    const std::lock_guard lock(mutex_);
    destination_.singlyUntil = until;
  }

 private:
  void assign(const Endpoint& endpoint, const LocalAddress& local) {
    endpoint_ = endpoint;
    destination_.length = endpoint.toSockaddr(destination_.address);
    destination_.source = local;
    destination_.singlyUntil = {};
    known_ = true;
  }

  mutable std::mutex mutex_;
  bool known_ = false;
  bool moved_ = false;
  Endpoint endpoint_;
  Destination destination_;
};

}  // namespace adit::dataplane::user
