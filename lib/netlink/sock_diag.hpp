// TCP connections of this network namespace and how they do (sock_diag(7)).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::netlink {

/// An established connection; figures are those of `struct tcp_info` (linux/tcp.h), zero where the
/// kernel is too old for them.
struct TcpConnection {
  Endpoint local;
  Endpoint remote;
  std::chrono::microseconds minimumDelay{};
  /// Time in which there was something to send, and in which it had to wait for the receiver's
  /// window or for our send buffer.
  std::chrono::microseconds busy{};
  std::chrono::microseconds byReceiver{};
  std::chrono::microseconds bySendBuffer{};
  std::uint64_t segmentsOut = 0;
  std::uint64_t retransmitted = 0;
};

/// Of both families. Fails where the kernel has no inet_diag (ENOENT).
Result<std::vector<TcpConnection>> tcpConnections();

}  // namespace adit::netlink
