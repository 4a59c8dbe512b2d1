#include "netlink/sock_diag.hpp"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>

#include <algorithm>
#include <cstring>

#include "netlink/transport.hpp"

namespace adit::netlink {
namespace {

/// TCP_ESTABLISHED of include/net/tcp_states.h.
constexpr std::uint32_t kEstablished = 1;

Endpoint endpointOf(int family, std::span<const __be32, 4> address, std::uint16_t port) {
  const auto* bytes = static_cast<const std::uint8_t*>(static_cast<const void*>(address.data()));
  Endpoint endpoint;
  endpoint.address = family == AF_INET6
                         ? IpAddress::fromV6(std::span<const std::uint8_t, 16>(bytes, 16))
                         : IpAddress::fromV4(std::span<const std::uint8_t, 4>(bytes, 4));
  endpoint.port = ntohs(port);
  return endpoint;
}

TcpConnection connectionOf(const nlmsghdr* message) {
  const auto& socket = *static_cast<const inet_diag_msg*>(mnl_nlmsg_get_payload(message));
  TcpConnection connection;
  connection.local = endpointOf(socket.idiag_family, socket.id.idiag_src, socket.id.idiag_sport);
  connection.remote = endpointOf(socket.idiag_family, socket.id.idiag_dst, socket.id.idiag_dport);
  tcp_info info{};
  const auto bytes = Attributes(message, sizeof(inet_diag_msg)).bytes(INET_DIAG_INFO);
  std::memcpy(&info, bytes.data(), std::min(bytes.size(), sizeof(info)));
  // ~0 stands for "not measured yet".
  if (info.tcpi_min_rtt != ~std::uint32_t{0}) {
    connection.minimumDelay = std::chrono::microseconds(info.tcpi_min_rtt);
  }
  connection.busy = std::chrono::microseconds(info.tcpi_busy_time);
  connection.byReceiver = std::chrono::microseconds(info.tcpi_rwnd_limited);
  connection.bySendBuffer = std::chrono::microseconds(info.tcpi_sndbuf_limited);
  connection.segmentsOut = info.tcpi_segs_out;
  connection.retransmitted = info.tcpi_total_retrans;
  return connection;
}

}  // namespace

Result<std::vector<TcpConnection>> tcpConnections() {
  auto transport = Transport::open(NETLINK_SOCK_DIAG);
  if (!transport) return tl::unexpected(transport.error());
  std::vector<TcpConnection> all;
  for (const int family : {AF_INET, AF_INET6}) {
    Message message(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
    auto& request = message.extraHeader<inet_diag_req_v2>();
    request.sdiag_family = static_cast<std::uint8_t>(family);
    request.sdiag_protocol = IPPROTO_TCP;
    request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
    request.idiag_states = 1U << kEstablished;
    std::vector<TcpConnection> found;
    auto asked = (*transport)
                     ->query(
                         message, [&] { found.clear(); },
                         [&](const nlmsghdr* answer) {
                           if (mnl_nlmsg_get_payload_len(answer) >= sizeof(inet_diag_msg)) {
                             found.push_back(connectionOf(answer));
                           }
                         });
    if (!asked) return failDoing(asked.error(), "list TCP connections");
    std::ranges::move(found, std::back_inserter(all));
  }
  return all;
}

}  // namespace adit::netlink
