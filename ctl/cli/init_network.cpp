#include "cli/init_network.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "nat/prerequisites.hpp"

namespace adit::cli {
namespace {

using netlink::Route;
using netlink::Routing;

constexpr std::uint16_t kFirstPort = 51820;
constexpr std::uint16_t kPorts = 100;

Prefix prefix(std::string_view text) {
  return *Prefix::parse(text);
}

Result<std::vector<Route>> defaultRoutes(Routing& routing) {
  std::vector<Route> found;
  for (const int family : {AF_INET, AF_INET6}) {
    auto routes = routing.routes({.family = family, .table = netlink::kMainTable});
    if (!routes) return routes;
    std::erase_if(*routes, [](const Route& route) {
      return !route.destination.isDefault() || route.interface == 0;
    });
    std::ranges::stable_sort(*routes, {}, &Route::metric);
    found.insert(found.end(), routes->begin(), routes->end());
  }
  return found;
}

/// Everything that a packet of this machine may go to without the default route.
Result<std::vector<Prefix>> usedNetworks(Routing& routing) {
  const auto routes = routing.routes({.family = AF_INET});
  if (!routes) return tl::unexpected(routes.error());
  std::vector<Prefix> used;
  for (const Route& route : *routes) {
    if (!route.destination.isDefault()) used.push_back(route.destination);
  }
  const auto links = routing.links();
  if (!links) return tl::unexpected(links.error());
  for (const netlink::Link& link : *links) {
    const auto addresses = routing.addresses(link.index);
    if (!addresses) return tl::unexpected(addresses.error());
    for (const InterfaceAddress& address : *addresses) {
      used.push_back(address.prefix());
    }
  }
  return used;
}

}  // namespace

bool isPublic(const IpAddress& address) {
  static const std::array kInside{
      prefix("10.0.0.0/8"),    prefix("172.16.0.0/12"),  prefix("192.168.0.0/16"),
      prefix("100.64.0.0/10"), prefix("169.254.0.0/16"), prefix("127.0.0.0/8"),
      prefix("fc00::/7"),      prefix("fe80::/10"),      prefix("::1/128"),
  };
  return std::ranges::none_of(kInside,
                              [&](const Prefix& inside) { return inside.contains(address); });
}

Result<PublicSide> publicSide(Routing& routing, const std::string& wanted) {
  const auto routes = defaultRoutes(routing);
  if (!routes) return tl::unexpected(routes.error());
  const auto links = routing.links();
  if (!links) return tl::unexpected(links.error());
  const auto link = std::ranges::find_if(*links,
                                         [&](const netlink::Link& each) {
                                           return wanted.empty() ? !routes->empty() && each.index == routes->front().interface
                          : each.name == wanted;
                                         });
  if (link == links->end()) {
    if (!wanted.empty()) return fail("there is no interface {}; `ip link` lists them", wanted);
    return fail(
        "this machine has no default route, so its public interface is not known: name it, as in "
        "`--public eth0`");
  }
  PublicSide side;
  side.interface = link->name;
  side.ambiguous = std::ranges::any_of(
      *routes, [&](const Route& route) { return route.interface != link->index; });
  const auto addresses = routing.addresses(link->index);
  if (!addresses) return tl::unexpected(addresses.error());
  for (const int family : {AF_INET, AF_INET6}) {
    const auto found = std::ranges::find_if(*addresses, [&](const InterfaceAddress& each) {
      return each.address.family() == family && isPublic(each.address);
    });
    if (found != addresses->end()) side.addresses.push_back(found->address);
  }
  return side;
}

Result<Prefix> freeNetworkV4(Routing& routing, crypto::RandomSource& random) {
  constexpr unsigned kTries = 1000;
  const auto used = usedNetworks(routing);
  if (!used) return tl::unexpected(used.error());
  for (unsigned i = 0; i < kTries; ++i) {
    std::array<std::uint8_t, 4> bytes{10, 0, 0, 0};
    random.fill(std::span(bytes).subspan(1, 2));
    const Prefix candidate(IpAddress::fromV4(bytes), 24);
    const bool taken = std::ranges::any_of(*used, [&](const Prefix& other) {
      return other.contains(candidate) || candidate.contains(other);
    });
    // 10.0 and 10.1 are what routers hand out.
    if (!taken && bytes[1] > 1) return candidate;
  }
  return fail("this machine has routes to all of 10.0.0.0/8: write the file by hand");
}

Prefix randomNetworkV6(crypto::RandomSource& random) {
  std::array<std::uint8_t, 16> bytes{0xfd};
  random.fill(std::span(bytes).subspan(1, 7));
  return {IpAddress::fromV6(bytes), 64};
}

Result<void> checkOffered(Routing& routing, const std::vector<InterfaceAddress>& addresses) {
  constexpr unsigned kShortestV4 = 16;
  constexpr unsigned kShortestV6 = 48;
  const auto used = usedNetworks(routing);
  if (!used) return tl::unexpected(used.error());
  for (const InterfaceAddress& address : addresses) {
    const Prefix network = address.prefix();
    const unsigned shortest = address.address.isV6() ? kShortestV6 : kShortestV4;
    if (isPublic(address.address) || address.address.isLinkLocalV6() ||
        network.length() < shortest) {
      return fail("the server offers {}, which is no private network of /{} or smaller",
                  address.toString(), shortest);
    }
    const auto taken = std::ranges::find_if(*used, [&](const Prefix& other) {
      return !other.isDefault() && (other.contains(network) || network.contains(other));
    });
    if (taken != used->end()) {
      return fail("the server offers {}, and this machine uses {} itself", address.toString(),
                  taken->toString());
    }
  }
  return {};
}

IpAddress hostOf(const Prefix& network, std::uint32_t number) {
  std::array<std::uint8_t, 16> bytes{};
  const auto base = network.address().bytes();
  std::ranges::copy(base, bytes.begin());
  for (std::size_t i = base.size(); i > 0 && number != 0; --i, number >>= 8) {
    bytes[i - 1] = static_cast<std::uint8_t>(bytes[i - 1] | (number & 0xff));
  }
  return network.address().isV6() ? IpAddress::fromV6(bytes)
                                  : IpAddress::fromV4(std::span(bytes).first<4>());
}

Result<std::uint16_t> freePort() {
  const auto listeners = nat::localListeners();
  if (!listeners) return tl::unexpected(listeners.error());
  for (std::uint16_t port = kFirstPort; port < kFirstPort + kPorts; ++port) {
    const bool taken = std::ranges::any_of(*listeners, [&](const nat::Listener& listener) {
      return listener.protocol == nat::Protocol::Udp && listener.port == port;
    });
    if (!taken) return port;
  }
  return fail("every UDP port from {} to {} is taken", kFirstPort, kFirstPort + kPorts - 1);
}

}  // namespace adit::cli
