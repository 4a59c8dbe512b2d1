#include "dataplane/user/udp_socket.hpp"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace adit::dataplane::user {
namespace {

// Some tens of super-packets: what arrives while the receiving thread is not running.
constexpr int kReceiveBuffer = 4 << 20;
constexpr int kSendBuffer = 1 << 20;
// A send blocks while the device's queue is full, which slows down the sender inside the tunnel.
// It must not hold up the control thread when the device is stuck.
constexpr timeval kSendTimeout{.tv_sec = 0, .tv_usec = 200'000};
constexpr int kPortAttempts = 16;

template <typename T>
bool setOption(int fd, int level, int name, const T& value) {
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

void setBuffer(int fd, int force, int plain, int bytes) {
  if (!setOption(fd, SOL_SOCKET, force, bytes)) setOption(fd, SOL_SOCKET, plain, bytes);
}

// Options that every kernel which this runs on has, or that only improve things.
void setCommonOptions(int fd, int family, const SocketSettings& settings) {
  const int on = 1;
  setBuffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBuffer);
  setBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, kSendBuffer);
  setOption(fd, SOL_SOCKET, SO_SNDTIMEO, kSendTimeout);
  if (settings.receiveOffload) setOption(fd, IPPROTO_UDP, UDP_GRO, on);
  // Let routers fragment (as WireGuard does): a path MTU that shrank must not be a black hole.
  if (family == AF_INET6) {
    const int dont = IPV6_PMTUDISC_DONT;
    setOption(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, dont);
    setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, on);
    setOption(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, on);
    setOption(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, on);
  } else {
    const int dont = IP_PMTUDISC_DONT;
    setOption(fd, IPPROTO_IP, IP_MTU_DISCOVER, dont);
    setOption(fd, IPPROTO_IP, IP_PKTINFO, on);
    setOption(fd, IPPROTO_IP, IP_RECVTOS, on);
  }
}

std::uint16_t boundPort(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return Endpoint::fromSockaddr(reinterpret_cast<const sockaddr*>(&address)).port;
}

// Binds a new socket of the address's family. The code of the error tells a missing family.
Result<UniqueFd> openOne(const IpAddress& address, std::uint16_t port,
                         const SocketSettings& settings) {
  const char* family = address.isV6() ? "IPv6" : "IPv4";
  UniqueFd fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd) return failErrno(errno, "cannot open an {} UDP socket", family);
  setCommonOptions(fd.get(), address.family(), settings);
  if (settings.firewallMark != 0 &&
      !setOption(fd.get(), SOL_SOCKET, SO_MARK, settings.firewallMark)) {
    return failErrno(errno, "cannot set the firewall mark {:#x}", settings.firewallMark);
  }
  const int on = 1;
  if (settings.shared && !setOption(fd.get(), SOL_SOCKET, SO_REUSEPORT, on)) {
    return failErrno(errno, "cannot share {} UDP port {} between threads", family, port);
  }
  sockaddr_storage storage{};
  const socklen_t length = Endpoint{address, port, 0}.toSockaddr(storage);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) == 0) return fd;
  const int code = errno;
  if (code == EADDRINUSE) {
    return tl::unexpected(Error{
        fmt::format("UDP port {} ({}) is in use by another program: address in use", port, family),
        code});
  }
  return failErrno(code, "cannot listen on {} UDP port {}", address.toString(), port);
}

bool familyIsMissing(int code) {
  return code == EAFNOSUPPORT || code == EADDRNOTAVAIL;
}

// Builds the message of one sendmsg call.
class SendMessage {
 public:
  SendMessage(const Destination& destination, std::uint8_t tos) : destination_(destination) {
    family_ = destination.address.ss_family;
    tos_ = tos;
  }

  // Returns 0, or errno.
  int send(int fd, std::span<const std::uint8_t> data, std::size_t segment, bool pinSource) {
    iovec piece{const_cast<std::uint8_t*>(data.data()), data.size()};
    msghdr message{};
    message.msg_name = const_cast<sockaddr_storage*>(&destination_.address);
    message.msg_namelen = destination_.length;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    used_ = 0;
    addTos();
    if (pinSource) addSource();
    if (segment < data.size()) {
      add(IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(segment));
    }
    if (used_ > 0) {
      message.msg_control = control_.data();
      message.msg_controllen = used_;
    }
    for (;;) {
      if (::sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) return 0;
      if (errno != EINTR) return errno;
    }
  }

  [[nodiscard]] bool hasSource() const { return !destination_.source.address.isUnspecified(); }

 private:
  template <typename T>
  void add(int level, int type, const T& value) {
    cmsghdr header{};
    header.cmsg_len = CMSG_LEN(sizeof(T));
    header.cmsg_level = level;
    header.cmsg_type = type;
    std::memcpy(control_.data() + used_, &header, sizeof(header));
    std::memcpy(control_.data() + used_ + CMSG_LEN(0), &value, sizeof(T));
    used_ += CMSG_SPACE(sizeof(T));
  }

  void addTos() {
    if (tos_ == 0) return;
    const int value = tos_;
    if (family_ == AF_INET6) {
      add(IPPROTO_IPV6, IPV6_TCLASS, value);
    } else {
      add(IPPROTO_IP, IP_TOS, value);
    }
  }

  // The address alone: routing still chooses the interface, which may have changed.
  void addSource() {
    const LocalAddress& source = destination_.source;
    if (!hasSource() || source.address.family() != family_) return;
    if (family_ == AF_INET6) {
      in6_pktinfo info{};
      std::memcpy(&info.ipi6_addr, source.address.bytes().data(), sizeof(info.ipi6_addr));
      if (source.address.isLinkLocalV6()) info.ipi6_ifindex = source.interfaceIndex;
      add(IPPROTO_IPV6, IPV6_PKTINFO, info);
    } else {
      in_pktinfo info{};
      std::memcpy(&info.ipi_spec_dst, source.address.bytes().data(), sizeof(info.ipi_spec_dst));
      add(IPPROTO_IP, IP_PKTINFO, info);
    }
  }

  const Destination& destination_;
  int family_;
  std::uint8_t tos_;
  std::size_t used_ = 0;
  alignas(cmsghdr) std::array<std::uint8_t, 128> control_;
};

bool mayBeTheSource(int error) {
  return error == EINVAL || error == EADDRNOTAVAIL || error == ENETUNREACH || error == EHOSTUNREACH;
}

// EIO: the device has no checksum offload; EINVAL or EMSGSIZE: a segment exceeds the path's MTU;
// ENOPROTOOPT and EOPNOTSUPP: kernels before 4.18.
bool mayBeSegmentation(int error) {
  return error == EIO || error == EINVAL || error == EMSGSIZE || error == ENOPROTOOPT ||
         error == EOPNOTSUPP;
}

int sendOne(SendMessage& message, int fd, std::span<const std::uint8_t> datagram, bool& pinSource) {
  int error = message.send(fd, datagram, datagram.size(), pinSource);
  if (pinSource && mayBeTheSource(error)) {
    error = message.send(fd, datagram, datagram.size(), false);
    if (error == 0) pinSource = false;
  }
  return error;
}

}  // namespace

Result<UdpSockets> UdpSockets::tryOpen(const SocketSettings& settings, bool& portRace) {
  UdpSockets sockets;
  const bool all = settings.bindAddress.isUnspecified();
  std::optional<Error> missing;
  if (all || settings.bindAddress.isV4()) {
    auto fd = openOne(all ? IpAddress::anyV4() : settings.bindAddress, settings.port, settings);
    if (fd) {
      sockets.v4_ = std::move(*fd);
    } else if (all && familyIsMissing(fd.error().code)) {
      missing = fd.error();
    } else {
      return tl::unexpected(fd.error());
    }
  }
  const std::uint16_t port = sockets.v4_ ? boundPort(sockets.v4()) : settings.port;
  if (all || settings.bindAddress.isV6()) {
    auto fd = openOne(all ? IpAddress::anyV6() : settings.bindAddress, port, settings);
    if (fd) {
      sockets.v6_ = std::move(*fd);
    } else if (!all || missing || !familyIsMissing(fd.error().code)) {
      portRace = settings.port == 0 && fd.error().code == EADDRINUSE;
      return tl::unexpected(missing ? *missing : fd.error());
    }
  }
  sockets.port_ = boundPort(sockets.v4_ ? sockets.v4() : sockets.v6());
  return sockets;
}

Result<UdpSockets> UdpSockets::open(const SocketSettings& settings) {
  // A port that the system chose for IPv4 may be taken for IPv6: let it choose another.
  for (int attempt = 1;; ++attempt) {
    bool portRace = false;
    auto sockets = tryOpen(settings, portRace);
    if (sockets || !portRace || attempt == kPortAttempts) return sockets;
  }
}

Result<std::vector<UdpSockets>> UdpSockets::openGroup(const SocketSettings& settings,
                                                      std::size_t count) {
  std::vector<UdpSockets> group;
  // Alone first: sharing would also let us in beside another program that shares the port.
  auto first = open(settings);
  if (!first) return tl::unexpected(first.error());
  if (count == 1) {
    group.push_back(std::move(*first));
    return group;
  }
  SocketSettings shared = settings;
  shared.port = first->port();
  shared.shared = true;
  *first = {};
  while (group.size() < count) {
    auto next = open(shared);
    if (!next) return tl::unexpected(next.error());
    group.push_back(std::move(*next));
  }
  if (const auto steered = group.front().steer(count); !steered) {
    return tl::unexpected(steered.error());
  }
  return group;
}

// The program sees the UDP payload and returns the number of the socket, in the order of binding.
// In a data message the receiver index starts at byte 4; other messages may go anywhere.
Result<void> UdpSockets::steer(std::size_t count) const {
  constexpr std::uint32_t kReceiverIndex = 4;
  std::array<sock_filter, 3> program{
      sock_filter{BPF_LD | BPF_B | BPF_ABS, 0, 0, kReceiverIndex},
      sock_filter{BPF_ALU | BPF_MOD | BPF_K, 0, 0, static_cast<std::uint32_t>(count)},
      sock_filter{BPF_RET | BPF_A, 0, 0, 0}};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  for (const int fd : {v4(), v6()}) {
    if (fd >= 0 && !setOption(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, filter)) {
      return failErrno(errno, "cannot distribute UDP port {} to threads", port_);
    }
  }
  return {};
}

Result<void> UdpSockets::setFirewallMark(std::uint32_t mark) const {
  for (const int fd : {v4(), v6()}) {
    if (fd >= 0 && !setOption(fd, SOL_SOCKET, SO_MARK, mark)) {
      return failErrno(errno, "cannot set the firewall mark {:#x}", mark);
    }
  }
  return {};
}

SendOutcome sendDatagrams(const UdpSockets& sockets, const Destination& destination,
                          std::span<const std::uint8_t> data, std::size_t segment, std::uint8_t tos,
                          bool offload) {
  SendOutcome outcome;
  const int fd = sockets.forFamily(destination.address.ss_family);
  if (fd < 0) {
    outcome.error = EAFNOSUPPORT;
    return outcome;
  }
  SendMessage message(destination, tos);
  bool pinSource = message.hasSource();
  const bool pinned = pinSource;
  const bool several = segment < data.size();
  int refusal = 0;
  if (offload && several) {
    refusal = message.send(fd, data, segment, pinSource);
    if (refusal == 0) {
      outcome.sent = (data.size() + segment - 1) / segment;
      return outcome;
    }
    if (!mayBeSegmentation(refusal) && !(pinSource && mayBeTheSource(refusal))) {
      outcome.error = refusal;
      return outcome;
    }
  }
  for (std::size_t at = 0; at < data.size(); at += segment) {
    const auto datagram = data.subspan(at, std::min(segment, data.size() - at));
    const int error = sendOne(message, fd, datagram, pinSource);
    if (error == 0) {
      ++outcome.sent;
    } else if (outcome.error == 0) {
      outcome.error = error;
    }
    // The device is stuck: the others would wait as long each, and the device's threads for us.
    if (error == EAGAIN) break;
  }
  outcome.sourceRefused = pinned && !pinSource;
  // When the source was to blame, offload gets another chance.
  outcome.segmentationRefused =
      refusal != 0 && mayBeSegmentation(refusal) && !outcome.sourceRefused && outcome.sent > 0;
  return outcome;
}

ReceiveInfo parseReceiveInfo(const msghdr& message) {
  ReceiveInfo info;
  // CMSG_NXTHDR takes a non-const pointer but changes nothing.
  auto& header = const_cast<msghdr&>(message);
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    const std::uint8_t* data = CMSG_DATA(control);
    if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, data, sizeof(segment));
      info.segment = static_cast<std::size_t>(std::max(segment, 0));
    } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
      in_pktinfo packet{};
      std::memcpy(&packet, data, sizeof(packet));
      std::array<std::uint8_t, 4> bytes{};
      std::memcpy(bytes.data(), &packet.ipi_spec_dst, bytes.size());
      info.local = {IpAddress::fromV4(bytes), static_cast<std::uint32_t>(packet.ipi_ifindex)};
    } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
      info.tos = data[0];
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo packet{};
      std::memcpy(&packet, data, sizeof(packet));
      info.local = {IpAddress::fromV6(std::span(packet.ipi6_addr.s6_addr)), packet.ipi6_ifindex};
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS) {
      int value = 0;
      std::memcpy(&value, data, sizeof(value));
      info.tos = static_cast<std::uint8_t>(value);
    }
  }
  return info;
}

}  // namespace adit::dataplane::user
