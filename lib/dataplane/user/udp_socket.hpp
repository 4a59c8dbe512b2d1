// The outer UDP sockets: one per address family, bound to the same port.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "util/address.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::dataplane::user {

/// UDP_SEGMENT's limits: segments in a send that every kernel takes (UDP_MAX_SEGMENTS was 64), and
/// payload of an IPv4 datagram.
inline constexpr std::size_t kMaxSegments = 64;
inline constexpr std::size_t kMaxUdpPayload = 65507;

/// Where datagrams go, ready for sendmsg(2).
struct Destination {
  sockaddr_storage address{};
  socklen_t length = 0;
  /// The source address to use; unspecified leaves it to routing.
  LocalAddress source;
  /// Until then segmentation offload is not used for this destination.
  BootTime singlyUntil{};
};

struct SocketSettings {
  /// 0 lets the system choose.
  std::uint16_t port = 0;
  IpAddress bindAddress;
  std::uint32_t firewallMark = 0;
  /// Ask for UDP_GRO.
  bool receiveOffload = true;
  /// Other sockets of ours will be bound to the same port (SO_REUSEPORT).
  bool shared = false;
};

class UdpSockets {
 public:
  UdpSockets() = default;
  /// Binds both families, or the one of `bindAddress` unless that is unspecified. A machine
  /// without IPv6 (or IPv4) gets the other family only. The error names the port.
  static Result<UdpSockets> open(const SocketSettings& settings);

  /// Opens `count` pairs of sockets on one port. What arrives for a session always comes out of the
  /// same pair: the low byte of the receiver index, modulo `count`, chooses it.
  static Result<std::vector<UdpSockets>> openGroup(const SocketSettings& settings,
                                                   std::size_t count);

  [[nodiscard]] int v4() const { return v4_.get(); }
  [[nodiscard]] int v6() const { return v6_.get(); }
  [[nodiscard]] bool isOpen() const { return v4_ || v6_; }
  /// In host order; 0 while closed.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// The socket for a destination's family, or -1.
  [[nodiscard]] int forFamily(int family) const { return family == AF_INET6 ? v6() : v4(); }

  /// SO_MARK on every socket (needs CAP_NET_ADMIN).
  Result<void> setFirewallMark(std::uint32_t mark) const;

 private:
  static Result<UdpSockets> tryOpen(const SocketSettings& settings, bool& portRace);
  [[nodiscard]] Result<void> steer(std::size_t count) const;

  UniqueFd v4_;
  UniqueFd v6_;
  std::uint16_t port_ = 0;
};

/// How a send went.
struct SendOutcome {
  /// Datagrams that the system took.
  std::size_t sent = 0;
  /// errno of the first refused datagram; 0 when all were taken.
  int error = 0;
  /// The system refused offload and took the datagrams one by one.
  bool segmentationRefused = false;
  /// The source address was refused and sending without it worked.
  bool sourceRefused = false;
};

/// Sends `data` as datagrams of `segment` bytes each, the last of which may be shorter, by one
/// system call where the kernel and the path can. `tos` is the outer TOS or traffic class.
/// At most kMaxSegments segments and kMaxUdpPayload bytes. Waits for a full device a fifth of a
/// second, and then gives up what is left.
SendOutcome sendDatagrams(const UdpSockets& sockets, const Destination& destination,
                          std::span<const std::uint8_t> data, std::size_t segment, std::uint8_t tos,
                          bool offload);

/// Room for the control messages of one received datagram.
struct ReceiveControl {
  alignas(cmsghdr) std::array<std::uint8_t, 128> bytes;
};

/// What the control messages of a received buffer say.
struct ReceiveInfo {
  LocalAddress local;
  std::uint8_t tos = 0;
  /// Bytes per datagram in the buffer; 0 when it holds one datagram.
  std::size_t segment = 0;
};
ReceiveInfo parseReceiveInfo(const msghdr& message);

}  // namespace adit::dataplane::user
