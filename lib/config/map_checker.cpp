// The mappings of a configuration: against each other, the peers and the tunnel itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "config/checker.hpp"
#include "config/mapping_text.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

constexpr std::uint16_t kFtpPort = 21;
constexpr unsigned kLastPort = 65535;

bool matchesTcp(const MapConfig& map) {
  return map.protocol != MapConfig::Protocol::Udp;
}
bool matchesUdp(const MapConfig& map) {
  return map.protocol != MapConfig::Protocol::Tcp;
}
unsigned portCount(const MapConfig& map) {
  return map.lastPort - map.firstPort + 1U;
}

/// Ports that a mapping takes already, by first port; disjoint.
struct Taken {
  std::uint16_t last;
  const MapDraft* map;
};
using TakenPorts = std::map<std::uint16_t, Taken>;

const MapDraft* findOverlap(const TakenPorts& taken, const MapConfig& map) {
  auto next = taken.upper_bound(map.lastPort);
  if (next == taken.begin()) return nullptr;
  --next;
  return next->second.last >= map.firstPort ? next->second.map : nullptr;
}

/// All mappings of one protocol. A mapping without an address is on every one.
class ProtocolPortsInUse {
 public:
  /// The earlier mapping that `draft` overlaps, or null after taking its ports.
  const MapDraft* take(const MapDraft& draft) {
    const MapConfig& map = draft.map;
    if (const MapDraft* other = findOverlap(everywhere_, map)) return other;
    if (!map.listenAddress) {
      for (const auto& [address, taken] : byAddress_) {
        if (const MapDraft* other = findOverlap(taken, map)) return other;
      }
    } else if (const MapDraft* other = findOverlap(byAddress_[*map.listenAddress], map)) {
      return other;
    }
    TakenPorts& mine = map.listenAddress ? byAddress_[*map.listenAddress] : everywhere_;
    mine.emplace(map.firstPort, Taken{map.lastPort, &draft});
    return nullptr;
  }

 private:
  TakenPorts everywhere_;
  std::map<IpAddress, TakenPorts> byAddress_;
};

void checkOverlaps(const Draft& draft, Diagnostics& diagnostics) {
  ProtocolPortsInUse tcp;
  ProtocolPortsInUse udp;
  for (const MapDraft& map : draft.maps) {
    if (!map.hasListen) continue;
    const MapDraft* other = matchesTcp(map.map) ? tcp.take(map) : nullptr;
    if (other == nullptr && matchesUdp(map.map)) {
      other = udp.take(map);
    }
    if (other != nullptr) {
      const Location here = map.keys.of("Listen");
      diagnostics.error(
          here, fmt::format("{} overlaps {} of {}; a port leads to one target", listenText(map.map),
                            listenText(other->map), reference(other->keys.of("Listen"), here)));
    }
  }
}

void checkRequiredKeys(const MapDraft& map, Diagnostics& diagnostics) {
  if (map.keys.damaged) return;
  for (const std::string_view name : {"Listen", "To"}) {
    if (!map.keys.has(name)) {
      diagnostics.error(map.keys.header,
                        fmt::format("[Map] has no {}; it needs Listen and To", name));
    }
  }
}

/// The data plane's own port is left out of every range, but a mapping of nothing else is a slip.
void checkTunnelPort(const Draft& draft, const MapDraft& map, Diagnostics& diagnostics) {
  const auto& port = draft.interface.listenPort;
  if (!port || !matchesUdp(map.map) || map.map.firstPort != *port || map.map.lastPort != *port) {
    return;
  }
  const Location here = map.keys.of("Listen");
  diagnostics.error(here,
                    fmt::format("udp/{} is the tunnel's own port (ListenPort, {}); choose "
                                "another",
                                *port, reference(draft.interfaceKeys.of("ListenPort"), here)));
}

void checkPorts(MapDraft& draft, Diagnostics& diagnostics) {
  MapConfig& map = draft.map;
  const auto& wanted = draft.target.ports;
  const Location here = draft.keys.of("To");
  map.targetPort = wanted ? wanted->first : map.firstPort;
  if (wanted && wanted->size() > 1 && wanted->size() != portCount(map)) {
    diagnostics.error(here, fmt::format("{} target ports for {} listening ones; write the first "
                                        "target port alone",
                                        wanted->size(), portCount(map)));
  } else if (const unsigned last = map.targetPort + portCount(map) - 1; last > kLastPort) {
    diagnostics.error(
        here, fmt::format("the target range {}-{} passes {}; begin at {} or below", map.targetPort,
                          last, kLastPort, kLastPort - portCount(map) + 1));
  }
}

/// A server that announces ports, as passive FTP does, announces its own numbers.
void checkShift(const Draft& draft, const MapDraft& map, Diagnostics& diagnostics) {
  const MapConfig& m = map.map;
  const bool fits = m.targetPort + portCount(m) - 1 <= kLastPort;
  if (!matchesTcp(m) || portCount(m) == 1 || m.targetPort == m.firstPort || !fits) return;
  const bool ftp = std::ranges::any_of(draft.maps, [&](const MapDraft& other) {
    return other.hasListen && other.map.targetHost == m.targetHost && matchesTcp(other.map) &&
           other.map.targetPort == kFtpPort;
  });
  diagnostics.warning(map.keys.of("To"),
                      fmt::format("the range is shifted from {} to {}; {}, so map it to equal "
                                  "numbers",
                                  m.firstPort, m.targetPort,
                                  ftp ? "the FTP server behind it announces its own numbers in "
                                        "passive mode"
                                      : "a service that announces its ports, such as passive FTP, "
                                        "announces its own numbers"));
}

PeerDraft* findPeer(Draft& draft, std::string_view name) {
  const auto found = std::ranges::find_if(draft.peers, [&](const PeerDraft& peer) {
    return !peer.peer.name.empty() && equalIgnoringCase(peer.peer.name, name);
  });
  return found == draft.peers.end() ? nullptr : &*found;
}

std::string unknownPeer(const Draft& draft, std::string_view name) {
  std::vector<std::string_view> names;
  for (const PeerDraft& peer : draft.peers) {
    if (!peer.peer.name.empty()) names.push_back(peer.peer.name);
  }
  const std::string_view close = closest(name, names);
  std::string hint = "; write the Name of a [Peer], or an address";
  if (!close.empty()) {
    hint = isShowable(close) ? fmt::format("; did you mean {}?", close)
                             : std::string("; one with a similar name exists");
  }
  return fmt::format("no peer is called {}{}", shown(name, "this"), hint);
}

/// Takes the first address of each family that `peer` has to itself.
void resolvePeerTarget(MapDraft& map, const PeerDraft& peer, Diagnostics& diagnostics) {
  const auto& listen = map.map.listenAddress;
  for (const Prefix& prefix : peer.peer.allowedIps) {
    const IpAddress& address = prefix.address();
    const bool single = prefix.length() == address.bits();
    const bool fits = !listen || listen->family() == address.family();
    const bool have = std::ranges::find(map.map.targets, address.family(), &IpAddress::family) !=
                      map.map.targets.end();
    if (single && fits && !have) {
      map.map.targets.push_back(address);
    }
  }
  const bool sound = peer.keys.has("AllowedIPs") ? !peer.prefixLocations.empty() : true;
  if (map.map.targets.empty() && sound && !peer.keys.damaged) {
    const Location here = map.keys.of("To");
    diagnostics.error(
        here, fmt::format("the AllowedIPs of this peer ({}) name no single {}address; write an "
                          "address here, or add ADDRESS/32 or ADDRESS/128 there",
                          reference(peer.keys.of("AllowedIPs"), here),
                          !listen          ? ""
                          : listen->isV4() ? "IPv4 "
                                           : "IPv6 "));
  }
}

void checkTarget(Draft& draft, MapDraft& map, Diagnostics& diagnostics) {
  if (map.target.host.empty()) return;
  const Location here = map.keys.of("To");
  if (const auto& address = map.target.address) {
    map.map.targets = {*address};
    if (map.map.listenAddress && map.map.listenAddress->family() != address->family()) {
      diagnostics.error(here, fmt::format("{} and the listening address {} are of different "
                                          "families",
                                          address->toString(), map.map.listenAddress->toString()));
    }
    return;
  }
  if (const PeerDraft* peer = findPeer(draft, map.target.host)) {
    // As the peer writes it, so that later comparisons need not ignore case.
    map.map.targetHost = peer->peer.name;
    resolvePeerTarget(map, *peer, diagnostics);
    return;
  }
  const bool damaged = std::ranges::any_of(draft.peers, [](const PeerDraft& peer) {
    return peer.keys.damaged || (peer.keys.has("Name") && peer.peer.name.empty());
  });
  if (!damaged) {
    diagnostics.error(map.targetLocation, unknownPeer(draft, map.target.host));
  }
}

bool isOwnAddress(const Draft& draft, const IpAddress& address) {
  return std::ranges::find(draft.interface.addresses, address, &InterfaceAddress::address) !=
         draft.interface.addresses.end();
}

constexpr std::array<std::string_view, 2> kEverything{"0.0.0.0/0", "::/0"};

/// The families that the tunnel's own addresses are of; IPv4 when there are none.
std::vector<int> familiesInUse(const Draft& draft) {
  std::vector<int> families;
  for (const int family : {AF_INET, AF_INET6}) {
    const bool used = std::ranges::any_of(
        draft.interface.addresses,
        [family](const InterfaceAddress& address) { return address.address.family() == family; });
    if (used) families.push_back(family);
  }
  if (families.empty()) families.push_back(AF_INET);
  return families;
}

/// The prefixes that clients' addresses need and no peer has.
std::vector<std::string_view> missingDefaults(const Draft& draft) {
  std::vector<std::string_view> missing;
  for (const int family : familiesInUse(draft)) {
    const bool held = std::ranges::any_of(draft.peers, [family](const PeerDraft& peer) {
      return holdEverything(peer.peer.allowedIps, family);
    });
    if (!held) missing.push_back(kEverything[family == AF_INET ? 0 : 1]);
  }
  return missing;
}

std::string allPrefixes(const Draft& draft) {
  std::vector<std::string_view> all;
  for (const int family : familiesInUse(draft)) {
    all.push_back(kEverything[family == AF_INET ? 0 : 1]);
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

/// With `Table = reply`, packets with clients' own addresses come out of the tunnel; AllowedIPs
/// that do not hold these drop them without a word.
void checkReplyTable(const Draft& draft, const std::vector<std::string_view>& missing,
                     Diagnostics& diagnostics) {
  const PeerDraft& peer = draft.peers.front();
  const Location here = peer.keys.of("AllowedIPs");
  const std::string table = reference(draft.interfaceKeys.of("Table"), here);
  if (missing.size() < familiesInUse(draft).size()) {
    diagnostics.warning(here, fmt::format("Table = reply ({}) answers clients of one family only: "
                                          "no AllowedIPs hold {}; write AllowedIPs = {}",
                                          table, missing.front(), allPrefixes(draft)));
    return;
  }
  diagnostics.error(
      here, fmt::format("these AllowedIPs are too narrow for Table = reply ({}): mappings that "
                        "preserve the source bring clients' own addresses, which would be dropped; "
                        "write AllowedIPs = {} (Table = reply leaves this machine's own routes "
                        "alone), or map with Source = masquerade and remove Table = reply",
                        table, allPrefixes(draft)));
}

/// With Table = reply a default route stands for clients, and not for hosts behind the peer.
bool isBehindPeer(const Draft& draft, const IpAddress& address) {
  const bool reply = std::holds_alternative<TableReply>(draft.interface.table);
  return std::ranges::any_of(draft.peers, [&](const PeerDraft& peer) {
    return std::ranges::any_of(peer.peer.allowedIps, [&](const Prefix& prefix) {
      return prefix.contains(address) && !(reply && prefix.isDefault());
    });
  });
}

/// A mapping to this machine itself, or past it to its network, asks the server for a port. The
/// daemon decides alike (control/desired.cpp).
bool isRequest(const Draft& draft, const MapDraft& map) {
  if (!map.target.address) return false;
  if (isOwnAddress(draft, *map.target.address)) return true;
  const bool dialsOut = std::ranges::any_of(
      draft.peers, [](const PeerDraft& peer) { return peer.peer.endpoint.has_value(); });
  return dialsOut && !isBehindPeer(draft, *map.target.address);
}

void checkRequestedMap(const Draft& draft, const MapDraft& map, bool narrow,
                       Diagnostics& diagnostics) {
  const Location here = map.keys.of(map.keys.has("Source") ? "Source" : "To");
  if (narrow) {
    diagnostics.error(
        here, fmt::format("Source = preserve brings clients' own addresses, and the AllowedIPs of "
                          "{} are too narrow for them; write AllowedIPs = {} there and Table = "
                          "reply in [Interface], or Source = masquerade here",
                          reference(draft.peers.front().keys.of("AllowedIPs"), here),
                          allPrefixes(draft)));
  } else if (std::holds_alternative<TableAuto>(draft.interface.table)) {
    diagnostics.warning(here,
                        "with these AllowedIPs all traffic of this machine goes into the "
                        "tunnel; Table = reply in [Interface] sends only replies there");
  }
}

void checkRouteToTarget(const Draft& draft, const MapDraft& map, Diagnostics& diagnostics) {
  if (!map.target.address || draft.peers.empty()) return;
  if (peerFor(draft, *map.target.address) == nullptr) {
    diagnostics.warning(map.keys.of("To"),
                        fmt::format("no peer's AllowedIPs hold {}, so its packets would not enter "
                                    "the tunnel; add it there",
                                    map.target.address->toString()));
  }
}

/// Some prefix was given and all of them are readable.
bool prefixesAreSound(const Draft& draft) {
  return !draft.peers.empty() && std::ranges::none_of(draft.peers, [](const PeerDraft& peer) {
    return peer.keys.damaged || (peer.keys.has("AllowedIPs") && peer.peer.allowedIps.empty());
  });
}

}  // namespace

void checkMaps(Draft& draft, Diagnostics& diagnostics) {
  for (MapDraft& map : draft.maps) {
    checkRequiredKeys(map, diagnostics);
    checkTarget(draft, map, diagnostics);
    if (map.hasListen) {
      checkTunnelPort(draft, map, diagnostics);
      checkPorts(map, diagnostics);
    }
  }
  for (const MapDraft& map : draft.maps) {
    if (map.hasListen) checkShift(draft, map, diagnostics);
  }
  checkOverlaps(draft, diagnostics);
}

void checkReplyPath(Draft& draft, Diagnostics& diagnostics) {
  if (!prefixesAreSound(draft)) return;
  const auto missing = missingDefaults(draft);
  const bool narrow = missing.size() == familiesInUse(draft).size();
  const bool reply = std::holds_alternative<TableReply>(draft.interface.table);
  if (reply && !missing.empty()) {
    checkReplyTable(draft, missing, diagnostics);
  }
  for (const MapDraft& map : draft.maps) {
    if (!isRequest(draft, map)) {
      checkRouteToTarget(draft, map, diagnostics);
    } else if (map.map.source == Source::Preserve && !reply) {
      checkRequestedMap(draft, map, narrow, diagnostics);
    }
  }
}

}  // namespace adit::config
