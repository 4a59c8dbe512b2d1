// RTM_*ADDR
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "netlink/route.hpp"
#include "netlink/transport.hpp"

namespace adit::netlink {
namespace {

Message addressMessage(std::uint16_t type, std::uint16_t flags, std::uint32_t interface,
                       const InterfaceAddress& address) {
  Message message(type, flags);
  auto& header = message.extraHeader<ifaddrmsg>();
  header.ifa_family = static_cast<std::uint8_t>(address.address.family());
  header.ifa_prefixlen = static_cast<std::uint8_t>(address.length);
  header.ifa_index = interface;
  header.ifa_scope = address.address.isLinkLocalV6() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  message.put(IFA_LOCAL, address.address);
  message.put(IFA_ADDRESS, address.address);
  return message;
}

}  // namespace

Result<std::vector<InterfaceAddress>> RouteSocket::addresses(std::uint32_t interface) {
  std::vector<InterfaceAddress> found;
  for (const int family : {AF_INET, AF_INET6}) {
    Message message(RTM_GETADDR, NLM_F_DUMP);
    auto& header = message.extraHeader<ifaddrmsg>();
    header.ifa_family = static_cast<std::uint8_t>(family);
    header.ifa_index = interface;
    const std::size_t before = found.size();
    const auto result = transport_->query(
        message, [&] { found.resize(before); },
        [&](const nlmsghdr* answer) {
          const auto* entry = static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(answer));
          if (answer->nlmsg_type != RTM_NEWADDR || entry->ifa_index != interface) {
            return;
          }
          const Attributes attributes(answer, sizeof(ifaddrmsg));
          // IFA_ADDRESS is the other end on point-to-point interfaces; IPv6 has IFA_LOCAL only
          // there.
          auto address = attributes.address(IFA_LOCAL);
          if (!address) {
            address = attributes.address(IFA_ADDRESS);
          }
          if (address) {
            found.push_back({*address, entry->ifa_prefixlen});
          }
        });
    // ENODEV: the interface has gone, and its addresses with it.
    if (!result && result.error().code != ENODEV) {
      return failDoing(result.error(), fmt::format("list addresses of {}", nameOf(interface)));
    }
  }
  return found;
}

Result<void> RouteSocket::addAddress(std::uint32_t interface, const InterfaceAddress& address) {
  Message message = addressMessage(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, interface, address);
  if (address.address.isV6()) {
    message.putU32(IFA_FLAGS, IFA_F_NODAD);
  }
  const auto result = transport_->change(message);
  if (!result && result.error().code != EEXIST) {
    return failDoing(result.error(),
                     fmt::format("add address {} to {}", address.toString(), nameOf(interface)));
  }
  return {};
}

Result<void> RouteSocket::removeAddress(std::uint32_t interface, const InterfaceAddress& address) {
  Message message = addressMessage(RTM_DELADDR, 0, interface, address);
  const auto result = transport_->change(message);
  if (!result && result.error().code != EADDRNOTAVAIL && result.error().code != ENODEV) {
    return failDoing(result.error(), fmt::format("remove address {} from {}", address.toString(),
                                                 nameOf(interface)));
  }
  return {};
}

}  // namespace adit::netlink
