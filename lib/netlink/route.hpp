// Links, addresses, routes and policy rules (rtnetlink(7)).
//
// `Routing` is what the reconciler needs of the kernel; `RouteSocket` is the kernel, tests inject
// their own. Every call is synchronous and works on the network namespace in which the socket was
// opened. Adding what is there already and removing what is gone succeed, so that a reconciler may
// run twice. Errors name the object and, for missing rights, the remedy; `code` is the errno.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::netlink {

class Transport;

/// The routing protocol number (rtm_protocol, FRA_PROTOCOL) that marks routes and rules as ours,
/// so that they are recognised after a restart and nobody else's are ever removed. `ip route`
/// shows it as "proto 97"; 'a' for adit. Not assigned in rtnetlink.h nor in iproute2's
/// rt_protos.
inline constexpr std::uint8_t kRouteProtocol = 0x61;

/// RT_TABLE_MAIN.
inline constexpr std::uint32_t kMainTable = 254;

struct Link {
  std::uint32_t index = 0;
  std::string name;
  /// IFLA_INFO_KIND: "tun", "veth", "wireguard"; empty for hardware and loopback.
  std::string kind;
  std::uint32_t mtu = 0;
  /// IFF_UP: administratively up.
  bool up = false;
  /// Operationally up: up, with a carrier.
  bool running = false;
  friend bool operator==(const Link&, const Link&) = default;
};

struct Route {
  Prefix destination;
  /// Interface index; 0 for a route without one (blackhole, multipath).
  std::uint32_t interface = 0;
  std::optional<IpAddress> gateway;
  std::uint32_t table = kMainTable;
  /// 0 is the family's default (0 for IPv4, 1024 for IPv6).
  std::uint32_t metric = 0;
  /// RTAX_MTU.
  std::optional<std::uint32_t> mtu;
  std::optional<IpAddress> preferredSource;
  std::uint8_t protocol = kRouteProtocol;
  [[nodiscard]] std::string toString() const;
  friend bool operator==(const Route&, const Route&) = default;
};

/// Which routes to list; an unset member matches all.
struct RouteFilter {
  std::optional<int> family = std::nullopt;
  std::optional<std::uint32_t> table = std::nullopt;
  std::optional<std::uint8_t> protocol = std::nullopt;
  std::optional<std::uint32_t> interface = std::nullopt;
};

/// A policy rule (ip-rule(8)).
struct Rule {
  /// AF_INET or AF_INET6.
  int family = AF_INET;
  /// 0 lets the kernel choose: just before the rules that are there, as `ip rule add` does.
  std::uint32_t priority = 0;
  std::optional<std::uint32_t> mark;
  std::uint32_t markMask = 0xffffffff;
  /// `from`, of the rule's family.
  std::optional<Prefix> source;
  /// `not`: the rule applies where the selector does not match.
  bool invert = false;
  std::uint32_t table = kMainTable;
  /// Refuses a route whose prefix is this long or shorter; 0 refuses the default route.
  std::optional<std::uint32_t> suppressPrefixLength;
  /// `iif`, empty for any.
  std::string inputInterface;
  std::uint8_t protocol = kRouteProtocol;
  /// Read from the kernel, with a selector or an action that this struct does not hold.
  bool foreign = false;
  [[nodiscard]] std::string toString() const;
  /// Equal in all but the priority, which the kernel may have chosen, and the protocol.
  [[nodiscard]] bool sameAs(const Rule& other) const;
  friend bool operator==(const Rule&, const Rule&) = default;
};

/// What the kernel would do with a packet.
struct RouteAnswer {
  std::uint32_t interface = 0;
  /// Nothing where the destination is on the link.
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> preferredSource;
  /// MTU of the path: of the route where it says one, else of the interface.
  std::uint32_t mtu = 0;
  /// The destination is this host.
  bool local = false;
  std::uint32_t table = 0;
};

class Routing {
 public:
  virtual ~Routing() = default;

  virtual Result<std::vector<Link>> links() = 0;
  /// Nothing when there is no interface of that name.
  virtual Result<std::optional<Link>> findLink(std::string_view name) = 0;
  /// Creates a link without attributes of its own: "dummy", "wireguard", "adit". An existing one
  /// of the same name is an error (EEXIST).
  virtual Result<void> createLink(std::string_view name, std::string_view kind) = 0;
  virtual Result<void> setLinkUp(std::uint32_t interface, bool up) = 0;
  /// Keeps the kernel from giving the link an address of its own and from announcing groups on it,
  /// as with a wireguard link: a peer would refuse both. Before the link goes up. Where IPv6 is off
  /// there is nothing to keep it from.
  virtual Result<void> setLinkSilent(std::uint32_t) { return {}; }
  virtual Result<void> setLinkMtu(std::uint32_t interface, std::uint32_t mtu) = 0;
  virtual Result<void> deleteLink(std::uint32_t interface) = 0;

  /// Addresses of one interface, both families.
  virtual Result<std::vector<InterfaceAddress>> addresses(std::uint32_t interface) = 0;
  /// As `ip address add`: the kernel makes the on-link route. IPv6 skips duplicate address
  /// detection, since a tunnel has no neighbours.
  virtual Result<void> addAddress(std::uint32_t interface, const InterfaceAddress& address) = 0;
  virtual Result<void> removeAddress(std::uint32_t interface, const InterfaceAddress& address) = 0;

  virtual Result<std::vector<Route>> routes(const RouteFilter& filter) = 0;
  /// Succeeds when exactly this route exists (of whatever protocol). Another route to the same
  /// destination with the same table and metric is an error (EEXIST) that shows it: it is not
  /// ours to replace.
  virtual Result<void> addRoute(const Route& route) = 0;
  /// Adds, or takes the place of the route with the same destination, table and metric.
  virtual Result<void> replaceRoute(const Route& route) = 0;
  virtual Result<void> removeRoute(const Route& route) = 0;
  /// The route that a packet of this host to `destination` with the given mark would take.
  /// ENETUNREACH where there is none.
  virtual Result<RouteAnswer> lookupRoute(const IpAddress& destination, std::uint32_t mark) = 0;

  /// AF_INET or AF_INET6, in order of evaluation.
  virtual Result<std::vector<Rule>> rules(int family) = 0;
  /// Succeeds when a rule with the same selector and action exists.
  virtual Result<void> addRule(const Rule& rule) = 0;
  virtual Result<void> removeRule(const Rule& rule) = 0;
};

/// The kernel's routing, over one NETLINK_ROUTE socket.
class RouteSocket final : public Routing {
 public:
  /// In the network namespace of the calling thread.
  static Result<std::unique_ptr<RouteSocket>> open();
  ~RouteSocket() override;
  RouteSocket(const RouteSocket&) = delete;
  RouteSocket& operator=(const RouteSocket&) = delete;

  Result<std::vector<Link>> links() override;
  Result<std::optional<Link>> findLink(std::string_view name) override;
  Result<void> createLink(std::string_view name, std::string_view kind) override;
  Result<void> setLinkUp(std::uint32_t interface, bool up) override;
  Result<void> setLinkSilent(std::uint32_t interface) override;
  Result<void> setLinkMtu(std::uint32_t interface, std::uint32_t mtu) override;
  Result<void> deleteLink(std::uint32_t interface) override;

  Result<std::vector<InterfaceAddress>> addresses(std::uint32_t interface) override;
  Result<void> addAddress(std::uint32_t interface, const InterfaceAddress& address) override;
  Result<void> removeAddress(std::uint32_t interface, const InterfaceAddress& address) override;

  Result<std::vector<Route>> routes(const RouteFilter& filter) override;
  Result<void> addRoute(const Route& route) override;
  Result<void> replaceRoute(const Route& route) override;
  Result<void> removeRoute(const Route& route) override;
  Result<RouteAnswer> lookupRoute(const IpAddress& destination, std::uint32_t mark) override;

  Result<std::vector<Rule>> rules(int family) override;
  Result<void> addRule(const Rule& rule) override;
  Result<void> removeRule(const Rule& rule) override;

 private:
  explicit RouteSocket(std::unique_ptr<Transport> transport);
  /// "adit0", or "interface 7" when it has gone.
  std::string nameOf(std::uint32_t interface);
  Result<void> changeRoute(const Route& route, std::uint16_t type, std::uint16_t flags);

  std::unique_ptr<Transport> transport_;
};

}  // namespace adit::netlink
