// What is to be mapped, resolved: addresses instead of names, one protocol each.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::nat {

enum class Protocol : std::uint8_t { Tcp = IPPROTO_TCP, Udp = IPPROTO_UDP };
std::string_view protocolName(Protocol protocol);

/// Tables of ours are called so, followed by the tunnel's interface.
inline constexpr std::string_view kTablePrefix = "adit_";

/// Which source address the target sees.
enum class SourceMode : std::uint8_t { Preserve, Masquerade };

/// A port range of the public side and where it leads. "tcp and udp" is two mappings.
struct Mapping {
  /// Shown in comments of the ruleset, errors and status; unique per protocol.
  std::string label;
  /// A peer's name or an address, as it was written, for status.
  std::string targetHost;
  /// Where it was written, "FILE:LINE:COLUMN", to put before an error; may be empty.
  std::string location;
  Protocol protocol = Protocol::Tcp;
  /// Only this address of the public side; nothing is all.
  std::optional<IpAddress> listenAddress;
  /// 1 to 65535, inclusive.
  std::uint16_t firstPort = 0;
  std::uint16_t lastPort = 0;
  /// At least one. A client of a family without a target is not served.
  std::optional<IpAddress> targetV4;
  std::optional<IpAddress> targetV6;
  /// Port of the target that firstPort leads to; the others follow in order.
  std::uint16_t targetPort = 0;
  SourceMode source = SourceMode::Preserve;
  /// Also for connections from the server itself and from the tunnel's side to the public address.
  bool hairpin = false;
  /// Client networks that are let in; empty is all.
  std::vector<Prefix> allow;
  /// Highest rate in bits per second, for each direction; nothing is unlimited.
  std::optional<std::uint64_t> rate;
  /// Wanted even where a local listener (SSH) has the port.
  bool overrideListener = false;

  /// "tcp/8000-8100" or "203.0.113.9:tcp/443".
  [[nodiscard]] std::string listenText() const;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// The NAS side of `preserve`: connections that came in by the tunnel are marked, and their
/// replies routed by that mark back into it. Only the bits of `mask` are used, in connection marks
/// and in packet marks: others use marks too. The default is one bit that Tailscale (0x00ff0000),
/// Kubernetes (0x4000, 0x8000), mwan3 (0x3f00) and Docker leave alone.
struct ReplyMarks {
  std::uint32_t mark = 0x01000000;
  std::uint32_t mask = 0x01000000;
  friend bool operator==(const ReplyMarks&, const ReplyMarks&) = default;
};

/// A UDP socket that is bound to no address gets its source address from the route to the client:
/// on a NAS the one of its own default route, which is not the one that the client asked. So a
/// datagram out of the tunnel for such a socket is translated to that address, and connection
/// tracking recognises the answer, marks it and gives it back the tunnel's address. The service
/// sees what it would see of a client at home, whether it is bound, connects, or asks for
/// IP_PKTINFO.
struct UdpAnswers {
  /// What the kernel takes as the source towards the Internet; at most one of each family.
  std::vector<IpAddress> homeAddresses;
  /// Networks that the main routing table sends into the tunnel: there, the tunnel's address is
  /// the source anyway.
  std::vector<Prefix> tunnelNetworks;
  friend bool operator==(const UdpAnswers&, const UdpAnswers&) = default;
};

/// `Expose = maps`: what may come in by the tunnel, for this host or onwards. The other end of the
/// tunnel counts as hostile.
struct Exposure {
  /// Their targets, on this host or behind it, are reachable; nothing else is.
  std::vector<Mapping> declared;
  /// Connections that were opened towards these, from here, are answered out of the tunnel.
  std::vector<Prefix> tunnelNetworks;
  friend bool operator==(const Exposure&, const Exposure&) = default;
};

/// wg-quick's protection when the tunnel takes the default route: packets to the tunnel's addresses
/// that come in elsewhere are dropped, and the mark of the tunnel's own datagrams is kept on their
/// connection, so that strict reverse path filtering (src_valid_mark) accepts the answers.
struct DefaultRouteGuard {
  std::uint32_t firewallMark = 0;
  friend bool operator==(const DefaultRouteGuard&, const DefaultRouteGuard&) = default;
};

/// Everything that the one nftables table of an interface holds.
struct RulesetSpec {
  /// The tunnel's interface; the table is "adit_" + interface.
  std::string interface;
  /// Public NICs of a server, by name. They need not exist yet.
  std::vector<std::string> publicInterfaces;
  /// The tunnel's own UDP port, never mapped; 0 for none.
  std::uint16_t ownPort = 0;
  /// The tunnel's addresses on this host: never the public side of a hairpin.
  std::vector<IpAddress> tunnelAddresses;
  /// MTU of the tunnel; bounds the TCP segment size of what comes out of it. 0 leaves that to the
  /// routes.
  std::uint32_t tunnelMtu = 0;
  std::vector<Mapping> mappings;
  /// Their targets are hosts behind this one whose gateway is another: they see this host's address
  /// instead of the client's, and so answer by it.
  std::vector<Mapping> masked;
  std::optional<ReplyMarks> reply;
  std::optional<UdpAnswers> answers;
  std::optional<Exposure> exposure;
  std::optional<DefaultRouteGuard> guard;
  /// This host forwards between the tunnel and hosts or containers behind it (a NAS whose LAN is
  /// reachable by the tunnel); decides about neededSysctls() only. Mappings imply it.
  bool forwards = false;
  /// Established connections of mappings without a rate pass the public NICs and the tunnel by a
  /// flow table. KernelFirewall decides: it needs the kernel's support, and the interfaces.
  bool offload = false;

  /// True when no table is needed at all.
  [[nodiscard]] bool empty() const {
    return mappings.empty() && masked.empty() && !reply.has_value() && !exposure.has_value() &&
           !guard.has_value();
  }
  [[nodiscard]] std::string tableName() const { return std::string(kTablePrefix) + interface; }
  friend bool operator==(const RulesetSpec&, const RulesetSpec&) = default;
};

/// Errors that nftables would report late or not at all: port 0, reversed ranges, target ranges
/// past 65535, no target, a target of the wrong family, overlaps (naming both). Empty when good.
std::vector<Error> validate(const RulesetSpec& spec);

}  // namespace adit::nat
