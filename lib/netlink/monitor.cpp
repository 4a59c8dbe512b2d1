#include "netlink/monitor.hpp"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>

#include <array>
#include <bitset>
#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "util/unique_fd.hpp"

namespace adit::netlink {
namespace {

constexpr std::size_t kKinds = static_cast<std::size_t>(Change::Firewall) + 1;
using Seen = std::bitset<kKinds>;

struct Close {
  void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
};
using Socket = std::unique_ptr<mnl_socket, Close>;

std::optional<Change> kindOfRoute(std::uint16_t type) {
  switch (type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return Change::Link;
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return Change::Address;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return Change::Route;
    case RTM_NEWRULE:
    case RTM_DELRULE:
      return Change::Rule;
    default:
      return std::nullopt;
  }
}

/// Every commit ends with one new-generation message.
std::optional<Change> kindOfFirewall(std::uint16_t type) {
  constexpr std::uint16_t kNewGeneration = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWGEN;
  return type == kNewGeneration ? std::optional(Change::Firewall) : std::nullopt;
}

Result<Socket> openJoined(int protocol, std::span<const int> groups) {
  Socket socket(mnl_socket_open2(protocol, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    return failErrno(errno, "open a netlink socket to watch for changes");
  }
  if (mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    return failErrno(errno, "bind a netlink socket to watch for changes");
  }
  for (int group : groups) {
    if (mnl_socket_setsockopt(socket.get(), NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
      return failErrno(errno, "join netlink group {} to watch for changes", group);
    }
  }
  return socket;
}

}  // namespace

std::string_view changeName(Change change) {
  switch (change) {
    case Change::Link:
      return "link";
    case Change::Address:
      return "address";
    case Change::Route:
      return "route";
    case Change::Rule:
      return "rule";
    case Change::Firewall:
      return "firewall";
  }
  return "unknown";
}

class Monitor::Sockets {
 public:
  Sockets(Socket route, Socket firewall, UniqueFd poll)
      : route_(std::move(route)), firewall_(std::move(firewall)), poll_(std::move(poll)) {}

  [[nodiscard]] int descriptor() const { return poll_.get(); }

  Result<void> drain(Seen& seen) {
    if (const auto result = drainOne(route_.get(), kindOfRoute, seen); !result) {
      return result;
    }
    return firewall_ ? drainOne(firewall_.get(), kindOfFirewall, seen) : Result<void>{};
  }

 private:
  Result<void> drainOne(const mnl_socket* socket, std::optional<Change> (*kindOf)(std::uint16_t),
                        Seen& seen) {
    for (;;) {
      const ssize_t received = mnl_socket_recvfrom(socket, buffer_.data(), buffer_.size());
      if (received < 0) {
        if (errno == EAGAIN) {
          return {};
        }
        if (errno == ENOBUFS || errno == ENOSPC) {
          seen.set();
          continue;
        }
        if (errno == EINTR) {
          continue;
        }
        return failErrno(errno, "read kernel notifications");
      }
      int left = static_cast<int>(received);
      const void* position = buffer_.data();
      for (const auto* message = static_cast<const nlmsghdr*>(position);
           mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
        if (const auto kind = kindOf(message->nlmsg_type)) {
          seen.set(static_cast<std::size_t>(*kind));
        }
      }
    }
  }

  Socket route_;
  Socket firewall_;
  UniqueFd poll_;
  alignas(nlmsghdr) std::array<char, 64 * 1024> buffer_{};
};

Monitor::Monitor(std::unique_ptr<Sockets> sockets) : sockets_(std::move(sockets)) {}

Monitor::~Monitor() = default;

Result<std::unique_ptr<Monitor>> Monitor::open() {
  constexpr std::array kRouteGroups = {int{RTNLGRP_LINK},        int{RTNLGRP_IPV4_IFADDR},
                                       int{RTNLGRP_IPV6_IFADDR}, int{RTNLGRP_IPV4_ROUTE},
                                       int{RTNLGRP_IPV6_ROUTE},  int{RTNLGRP_IPV4_RULE},
                                       int{RTNLGRP_IPV6_RULE}};
  constexpr std::array kFirewallGroups = {int{NFNLGRP_NFTABLES}};
  auto route = openJoined(NETLINK_ROUTE, kRouteGroups);
  if (!route) {
    return tl::unexpected(route.error());
  }
  Socket firewall;
  if (auto opened = openJoined(NETLINK_NETFILTER, kFirewallGroups)) {
    firewall = std::move(*opened);
  }
  UniqueFd poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll) {
    return failErrno(errno, "create an epoll descriptor");
  }
  for (const mnl_socket* socket : {route->get(), firewall.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (socket != nullptr &&
        ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, mnl_socket_get_fd(socket), &event) < 0) {
      return failErrno(errno, "watch a netlink socket");
    }
  }
  return std::unique_ptr<Monitor>(new Monitor(
      std::make_unique<Sockets>(std::move(*route), std::move(firewall), std::move(poll))));
}

int Monitor::descriptor() const {
  return sockets_->descriptor();
}

Result<void> Monitor::dispatch(const std::function<void(Change)>& callback) {
  Seen seen;
  auto result = sockets_->drain(seen);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (seen.test(kind)) {
      callback(static_cast<Change>(kind));
    }
  }
  return result;
}

}  // namespace adit::netlink
