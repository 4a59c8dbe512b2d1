#include "control/device_pcp_socket.hpp"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "pcp/wire.hpp"

namespace adit::control {
namespace {

/// One more than is allowed, so that too long a datagram is not taken for a whole one.
constexpr std::size_t kBuffer = pcp::kMaximumMessage + 4;

Result<void> set(int fd, int level, int option, int value, const char* what) {
  if (::setsockopt(fd, level, option, &value, sizeof value) < 0) {
    return failErrno(errno, "{}", what);
  }
  return {};
}

Result<void> configure(int fd, const std::string& interface, bool v6) {
  // Before bind(): unprivileged since Linux 5.7.
  if (::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                   static_cast<socklen_t>(interface.size() + 1)) < 0) {
    return failErrno(errno, "a UDP socket cannot be bound to {}", interface);
  }
  if (v6) {
    if (auto only = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"); !only) {
      return only;
    }
    if (auto errors = set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1, "IPV6_RECVERR"); !errors) {
      return errors;
    }
    return set(fd, IPPROTO_IPV6, IPV6_FREEBIND, 1, "IPV6_FREEBIND");
  }
  if (auto errors = set(fd, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR"); !errors) {
    return errors;
  }
  return set(fd, IPPROTO_IP, IP_FREEBIND, 1, "IP_FREEBIND");
}

}  // namespace

Result<PortSocket> PortSocket::open(const std::string& interface, const Endpoint& local) {
  UniqueFd fd(::socket(local.address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return failErrno(errno, "cannot open a UDP socket");
  }
  if (auto configured = configure(fd.get(), interface, local.address.isV6()); !configured) {
    return tl::unexpected(configured.error());
  }
  sockaddr_storage storage{};
  const socklen_t length = local.toSockaddr(storage);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) < 0) {
    return failErrno(errno, "cannot use UDP {}", local.toString());
  }
  return PortSocket(std::move(fd), local.address);
}

void PortSocket::receive(unsigned most, const Take& take) const {
  std::array<std::uint8_t, kBuffer> buffer{};
  for (unsigned i = 0; i < most; ++i) {
    sockaddr_storage source{};
    socklen_t length = sizeof source;
    const ssize_t size = ::recvfrom(fd_.get(), buffer.data(), buffer.size(), 0,
                                    reinterpret_cast<sockaddr*>(&source), &length);
    if (size < 0) {
      // What was sent earlier was refused: told by takeRefusals(), and no reason to stop.
      if (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == EINTR) {
        continue;
      }
      return;
    }
    take(std::span(buffer).first(static_cast<std::size_t>(size)),
         Endpoint::fromSockaddr(reinterpret_cast<const sockaddr*>(&source)));
  }
}

bool PortSocket::takeRefusals() const {
  bool refused = false;
  for (;;) {
    alignas(cmsghdr) std::array<char, 512> control{};
    std::array<std::uint8_t, 1> data{};
    iovec vector{.iov_base = data.data(), .iov_len = data.size()};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(fd_.get(), &message, MSG_ERRQUEUE) < 0) {
      return refused;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      const bool error = (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR) ||
                         (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR);
      if (error && part->cmsg_len >= CMSG_LEN(sizeof(sock_extended_err))) {
        sock_extended_err detail{};
        std::memcpy(&detail, CMSG_DATA(part), sizeof detail);
        refused = refused ||
                  (detail.ee_errno == ECONNREFUSED && (detail.ee_origin == SO_EE_ORIGIN_ICMP ||
                                                       detail.ee_origin == SO_EE_ORIGIN_ICMP6));
      }
    }
  }
}

void PortSocket::send(std::span<const std::uint8_t> message, const Endpoint& destination) const {
  sockaddr_storage storage{};
  const socklen_t length = destination.toSockaddr(storage);
  const auto* address = reinterpret_cast<const sockaddr*>(&storage);
  if (::sendto(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL, address, length) < 0 &&
      errno == ECONNREFUSED) {
    // The error belongs to an earlier datagram, and is told once.
    ::sendto(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL, address, length);
  }
}

}  // namespace adit::control
