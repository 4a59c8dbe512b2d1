#include "cli/doctor_port.hpp"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "util/unique_fd.hpp"

namespace adit::cli {
namespace {

using doctor::PortAnswer;

constexpr std::uint32_t kUdpHeader = 8;
constexpr std::uint32_t kHeaderV4 = 20;
constexpr std::uint32_t kHeaderV6 = 40;

Result<UniqueFd> openSocket(const Endpoint& endpoint, std::uint32_t mark) {
  const bool v6 = endpoint.address.isV6();
  UniqueFd socket(::socket(endpoint.address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return failErrno(errno, "socket");
  const int level = v6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP};
  const int whole = v6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO;
  const int on = 1;
  ::setsockopt(socket.get(), level, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &whole,
               sizeof(whole));
  ::setsockopt(socket.get(), level, v6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof(on));
  if (mark != 0 && ::setsockopt(socket.get(), SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) != 0) {
    return failErrno(errno, "SO_MARK");
  }
  sockaddr_storage address{};
  const socklen_t length = endpoint.toSockaddr(address);
  if (::connect(socket.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), length) != 0) {
    return failErrno(errno, "{}", endpoint.toString());
  }
  return socket;
}

PortAnswer answerOfV4(const sock_extended_err& error) {
  if (error.ee_type != ICMP_DEST_UNREACH) return PortAnswer::Silent;
  switch (error.ee_code) {
    case ICMP_PORT_UNREACH:
      return PortAnswer::Refused;
    case ICMP_PKT_FILTERED:
    case ICMP_NET_ANO:
    case ICMP_HOST_ANO:
      return PortAnswer::Prohibited;
    case ICMP_FRAG_NEEDED:
      return PortAnswer::Silent;
    default:
      return PortAnswer::Unreachable;
  }
}

PortAnswer answerOfV6(const sock_extended_err& error) {
  if (error.ee_type != ICMP6_DST_UNREACH) return PortAnswer::Silent;
  switch (error.ee_code) {
    case ICMP6_DST_UNREACH_NOPORT:
      return PortAnswer::Refused;
    case ICMP6_DST_UNREACH_ADMIN:
      return PortAnswer::Prohibited;
    default:
      return PortAnswer::Unreachable;
  }
}

/// The first error of the socket's queue; nothing where there is none.
std::optional<sock_extended_err> takeError(int socket) {
  std::array<char, 512> control{};
  std::array<char, 1> data{};
  iovec part{data.data(), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
       entry = CMSG_NXTHDR(&message, entry)) {
    const bool v4 = entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_RECVERR;
    const bool v6 = entry->cmsg_level == IPPROTO_IPV6 && entry->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(entry), sizeof(error));
    return error;
  }
  return std::nullopt;
}

void interpret(const sock_extended_err& error, PortEcho& echo) {
  if (error.ee_errno == EMSGSIZE) {
    echo.mtu = error.ee_info;
  } else if (error.ee_origin == SO_EE_ORIGIN_ICMP) {
    echo.answer = answerOfV4(error);
  } else if (error.ee_origin == SO_EE_ORIGIN_ICMP6) {
    echo.answer = answerOfV6(error);
  } else if (error.ee_errno == EHOSTUNREACH) {
    // Nobody on the link has the address.
    echo.answer = PortAnswer::Unreachable;
  }
}

}  // namespace

Result<PortEcho> askPort(const Endpoint& endpoint, std::uint32_t size, std::uint32_t mark,
                         std::chrono::milliseconds patience) {
  auto socket = openSocket(endpoint, mark);
  if (!socket) return tl::unexpected(socket.error());
  const std::uint32_t headers = kUdpHeader + (endpoint.address.isV6() ? kHeaderV6 : kHeaderV4);
  const std::vector<char> zeros(size > headers ? size - headers : 1);
  PortEcho echo;
  if (::send(socket->get(), zeros.data(), zeros.size(), 0) < 0 && errno != EMSGSIZE) {
    return failErrno(errno, "send to {}", endpoint.toString());
  }
  pollfd ready{socket->get(), 0, 0};
  if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return echo;
  if (const auto error = takeError(socket->get())) interpret(*error, echo);
  return echo;
}

}  // namespace adit::cli
