#include "nat/prerequisites.hpp"

#include <net/if.h>

#include <memory>
#include <string_view>

namespace adit::nat {
namespace {

using if_nameindex_t = struct if_nameindex;

SysctlNeed always(std::string path, std::string value, std::string why) {
  return {std::move(path), std::move(value), {}, std::move(why), true};
}

bool anyTarget(const RulesetSpec& spec, bool v6) {
  for (const Mapping& mapping : spec.mappings) {
    if (v6 ? mapping.targetV6.has_value() : mapping.targetV4.has_value()) {
      return true;
    }
  }
  return false;
}

/// All but loopback.
std::vector<std::string> interfacesOfHost() {
  const std::unique_ptr<if_nameindex_t, void (*)(if_nameindex_t*)> list(::if_nameindex(),
                                                                        ::if_freenameindex);
  std::vector<std::string> names;
  for (const if_nameindex_t* entry = list.get(); entry != nullptr && entry->if_name != nullptr;
       ++entry) {
    if (std::string_view(entry->if_name) != "lo") {
      names.emplace_back(entry->if_name);
    }
  }
  return names;
}

void addIpv6Forwarding(const std::vector<std::string>& interfaces, bool required,
                       std::vector<SysctlNeed>& needs) {
  for (const std::string& name : interfaces) {
    needs.push_back({"net/ipv6/conf/" + name + "/accept_ra",
                     "2",
                     {"1"},
                     "IPv6 forwarding would make " + name +
                         " forget the default route that its router advertises",
                     false});
  }
  needs.push_back({"net/ipv6/conf/all/forwarding",
                   "1",
                   {},
                   "the kernel forwards IPv6 only where it is on for all interfaces",
                   required});
}

}  // namespace

std::vector<SysctlNeed> neededSysctls(const RulesetSpec& spec,
                                      const std::vector<std::string>& allInterfaces) {
  std::vector<SysctlNeed> needs;
  const std::string tunnel = "net/ipv4/conf/" + spec.interface;
  if (anyTarget(spec, false)) {
    for (const std::string& name : spec.publicInterfaces) {
      needs.push_back(always("net/ipv4/conf/" + name + "/forwarding", "1",
                             "packets to mapped ports go on from " + name + " into the tunnel"));
    }
    needs.push_back(always(tunnel + "/forwarding", "1",
                           "replies of mapped ports go on from the tunnel to the client"));
  }
  if (spec.forwards) {
    needs.push_back(always("net/ipv4/ip_forward", "1",
                           "hosts and containers behind this one are reached by the tunnel"));
  }
  if (anyTarget(spec, true) || spec.forwards) {
    addIpv6Forwarding(allInterfaces.empty() ? interfacesOfHost() : allInterfaces,
                      anyTarget(spec, true), needs);
  }
  if (spec.reply) {
    needs.push_back(always(tunnel + "/rp_filter", "2",
                           "clients of mapped ports have addresses that the main routing table "
                           "would not send into the tunnel"));
  }
  if (spec.guard) {
    needs.push_back(always("net/ipv4/conf/all/src_valid_mark", "1",
                           "strict reverse path filtering has to look at the tunnel's mark"));
  }
  if (!spec.mappings.empty()) {
    needs.push_back({"net/netfilter/nf_conntrack_acct",
                     "1",
                     {},
                     "connection tracking counts what each mapping carries",
                     false});
  }
  return needs;
}

}  // namespace adit::nat
