// RTM_*RULE
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "netlink/route.hpp"
#include "netlink/transport.hpp"

namespace adit::netlink {
namespace {

/// The kernel reports "no suppression" as all ones.
constexpr std::uint32_t kNoSuppression = 0xffffffff;

/// Selectors that Rule does not hold.
constexpr std::array<std::uint16_t, 9> kForeignAttributes = {
    FRA_DST,      FRA_OIFNAME,     FRA_TUN_ID,      FRA_L3MDEV, FRA_UID_RANGE,
    FRA_IP_PROTO, FRA_SPORT_RANGE, FRA_DPORT_RANGE, FRA_GOTO};

Rule parseRule(const nlmsghdr* message) {
  const auto* header = static_cast<const fib_rule_hdr*>(mnl_nlmsg_get_payload(message));
  const Attributes attributes(message, sizeof(fib_rule_hdr));
  Rule rule;
  rule.family = header->family;
  rule.priority = attributes.u32(FRA_PRIORITY).value_or(0);
  rule.mark = attributes.u32(FRA_FWMARK);
  rule.markMask = attributes.u32(FRA_FWMASK).value_or(0xffffffff);
  rule.invert = (header->flags & FIB_RULE_INVERT) != 0;
  rule.table = attributes.u32(FRA_TABLE).value_or(header->table);
  const std::uint32_t suppressed = attributes.u32(FRA_SUPPRESS_PREFIXLEN).value_or(kNoSuppression);
  if (suppressed != kNoSuppression) {
    rule.suppressPrefixLength = suppressed;
  }
  if (const auto source = attributes.address(FRA_SRC)) {
    rule.source = Prefix(*source, header->src_len);
  }
  rule.inputInterface = attributes.string(FRA_IIFNAME).value_or("");
  rule.protocol = attributes.u8(FRA_PROTOCOL).value_or(0);
  rule.foreign =
      header->action != FR_ACT_TO_TBL || header->tos != 0 ||
      attributes.u32(FRA_SUPPRESS_IFGROUP).value_or(kNoSuppression) != kNoSuppression ||
      std::ranges::any_of(kForeignAttributes, [&](std::uint16_t type) {
        return type == FRA_L3MDEV ? attributes.u8(type).value_or(0) != 0 : attributes.has(type);
      });
  return rule;
}

void putRule(Message& message, const Rule& rule) {
  auto& header = message.extraHeader<fib_rule_hdr>();
  header.family = static_cast<std::uint8_t>(rule.family);
  header.action = FR_ACT_TO_TBL;
  header.table =
      rule.table < 256 ? static_cast<std::uint8_t>(rule.table) : std::uint8_t{RT_TABLE_UNSPEC};
  header.flags = rule.invert ? unsigned{FIB_RULE_INVERT} : 0U;
  message.putU32(FRA_TABLE, rule.table);
  message.putU8(FRA_PROTOCOL, rule.protocol);
  if (rule.priority != 0) {
    message.putU32(FRA_PRIORITY, rule.priority);
  }
  if (rule.mark) {
    message.putU32(FRA_FWMARK, *rule.mark);
    message.putU32(FRA_FWMASK, rule.markMask);
  }
  if (rule.source) {
    header.src_len = static_cast<std::uint8_t>(rule.source->length());
    message.put(FRA_SRC, rule.source->address());
  }
  if (rule.suppressPrefixLength) {
    message.putU32(FRA_SUPPRESS_PREFIXLEN, *rule.suppressPrefixLength);
  }
  if (!rule.inputInterface.empty()) {
    message.putString(FRA_IIFNAME, rule.inputInterface);
  }
}

}  // namespace

std::string Rule::toString() const {
  std::string text = family == AF_INET6 ? "IPv6 rule" : "IPv4 rule";
  if (priority != 0) {
    text += fmt::format(" {}", priority);
  }
  if (invert) {
    text += " not";
  }
  if (source) {
    text += fmt::format(" from {}", source->toString());
  }
  if (mark) {
    text += fmt::format(" fwmark {:#x}", *mark);
    if (markMask != 0xffffffff) {
      text += fmt::format("/{:#x}", markMask);
    }
  }
  if (!inputInterface.empty()) {
    text += fmt::format(" iif {}", inputInterface);
  }
  text += fmt::format(" table {}", table);
  if (suppressPrefixLength) {
    text += fmt::format(" suppress_prefixlength {}", *suppressPrefixLength);
  }
  return text;
}

bool Rule::sameAs(const Rule& other) const {
  Rule mine = *this;
  mine.priority = other.priority;
  mine.protocol = other.protocol;
  return !foreign && mine == other;
}

Result<std::vector<Rule>> RouteSocket::rules(int family) {
  Message message(RTM_GETRULE, NLM_F_DUMP);
  message.extraHeader<fib_rule_hdr>().family = static_cast<std::uint8_t>(family);
  std::vector<Rule> found;
  const auto result = transport_->query(
      message, [&] { found.clear(); },
      [&](const nlmsghdr* answer) {
        if (answer->nlmsg_type == RTM_NEWRULE) {
          found.push_back(parseRule(answer));
        }
      });
  if (!result) {
    return failDoing(result.error(), "list policy rules");
  }
  return found;
}

Result<void> RouteSocket::addRule(const Rule& rule) {
  // The kernel's NLM_F_EXCL compares the priority too, which it is about to choose.
  if (rule.priority == 0) {
    const auto existing = rules(rule.family);
    if (!existing) {
      return tl::unexpected(existing.error());
    }
    if (std::ranges::any_of(*existing, [&](const Rule& other) { return other.sameAs(rule); })) {
      return {};
    }
  }
  Message message(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
  putRule(message, rule);
  const auto result = transport_->change(message);
  if (!result && result.error().code != EEXIST) {
    return failDoing(result.error(), fmt::format("add {}", rule.toString()));
  }
  return {};
}

Result<void> RouteSocket::removeRule(const Rule& rule) {
  Message message(RTM_DELRULE, 0);
  putRule(message, rule);
  const auto result = transport_->change(message);
  if (!result && result.error().code != ENOENT && result.error().code != ESRCH) {
    return failDoing(result.error(), fmt::format("remove {}", rule.toString()));
  }
  return {};
}

}  // namespace adit::netlink
