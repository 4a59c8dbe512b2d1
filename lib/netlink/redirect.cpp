// RTM_NEWQDISC, RTM_NEWTFILTER
#include "netlink/redirect.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>

#include <cstring>

#include "netlink/transport.hpp"

namespace adit::netlink {
namespace {

/// The handle of an ingress qdisc, and the parent of its filters.
constexpr std::uint32_t kIngress = 0xffff0000;

template <typename Value>
std::span<const std::uint8_t> bytesOf(const Value& value) {
  return {static_cast<const std::uint8_t*>(static_cast<const void*>(&value)), sizeof(value)};
}

Message qdisc(std::uint32_t interface) {
  Message message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL);
  auto& header = message.extraHeader<tcmsg>();
  header.tcm_ifindex = static_cast<int>(interface);
  header.tcm_handle = kIngress;
  header.tcm_parent = TC_H_INGRESS;
  message.putString(TCA_KIND, "ingress");
  return message;
}

/// One key that every packet has: no bit of it is compared.
std::array<std::uint8_t, sizeof(tc_u32_sel) + sizeof(tc_u32_key)> everything() {
  tc_u32_sel selector{};
  selector.flags = TC_U32_TERMINAL;
  selector.nkeys = 1;
  std::array<std::uint8_t, sizeof(tc_u32_sel) + sizeof(tc_u32_key)> bytes{};
  std::memcpy(bytes.data(), &selector, sizeof(selector));
  return bytes;
}

Message filter(std::uint32_t from, std::uint32_t to) {
  Message message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL);
  auto& header = message.extraHeader<tcmsg>();
  header.tcm_ifindex = static_cast<int>(from);
  header.tcm_parent = kIngress;
  header.tcm_info = TC_H_MAKE(1U << 16, htons(ETH_P_ALL));
  message.putString(TCA_KIND, "u32");
  nlattr* options = message.beginNest(TCA_OPTIONS);
  message.put(TCA_U32_SEL, everything());
  nlattr* actions = message.beginNest(TCA_U32_ACT);
  nlattr* action = message.beginNest(1);
  message.putString(TCA_ACT_KIND, "mirred");
  nlattr* parameters = message.beginNest(TCA_ACT_OPTIONS);
  tc_mirred redirect{};
  redirect.action = TC_ACT_STOLEN;
  redirect.eaction = TCA_INGRESS_REDIR;
  redirect.ifindex = to;
  message.put(TCA_MIRRED_PARMS, bytesOf(redirect));
  message.endNest(parameters);
  message.endNest(action);
  message.endNest(actions);
  message.endNest(options);
  return message;
}

}  // namespace

Result<void> redirectIncoming(std::uint32_t from, std::uint32_t to) {
  constexpr std::string_view kDoing = "redirect packets from one interface to another";
  auto transport = Transport::open(NETLINK_ROUTE);
  if (!transport) {
    return failDoing(transport.error(), kDoing);
  }
  for (Message message : {qdisc(from), filter(from, to)}) {
    if (const auto done = (*transport)->change(message); !done) {
      return failDoing(done.error(), kDoing);
    }
  }
  return {};
}

}  // namespace adit::netlink
