// RTM_*ROUTE
#include "netlink/route.hpp"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>

#include "netlink/transport.hpp"

namespace adit::netlink {
namespace {

/// IP6_RT_PRIO_USER: what the kernel stores for an IPv6 route without a metric.
constexpr std::uint32_t kDefaultMetricV6 = 1024;

/// A gateway of the other family (RTA_VIA: IPv4 over an IPv6 next hop).
std::optional<IpAddress> viaGateway(const Attributes& attributes) {
  const auto via = attributes.bytes(RTA_VIA);
  return via.size() > sizeof(rtvia) ? addressFromBytes(via.subspan(sizeof(rtvia))) : std::nullopt;
}

std::optional<std::uint32_t> routeMtu(const Attributes& attributes) {
  const auto metrics = attributes.nest(RTA_METRICS);
  return metrics ? metrics->u32(RTAX_MTU) : std::nullopt;
}

/// The unicast route of a message; nothing for local, broadcast and cached entries.
std::optional<Route> parseRoute(const nlmsghdr* message) {
  const auto* header = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(message));
  if (message->nlmsg_type != RTM_NEWROUTE || header->rtm_type != RTN_UNICAST ||
      (header->rtm_flags & RTM_F_CLONED) != 0) {
    return std::nullopt;
  }
  const Attributes attributes(message, sizeof(rtmsg));
  Route route;
  const IpAddress any = header->rtm_family == AF_INET6 ? IpAddress::anyV6() : IpAddress::anyV4();
  route.destination = Prefix(attributes.address(RTA_DST).value_or(any), header->rtm_dst_len);
  route.interface = attributes.u32(RTA_OIF).value_or(0);
  route.gateway = attributes.address(RTA_GATEWAY);
  if (!route.gateway) {
    route.gateway = viaGateway(attributes);
  }
  route.table = attributes.u32(RTA_TABLE).value_or(header->rtm_table);
  route.metric = attributes.u32(RTA_PRIORITY).value_or(0);
  route.mtu = routeMtu(attributes);
  route.preferredSource = attributes.address(RTA_PREFSRC);
  route.protocol = header->rtm_protocol;
  return route;
}

bool matches(const Route& route, const RouteFilter& filter) {
  return (!filter.family || route.destination.address().family() == *filter.family) &&
         (!filter.table || route.table == *filter.table) &&
         (!filter.protocol || route.protocol == *filter.protocol) &&
         (!filter.interface || route.interface == *filter.interface);
}

std::uint32_t effectiveMetric(const Route& route) {
  return route.metric == 0 && route.destination.address().isV6() ? kDefaultMetricV6 : route.metric;
}

/// The same place in the kernel's table: only one of them can exist.
bool sameKey(const Route& a, const Route& b) {
  return a.destination == b.destination && a.table == b.table &&
         effectiveMetric(a) == effectiveMetric(b);
}

bool sameEffect(const Route& a, const Route& b) {
  return sameKey(a, b) && a.interface == b.interface && a.gateway == b.gateway && a.mtu == b.mtu &&
         (!b.preferredSource || a.preferredSource == b.preferredSource);
}

void putRoute(Message& message, const Route& route) {
  auto& header = message.extraHeader<rtmsg>();
  header.rtm_family = static_cast<std::uint8_t>(route.destination.address().family());
  header.rtm_dst_len = static_cast<std::uint8_t>(route.destination.length());
  header.rtm_table =
      route.table < 256 ? static_cast<std::uint8_t>(route.table) : std::uint8_t{RT_TABLE_UNSPEC};
  header.rtm_protocol = route.protocol;
  header.rtm_type = RTN_UNICAST;
  header.rtm_scope =
      route.gateway || route.destination.address().isV6() ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
  message.putU32(RTA_TABLE, route.table);
  if (!route.destination.isDefault()) {
    message.put(RTA_DST, route.destination.address());
  }
  if (route.interface != 0) {
    message.putU32(RTA_OIF, route.interface);
  }
  if (route.gateway) {
    message.put(RTA_GATEWAY, *route.gateway);
  }
  if (route.metric != 0) {
    message.putU32(RTA_PRIORITY, route.metric);
  }
}

/// What is set on a route but does not select one.
void putRouteDetails(Message& message, const Route& route) {
  if (route.preferredSource) {
    message.put(RTA_PREFSRC, *route.preferredSource);
  }
  if (route.mtu) {
    nlattr* metrics = message.beginNest(RTA_METRICS);
    message.putU32(RTAX_MTU, *route.mtu);
    message.endNest(metrics);
  }
}

RouteAnswer parseAnswer(const nlmsghdr* message, bool& unreachable) {
  const auto* header = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(message));
  const Attributes attributes(message, sizeof(rtmsg));
  unreachable = header->rtm_type != RTN_UNICAST && header->rtm_type != RTN_LOCAL &&
                header->rtm_type != RTN_BROADCAST && header->rtm_type != RTN_MULTICAST;
  RouteAnswer answer;
  answer.interface = attributes.u32(RTA_OIF).value_or(0);
  answer.gateway = attributes.address(RTA_GATEWAY);
  if (!answer.gateway) {
    answer.gateway = viaGateway(attributes);
  }
  answer.preferredSource = attributes.address(RTA_PREFSRC);
  answer.mtu = routeMtu(attributes).value_or(0);
  answer.local = header->rtm_type == RTN_LOCAL;
  answer.table = attributes.u32(RTA_TABLE).value_or(header->rtm_table);
  return answer;
}

}  // namespace

std::string Route::toString() const {
  std::string text = destination.toString();
  if (gateway) {
    text += fmt::format(" via {}", gateway->toString());
  }
  if (interface != 0) {
    text += fmt::format(" by interface {}", interface);
  }
  if (table != kMainTable) {
    text += fmt::format(" in table {}", table);
  }
  if (metric != 0) {
    text += fmt::format(" metric {}", metric);
  }
  return text;
}

RouteSocket::RouteSocket(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

RouteSocket::~RouteSocket() = default;

Result<std::unique_ptr<RouteSocket>> RouteSocket::open() {
  auto transport = Transport::open(NETLINK_ROUTE);
  if (!transport) {
    return tl::unexpected(transport.error());
  }
  return std::unique_ptr<RouteSocket>(new RouteSocket(std::move(*transport)));
}

Result<std::vector<Route>> RouteSocket::routes(const RouteFilter& filter) {
  std::vector<Route> found;
  for (const int family : {AF_INET, AF_INET6}) {
    if (filter.family && *filter.family != family) {
      continue;
    }
    Message message(RTM_GETROUTE, NLM_F_DUMP);
    auto& header = message.extraHeader<rtmsg>();
    header.rtm_family = static_cast<std::uint8_t>(family);
    header.rtm_protocol = filter.protocol.value_or(RTPROT_UNSPEC);
    if (filter.table) {
      message.putU32(RTA_TABLE, *filter.table);
    }
    if (filter.interface) {
      message.putU32(RTA_OIF, *filter.interface);
    }
    const std::size_t before = found.size();
    const auto result = transport_->query(
        message, [&] { found.resize(before); },
        [&](const nlmsghdr* answer) {
          if (const auto route = parseRoute(answer); route && matches(*route, filter)) {
            found.push_back(*route);
          }
        });
    // ENOENT: no such table yet; ENODEV: no such interface any more.
    if (!result && result.error().code != ENOENT && result.error().code != ENODEV) {
      return failDoing(result.error(), "list routes");
    }
  }
  return found;
}

Result<void> RouteSocket::changeRoute(const Route& route, std::uint16_t type, std::uint16_t flags) {
  Message message(type, flags);
  putRoute(message, route);
  putRouteDetails(message, route);
  return transport_->change(message);
}

Result<void> RouteSocket::addRoute(const Route& route) {
  const auto result = changeRoute(route, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
  if (result) {
    return {};
  }
  const std::string doing =
      fmt::format("add route {} ({})", route.toString(), nameOf(route.interface));
  if (result.error().code != EEXIST) {
    return failDoing(result.error(), doing);
  }
  RouteFilter filter;
  filter.family = route.destination.address().family();
  filter.table = route.table;
  const auto existing = routes(filter);
  if (!existing) {
    return failDoing(existing.error(), doing);
  }
  if (std::ranges::any_of(*existing, [&](const Route& r) { return sameEffect(r, route); })) {
    return {};
  }
  const auto other =
      std::ranges::find_if(*existing, [&](const Route& r) { return sameKey(r, route); });
  return tl::unexpected(Error{
      other == existing->end() ? fmt::format("{}: another route is there already", doing)
                               : fmt::format("{}: there is already {} ({}), which is not replaced",
                                             doing, other->toString(), nameOf(other->interface)),
      EEXIST});
}

Result<void> RouteSocket::replaceRoute(const Route& route) {
  const auto result = changeRoute(route, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  if (!result) {
    return failDoing(result.error(), fmt::format("replace route {} ({})", route.toString(),
                                                 nameOf(route.interface)));
  }
  return {};
}

Result<void> RouteSocket::removeRoute(const Route& route) {
  Message message(RTM_DELROUTE, 0);
  putRoute(message, route);
  const auto result = transport_->change(message);
  if (!result && result.error().code != ESRCH && result.error().code != ENODEV) {
    return failDoing(result.error(), fmt::format("remove route {} ({})", route.toString(),
                                                 nameOf(route.interface)));
  }
  return {};
}

Result<RouteAnswer> RouteSocket::lookupRoute(const IpAddress& destination, std::uint32_t mark) {
  const std::string doing = fmt::format("look up the route to {}", destination.toString());
  Message message(RTM_GETROUTE, 0);
  auto& header = message.extraHeader<rtmsg>();
  header.rtm_family = static_cast<std::uint8_t>(destination.family());
  header.rtm_dst_len = static_cast<std::uint8_t>(destination.bits());
  // Without it IPv4 answers that the table is main; IPv6 always tells, and refuses the flag.
  header.rtm_flags = destination.isV4() ? unsigned{RTM_F_LOOKUP_TABLE} : 0U;
  message.put(RTA_DST, destination);
  if (mark != 0) {
    message.putU32(RTA_MARK, mark);
  }
  RouteAnswer answer;
  bool unreachable = true;
  const auto result = transport_->query(
      message, [] {}, [&](const nlmsghdr* reply) { answer = parseAnswer(reply, unreachable); });
  if (!result) {
    return failDoing(result.error(), doing);
  }
  if (unreachable) {
    return failErrno(ENETUNREACH, "{}", doing);
  }
  if (answer.mtu == 0) {
    const auto all = links();
    if (!all) {
      return tl::unexpected(all.error());
    }
    for (const Link& link : *all) {
      answer.mtu = link.index == answer.interface ? link.mtu : answer.mtu;
    }
  }
  return answer;
}

}  // namespace adit::netlink
