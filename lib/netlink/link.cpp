// RTM_*LINK
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>

#include "netlink/route.hpp"
#include "netlink/transport.hpp"

namespace adit::netlink {
namespace {

constexpr std::uint32_t kSkipStatistics = 1U << 3;  // RTEXT_FILTER_SKIP_STATS

Link parseLink(const nlmsghdr* message) {
  const auto* header = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message));
  const Attributes attributes(message, sizeof(ifinfomsg));
  Link link;
  link.index = static_cast<std::uint32_t>(header->ifi_index);
  link.name = attributes.string(IFLA_IFNAME).value_or("");
  link.mtu = attributes.u32(IFLA_MTU).value_or(0);
  link.up = (header->ifi_flags & IFF_UP) != 0;
  link.running = (header->ifi_flags & IFF_RUNNING) != 0;
  if (const auto info = attributes.nest(IFLA_LINKINFO)) {
    link.kind = info->string(IFLA_INFO_KIND).value_or("");
  }
  return link;
}

}  // namespace

Result<std::vector<Link>> RouteSocket::links() {
  Message message(RTM_GETLINK, NLM_F_DUMP);
  message.extraHeader<ifinfomsg>();
  message.putU32(IFLA_EXT_MASK, kSkipStatistics);
  std::vector<Link> found;
  const auto result = transport_->query(
      message, [&] { found.clear(); },
      [&](const nlmsghdr* answer) {
        if (answer->nlmsg_type == RTM_NEWLINK) {
          found.push_back(parseLink(answer));
        }
      });
  if (!result) {
    return failDoing(result.error(), "list interfaces");
  }
  return found;
}

Result<std::optional<Link>> RouteSocket::findLink(std::string_view name) {
  std::optional<Link> found;
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return found;
  }
  Message message(RTM_GETLINK, 0);
  message.extraHeader<ifinfomsg>();
  message.putString(IFLA_IFNAME, name);
  message.putU32(IFLA_EXT_MASK, kSkipStatistics);
  const auto result = transport_->query(
      message, [] {}, [&](const nlmsghdr* answer) { found = parseLink(answer); });
  if (!result && result.error().code != ENODEV) {
    return failDoing(result.error(), fmt::format("look up interface {}", name));
  }
  return found;
}

Result<void> RouteSocket::createLink(std::string_view name, std::string_view kind) {
  const std::string doing = fmt::format("create interface {} of type {}", name, kind);
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return fail("{}: a name has 1 to {} bytes", doing, IFNAMSIZ - 1);
  }
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.extraHeader<ifinfomsg>();
  message.putString(IFLA_IFNAME, name);
  nlattr* info = message.beginNest(IFLA_LINKINFO);
  message.putString(IFLA_INFO_KIND, kind);
  message.endNest(info);
  if (const auto result = transport_->change(message); !result) {
    return failDoing(result.error(), doing);
  }
  return {};
}

Result<void> RouteSocket::setLinkUp(std::uint32_t interface, bool up) {
  Message message(RTM_NEWLINK, 0);
  auto& header = message.extraHeader<ifinfomsg>();
  header.ifi_index = static_cast<int>(interface);
  header.ifi_change = IFF_UP;
  header.ifi_flags = up ? unsigned{IFF_UP} : 0U;
  if (const auto result = transport_->change(message); !result) {
    return failDoing(result.error(),
                     fmt::format("set {} {}", nameOf(interface), up ? "up" : "down"));
  }
  return {};
}

Result<void> RouteSocket::setLinkSilent(std::uint32_t interface) {
  Message flags(RTM_NEWLINK, 0);
  auto& header = flags.extraHeader<ifinfomsg>();
  header.ifi_index = static_cast<int>(interface);
  header.ifi_change = IFF_MULTICAST;
  if (const auto result = transport_->change(flags); !result) {
    return failDoing(result.error(), fmt::format("turn multicast off on {}", nameOf(interface)));
  }
  Message addresses(RTM_NEWLINK, 0);
  addresses.extraHeader<ifinfomsg>().ifi_index = static_cast<int>(interface);
  nlattr* families = addresses.beginNest(IFLA_AF_SPEC);
  nlattr* ipv6 = addresses.beginNest(AF_INET6);
  addresses.putU8(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
  addresses.endNest(ipv6);
  addresses.endNest(families);
  const auto result = transport_->change(addresses);
  const bool withoutIpv6 =
      !result && (result.error().code == EAFNOSUPPORT || result.error().code == EOPNOTSUPP);
  if (!result && !withoutIpv6) {
    return failDoing(result.error(),
                     fmt::format("turn automatic addresses off on {}", nameOf(interface)));
  }
  return {};
}

Result<void> RouteSocket::setLinkMtu(std::uint32_t interface, std::uint32_t mtu) {
  Message message(RTM_NEWLINK, 0);
  message.extraHeader<ifinfomsg>().ifi_index = static_cast<int>(interface);
  message.putU32(IFLA_MTU, mtu);
  if (const auto result = transport_->change(message); !result) {
    return failDoing(result.error(), fmt::format("set MTU {} on {}", mtu, nameOf(interface)));
  }
  return {};
}

Result<void> RouteSocket::deleteLink(std::uint32_t interface) {
  const std::string doing = fmt::format("delete {}", nameOf(interface));
  Message message(RTM_DELLINK, 0);
  message.extraHeader<ifinfomsg>().ifi_index = static_cast<int>(interface);
  const auto result = transport_->change(message);
  if (!result && result.error().code != ENODEV) {
    return failDoing(result.error(), doing);
  }
  return {};
}

std::string RouteSocket::nameOf(std::uint32_t interface) {
  Message message(RTM_GETLINK, 0);
  message.extraHeader<ifinfomsg>().ifi_index = static_cast<int>(interface);
  std::string name = fmt::format("interface {}", interface);
  // A name only for a message: without an answer the number has to do.
  static_cast<void>(transport_->query(
      message, [] {}, [&](const nlmsghdr* answer) { name = parseLink(answer).name; }));
  return name;
}

}  // namespace adit::netlink
