// A UDP socket on one address of the tunnel: packets that come in elsewhere never reach it,
// whatever they claim to be.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "util/address.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

class PortSocket {
 public:
  /// Bound to the device `interface` and to `local`, whose port 0 leaves it to the system. The
  /// address need not be there yet.
  static Result<PortSocket> open(const std::string& interface, const Endpoint& local);

  [[nodiscard]] int descriptor() const { return fd_.get(); }
  [[nodiscard]] const IpAddress& address() const { return address_; }

  using Take = std::function<void(std::span<const std::uint8_t>, const Endpoint&)>;
  /// Gives every datagram that waits to `take`, at most `most` of them.
  void receive(unsigned most, const Take& take) const;
  /// Empties the queue of errors; true when one of them says that nobody listens where something
  /// was sent to (ICMP port unreachable).
  [[nodiscard]] bool takeRefusals() const;
  /// A datagram that cannot be sent is lost: the protocol repeats what matters.
  void send(std::span<const std::uint8_t> message, const Endpoint& destination) const;

 private:
  PortSocket(UniqueFd fd, const IpAddress& address) : fd_(std::move(fd)), address_(address) {}

  UniqueFd fd_;
  IpAddress address_;
};

}  // namespace adit::control
