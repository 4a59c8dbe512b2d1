// What stands between a client and a mapped service.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

/// Clients send several packets before they give up.
constexpr std::uint64_t kSomePackets = 3;
constexpr double kNearlyFull = 0.95;

struct Leg {
  std::string_view name;
  std::string_view id;
  std::string_view sentence;
  std::string_view remedy;
};

constexpr auto kLegs = std::to_array<Leg>({
    {"service", "map-service-refused", "the target refuses: nothing listens there",
     "on the target: start the service, or let it listen on the tunnel's address, not on loopback "
     "alone (`ss -ltnup`)"},
    {"reply path", "map-no-reply-path", "the target gets clients' packets and cannot answer them",
     "on the NAS: AllowedIPs = 0.0.0.0/0, ::/0 and Table = reply, then `adit reload`; or Source = "
     "masquerade in the [Map] here"},
    {"route", "map-no-route", "the NAS has no way to the target, or forbids it",
     "on the NAS: `ip route get TARGET`, `sysctl net.ipv4.ip_forward`, and its firewall"},
    {"target", "map-target-silent", "the target does not answer",
     "on the NAS: `adit doctor` names a firewall or Expose that is in the way"},
    {"tunnel", "map-tunnel-down", "there is no session with the peer behind it",
     "the findings about handshakes come first"},
    {"rules", "map-not-loaded", "it is not in the kernel's rules", "`adit reload`"},
});

void judgeLeg(const TunnelFacts& tunnel, const MapFacts& map, Findings& out) {
  const auto leg = std::ranges::find(kLegs, map.leg, &Leg::name);
  if (leg == kLegs.end()) return;
  out.push_back({std::string(leg->id), Severity::Fault,
                 fmt::format("{}: mapping {} to {} does not work: {}", tunnel.name, map.listen,
                             map.target, leg->sentence),
                 map.detail, std::string(leg->remedy)});
}

void judgeMap(const TunnelFacts& tunnel, const MapFacts& map, Findings& out) {
  if (!map.active) {
    out.push_back({"map-not-loaded", Severity::Fault,
                   fmt::format("{}: mapping {} is not active", tunnel.name, map.listen),
                   map.reason.empty() ? "it is not in the kernel's rules" : map.reason,
                   fmt::format("`adit reload {}`; `adit status {}` tells the reason", tunnel.name,
                               tunnel.name)});
    return;
  }
  if (!map.leg.empty()) return judgeLeg(tunnel, map, out);
  // Many a service by UDP takes and never answers.
  if (map.listen.starts_with("tcp/") && map.packetsIn >= kSomePackets && map.packetsOut == 0) {
    out.push_back(
        {"map-no-answer", Severity::Fault,
         fmt::format("{}: clients of mapping {} send, and nothing comes back", tunnel.name,
                     map.listen),
         fmt::format("{} packets to {}, 0 back since the daemon started (connection "
                     "tracking)",
                     map.packetsIn, map.target),
         fmt::format("`adit doctor --probe {}` names the leg: reply path, service or firewall",
                     tunnel.name)});
  }
}

}  // namespace

void judgeFirewall(const TunnelFacts& tunnel, Findings& out) {
  for (const FirewallDrop& drop : tunnel.firewall) {
    out.push_back({"firewall-drops", Severity::Fault,
                   fmt::format("{}: another firewall is in the way: {}", tunnel.name, drop.what),
                   "the rules as they are now (nft list ruleset)", fmt::format("`{}`", drop.fix)});
  }
}

void judgeMappings(const TunnelFacts& tunnel, Findings& out) {
  for (const MapFacts& map : tunnel.maps) {
    // What the firewall does to all of them is told once.
    if (map.leg == "firewall") continue;
    judgeMap(tunnel, map, out);
  }
}

void judgeServices(const TunnelFacts& tunnel, Findings& out) {
  for (const ServiceFacts& service : tunnel.services) {
    if (service.listening) continue;
    out.push_back(
        {"service-not-listening", Severity::Fault,
         service.loopback.empty()
             ? fmt::format("{}: nothing listens on {} of this host, which is mapped", tunnel.name,
                           service.port)
             : fmt::format("{}: the service on {} listens on {} alone, where mapped clients do "
                           "not reach it",
                           tunnel.name, service.port, service.loopback),
         "the list of sockets (/proc/net)",
         "start the service, or let it listen on the tunnel's address or on all (`ss -ltnup`)"});
  }
}

void judgeConntrack(const MachineFacts& machine, Findings& out) {
  if (!machine.conntrack) return;
  const Conntrack& table = *machine.conntrack;
  const bool full = table.maximum > 0 && static_cast<double>(table.count) >=
                                             kNearlyFull * static_cast<double>(table.maximum);
  if (!full && table.drops == 0) return;
  out.push_back(
      {"conntrack-full", full ? Severity::Fault : Severity::Slow,
       full ? "the connection table is full: new connections are dropped"
            : "the connection table has been full: connections were dropped",
       fmt::format("{} of {} entries; {} dropped since boot (/proc/net/stat/nf_conntrack)",
                   table.count, table.maximum, table.drops),
       fmt::format("`sysctl -w net.netfilter.nf_conntrack_max={}`, or Conntrack = auto in [Tune]",
                   std::max<std::uint64_t>(table.maximum, 1) * 2)});
}

void passWarnings(const TunnelFacts& tunnel, Findings& out) {
  for (const std::string& warning : tunnel.warnings) {
    out.push_back({"daemon-warning", Severity::Fault, fmt::format("{}: {}", tunnel.name, warning),
                   "the daemon's own warning", fmt::format("`adit status {}`", tunnel.name)});
  }
}

}  // namespace adit::doctor
