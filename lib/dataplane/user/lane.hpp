// A pair of packet threads with a queue of the TUN device between them.
#pragma once

#include <thread>

#include "dataplane/user/device.hpp"
#include "dataplane/user/rx_loop.hpp"
#include "dataplane/user/tx_loop.hpp"
#include "dataplane/user/udp_socket.hpp"

namespace adit::dataplane::user {

class Lane {
 public:
  /// Places at the gate that a lane takes.
  static constexpr std::size_t kSeats = 2;

  /// `number` counts from 0. `tun` must stay open until stop() has returned.
  Lane(Device& device, std::size_t number, int tun);
  /// Calls stop().
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void start();
  /// Returns when both threads have ended.
  void stop();

  /// To be called while no batch runs; closes the former sockets.
  void setSockets(UdpSockets sockets);
  /// See RxLoop::awaitSockets(). Only between start() and stop().
  void awaitSockets() { receive_.awaitSockets(); }
  void setPublicKey(const crypto::PublicKey& key) { receive_.setPublicKey(key); }
  [[nodiscard]] const UdpSockets& sockets() const { return sockets_; }
  /// See TxLoop::wake().
  void wake() const { transmit_.wake(); }

 private:
  const std::size_t number_;
  UdpSockets sockets_;
  TxLoop transmit_;
  RxLoop receive_;
  std::thread transmitThread_;
  std::thread receiveThread_;
};

}  // namespace adit::dataplane::user
