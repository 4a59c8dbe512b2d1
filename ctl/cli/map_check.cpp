#include "cli/map_check.hpp"

#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/firewall_fixes.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/probe.hpp"
#include "nat/obstacles.hpp"
#include "netlink/route.hpp"

namespace adit::cli {
namespace {

using control::MapSnapshot;
using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kPatience{1500};
/// Networks for tests, whose addresses nobody has (RFC 2544, RFC 5180).
constexpr const char* kStrangerV4 = "198.18.0.1";
constexpr const char* kStrangerV6 = "2001:2::1";

MapLeg found(const nat::Mapping& mapping, std::string_view leg, std::string detail) {
  return {mapping.listenText(), std::string(leg), std::move(detail)};
}

std::optional<IpAddress> ownAddress(const Machine& machine, bool v6) {
  for (const IpAddress& address : machine.desired.ruleset.tunnelAddresses) {
    if (address.isV6() == v6) return address;
  }
  return std::nullopt;
}

/// AllowedIPs hold it as one of a network, not as an address of the peer itself.
bool isBehindPeer(const Machine& machine, const IpAddress& target) {
  const Prefix* longest = nullptr;
  for (const config::PeerConfig& peer : machine.config.peers) {
    for (const Prefix& prefix : peer.allowedIps) {
      if (prefix.contains(target) && (longest == nullptr || prefix.length() > longest->length())) {
        longest = &prefix;
      }
    }
  }
  return longest != nullptr && longest->length() < target.bits();
}

/// The service does not answer a stranger. Does it answer the server itself?
MapLeg silent(const Machine& machine, const nat::Mapping& mapping, const Endpoint& target) {
  const std::string& interface = machine.named.interface;
  const auto own = ownAddress(machine, target.address.isV6());
  const bool preserve = mapping.source == nat::SourceMode::Preserve;
  const auto echo = own && preserve ? probe(interface, mapping.protocol, *own, target, kPatience)
                                    : Result<Echo>(Echo::Silent);
  if (echo && *echo != Echo::Silent) {
    return found(
        mapping, "reply path",
        fmt::format("{} answers this server, but not clients of other addresses: on the NAS "
                    "AllowedIPs = 0.0.0.0/0, ::/0 and Table = reply are missing, or a host "
                    "behind it has another gateway (Source = masquerade helps in any case)",
                    target.toString()));
  }
  return found(
      mapping, "target",
      fmt::format("{} does not answer: the NAS drops the packets (its firewall, or Expose = "
                  "maps without this target), or the host is off{}",
                  target.toString(),
                  isBehindPeer(machine, target.address)
                      ? ", or its gateway is another router than the NAS: then Source = masquerade "
                        "in the NAS's own [Map] makes it answer"
                      : ""));
}

/// An address of the public side that the mapping is about.
std::optional<IpAddress> publicAddress(const nat::RulesetSpec& spec, const nat::Mapping& mapping,
                                       bool v6) {
  if (mapping.listenAddress || spec.publicInterfaces.empty()) return mapping.listenAddress;
  auto routing = netlink::RouteSocket::open();
  if (!routing) return std::nullopt;
  const auto addresses =
      (*routing)->addresses(::if_nametoindex(spec.publicInterfaces.front().c_str()));
  for (const InterfaceAddress& own : addresses.value_or(std::vector<InterfaceAddress>{})) {
    if (own.address.isV6() == v6 && !own.address.isLinkLocalV6()) return own.address;
  }
  return std::nullopt;
}

bool letsIn(const nat::Mapping& mapping, const IpAddress& client) {
  return mapping.allow.empty() || std::ranges::any_of(mapping.allow, [&](const Prefix& network) {
           return network.contains(client);
         });
}

/// From the public NIC on, as a client's packet. An error where that cannot be tried.
Result<Journey> fromOutside(const Machine& machine, const nat::Mapping& mapping,
                            const Endpoint& target) {
  const nat::RulesetSpec& spec = machine.desired.ruleset;
  const bool v6 = target.address.isV6();
  const IpAddress stranger = *IpAddress::parse(v6 ? kStrangerV6 : kStrangerV4);
  const auto address = publicAddress(spec, mapping, v6);
  if (!address) return fail("this server has no public IPv{} address", v6 ? 6 : 4);
  if (!letsIn(mapping, stranger)) return fail("Allow lets no stranger in");
  return travel({.publicInterface = spec.publicInterfaces.front(),
                 .listen = {*address, mapping.firstPort, 0},
                 .tunnel = machine.named.interface,
                 .target = target},
                mapping.protocol, stranger, kPatience);
}

/// From the tunnel on: below the rules of this machine.
Result<Echo> fromTunnel(const Machine& machine, const nat::Mapping& mapping,
                        const Endpoint& target) {
  const bool v6 = target.address.isV6();
  const auto own = ownAddress(machine, v6);
  const IpAddress stranger = *IpAddress::parse(v6 ? kStrangerV6 : kStrangerV4);
  const IpAddress source = mapping.source == nat::SourceMode::Masquerade && own ? *own : stranger;
  return probe(machine.named.interface, mapping.protocol, source, target, kPatience);
}

/// What this machine itself does to the packet or to its answer; empty where it does no harm.
std::string harmHere(const Machine& machine, const Journey& journey) {
  const std::string& nic = machine.desired.ruleset.publicInterfaces.front();
  if (!journey.intoTunnel) {
    return fmt::format(
        "a packet that comes in by {0} does not go on into {1}: rules of another program (`nft "
        "list ruleset`), a route, or the reverse path filter of {0} drop it",
        nic, machine.named.interface);
  }
  return journey.answerOutOfTunnel
             ? fmt::format(
                   "the answer comes out of {} and does not leave by {}: rules of another "
                   "program, or a route, drop it here",
                   machine.named.interface, nic)
             : std::string();
}

MapLeg judged(const Machine& machine, const nat::Mapping& mapping, const Endpoint& target,
              Echo echo) {
  switch (echo) {
    case Echo::Answered:
      return found(mapping, "", fmt::format("{} answers", target.toString()));
    case Echo::Refused:
      return found(mapping, "service",
                   fmt::format("{} refuses: nothing listens on that port there, or only on another "
                               "address",
                               target.toString()));
    case Echo::Unreachable:
      return found(mapping, "route",
                   fmt::format("the NAS has no way to {}, or forbids it", target.toString()));
    case Echo::Silent:
      break;
  }
  if (mapping.protocol == nat::Protocol::Udp) {
    return found(mapping, "",
                 fmt::format("{} does not refuse; whether a UDP service answers, its own clients "
                             "know",
                             target.toString()));
  }
  return silent(machine, mapping, target);
}

MapLeg tried(const Machine& machine, const nat::Mapping& mapping, const Endpoint& target) {
  const auto journey = fromOutside(machine, mapping, target);
  if (journey) {
    const bool lost = journey->echo == Echo::Silent;
    const std::string harm = lost ? harmHere(machine, *journey) : std::string();
    return harm.empty() ? judged(machine, mapping, target, journey->echo)
                        : found(mapping, "server", harm);
  }
  const auto echo = fromTunnel(machine, mapping, target);
  if (!echo) return found(mapping, "probe", echo.error().message);
  MapLeg leg = judged(machine, mapping, target, *echo);
  leg.detail += fmt::format("; tried from the tunnel on alone: {}", journey.error().message);
  return leg;
}

MapLeg checked(const Machine& machine, const nat::Mapping& mapping, const MapSnapshot& state,
               const std::vector<nat::Obstacle>& obstacles) {
  if (!state.active) return found(mapping, "rules", state.reason);
  if (!obstacles.empty()) return found(mapping, "firewall", obstacles.front().toString());
  if (!state.reason.empty()) return found(mapping, "tunnel", state.reason);
  MapLeg finding;
  for (const auto& target : {mapping.targetV4, mapping.targetV6}) {
    if (!target) continue;
    finding = tried(machine, mapping, Endpoint{*target, mapping.targetPort, 0});
    if (!finding.leg.empty()) break;
  }
  if (finding.leg.empty() && state.usage && state.usage->connections == 0) {
    finding.detail += "; no client has come yet";
  }
  return finding;
}

bool agreed(const nat::Obstacle& obstacle) {
  return confirmed(fmt::format("{}\nRun: {}\n?", obstacle.what, obstacle.fix));
}

/// Those that are left.
std::vector<nat::Obstacle> fixAll(const MapCheckArguments& arguments, const Machine& machine,
                                  const std::vector<nat::Obstacle>& obstacles) {
  for (const nat::Obstacle& obstacle : obstacles) {
    if (!arguments.yes && !agreed(obstacle)) continue;
    if (const auto fixed = applyFix(machine.named.interface, obstacle); !fixed) {
      complain(fixed.error());
    }
  }
  return nat::obstaclesNow(machine.desired.ruleset).value_or(obstacles);
}

Json toJson(const std::vector<MapLeg>& findings, const std::vector<nat::Obstacle>& obstacles,
            bool ok) {
  Json json{{"ok", ok}, {"maps", Json::array()}, {"obstacles", Json::array()}};
  for (const MapLeg& finding : findings) {
    Json entry{{"listen", finding.listen}, {"ok", finding.leg.empty()}};
    if (!finding.leg.empty()) entry["leg"] = finding.leg;
    entry["detail"] = finding.detail;
    json["maps"].push_back(std::move(entry));
  }
  for (const nat::Obstacle& obstacle : obstacles) {
    json["obstacles"].push_back({{"what", obstacle.what}, {"fix", obstacle.fix}});
  }
  return json;
}

std::string toText(const std::vector<MapLeg>& findings,
                   const std::vector<nat::Obstacle>& obstacles) {
  std::string text;
  for (const MapLeg& finding : findings) {
    text += fmt::format("{}: {}{}\n", finding.listen,
                        finding.leg.empty() ? "ok: " : finding.leg + ": ", finding.detail);
  }
  for (const nat::Obstacle& obstacle : obstacles) {
    text += fmt::format("{}\n", obstacle.toString());
  }
  return text;
}

}  // namespace

std::vector<MapLeg> checkMaps(const Machine& machine, const std::string& wanted,
                              const std::vector<nat::Obstacle>& obstacles) {
  std::vector<MapLeg> findings;
  for (const nat::Mapping& mapping : machine.desired.maps.translated) {
    const std::string listen = mapping.listenText();
    const auto state = std::ranges::find(machine.view.device.maps, listen, &MapSnapshot::listen);
    if (!wanted.empty() && wanted != listen) continue;
    findings.push_back(state == machine.view.device.maps.end()
                           ? found(mapping, "rules", "not loaded: `adit reload` applies the file")
                           : checked(machine, mapping, *state, obstacles));
  }
  return findings;
}

int mapCheck(const MapCheckArguments& arguments) {
  if (::geteuid() != 0) return complain("map check needs root: it sends packets of its own");
  const auto machine = machineOf(arguments.name);
  if (!machine) return complain(machine.error());
  auto obstacles = nat::obstaclesNow(machine->desired.ruleset);
  if (!obstacles) return complain(obstacles.error());
  if (arguments.fix) *obstacles = fixAll(arguments, *machine, *obstacles);
  const std::vector<MapLeg> findings = checkMaps(*machine, arguments.listen, *obstacles);
  if (!arguments.listen.empty() && findings.empty()) {
    return complain(fmt::format("there is no mapping {}", arguments.listen));
  }
  const bool ok = obstacles->empty() && std::ranges::all_of(findings, [](const MapLeg& finding) {
                    return finding.leg.empty();
                  });
  const std::string text = arguments.json ? toJson(findings, *obstacles, ok).dump(2) + '\n'
                                          : toText(findings, *obstacles);
  return print(text) == kSuccess && ok ? kSuccess : kFailure;
}

}  // namespace adit::cli
