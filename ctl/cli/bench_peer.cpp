#include "cli/bench_peer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "control/control_client.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli {
namespace {

using bench::Layer;
using bench::Target;
using control::ControlClient;
using control::DeviceSnapshot;
using control::PeerSnapshot;

struct Known {
  DeviceSnapshot device;
  PeerSnapshot peer;
};

/// What the daemons say, or that they may not be asked.
struct Daemons {
  std::vector<DeviceSnapshot> devices;
  bool forbidden = false;
};

Result<Daemons> askDaemons(const std::string& only) {
  Daemons daemons;
  std::vector<std::string> names{only};
  if (only.empty()) {
    const auto running = control::runningInterfaces();
    daemons.forbidden = !running && running.error().code == EACCES;
    if (!running && !daemons.forbidden) return tl::unexpected(running.error());
    names = running.value_or(std::vector<std::string>{});
  }
  for (const std::string& name : names) {
    auto view = ControlClient::connect(name).and_then(
        [](ControlClient client) { return client.show(false); });
    if (view) {
      daemons.devices.push_back(std::move(view->device));
    } else if (view.error().code == EACCES) {
      daemons.forbidden = true;
    } else if (!only.empty()) {
      return tl::unexpected(view.error());
    }
  }
  return daemons;
}

std::string labelOf(const PeerSnapshot& peer) {
  return peer.name.empty() ? peer.publicKey.toBase64() : peer.name;
}

bool allows(const PeerSnapshot& peer, const IpAddress& address) {
  return std::ranges::any_of(peer.allowedIps,
                             [&](const Prefix& prefix) { return prefix.contains(address); });
}

Result<std::optional<Known>> lookUp(const Daemons& daemons, const std::string& text) {
  const auto address = IpAddress::parse(text);
  std::optional<Known> found;
  std::string all;
  for (const DeviceSnapshot& device : daemons.devices) {
    for (const PeerSnapshot& peer : device.peers) {
      all += (all.empty() ? "" : ", ") + labelOf(peer);
      const bool meant = peer.name == text || peer.publicKey.toBase64() == text ||
                         (address && allows(peer, *address));
      if (!meant) continue;
      if (found && found->device.name != device.name) {
        return fail("{} is a peer of {} and of {}: say which with --interface", text,
                    found->device.name, device.name);
      }
      found = Known{device, peer};
    }
  }
  if (found || address) return found;
  if (daemons.forbidden) {
    return fail(
        "without root the daemon may not be asked who \"{}\" is: give the peer's address inside "
        "the tunnel, or run it with sudo",
        text);
  }
  if (all.empty()) return fail("no interface with a peer is up; start one with `adit up NAME`");
  return fail("there is no peer \"{}\"; there are: {}", text, all);
}

Result<IpAddress> addressOption(const std::string& option, const std::string& text) {
  auto address = IpAddress::parse(text);
  if (!address) return wrapError(address.error(), option);
  return address;
}

Result<IpAddress> tunnelAddress(const PeerArguments& arguments, const std::optional<Known>& known) {
  if (!arguments.address.empty()) return addressOption("--address", arguments.address);
  if (auto given = IpAddress::parse(arguments.peer)) return given;
  if (const auto address = tunnelAddressOf(known->peer, known->device.addresses)) return *address;
  return fail("AllowedIPs of {} do not tell its address inside the tunnel: give it with --address",
              arguments.peer);
}

Result<Target> bareTarget(const PeerArguments& arguments, const std::optional<Known>& known,
                          const IpAddress& inside) {
  IpAddress address;
  if (!arguments.endpoint.empty()) {
    const auto given = addressOption("--endpoint", arguments.endpoint);
    if (!given) return tl::unexpected(given.error());
    address = *given;
  } else if (known && known->peer.endpoint) {
    address = known->peer.endpoint->address;
  } else {
    return fail("the peer's address outside the tunnel is not known: give it with --endpoint");
  }
  const auto source = sourceTowards(address);
  if (!source) return tl::unexpected(source.error());
  // With AllowedIPs = 0.0.0.0/0 all but the tunnel's own datagrams take the tunnel.
  if (const auto through = sourceTowards(inside); through && *through == *source) {
    return fail("this machine reaches {} through the tunnel itself", address.toString());
  }
  return Target{address.toString(), arguments.port};
}

Result<Target> mappedTarget(const PeerArguments& arguments, const std::optional<Known>& known,
                            const IpAddress& inside, std::vector<std::string>& notes) {
  if (!arguments.mapped.empty()) {
    const auto given = Endpoint::parse(arguments.mapped);
    if (!given) return wrapError(given.error(), "--mapped");
    return Target{given->address.toString(), given->port};
  }
  const auto port = known ? mappedPortFor(known->device.maps, inside, arguments.port)
                          : std::optional<std::uint16_t>();
  if (!port) {
    return fail("no mapped port is known to lead to {}, tcp port {}: name one with --mapped",
                inside.toString(), arguments.port);
  }
  if (!known->peer.endpoint) return fail("the peer has no endpoint yet");
  const auto own = sourceTowards(known->peer.endpoint->address);
  if (!own) return tl::unexpected(own.error());
  notes.push_back(
      fmt::format("the mapped port is asked from the server itself, which needs Hairpin = on; from "
                  "a client outside: adit bench {} --layers mapped --mapped PUBLIC-ADDRESS:{}",
                  inside.toString(), *port));
  return Target{own->toString(), *port};
}

}  // namespace

Result<IpAddress> sourceTowards(const IpAddress& destination) {
  constexpr std::uint16_t kAnyPort = 9;
  sockaddr_storage address{};
  const socklen_t length = Endpoint{destination, kAnyPort}.toSockaddr(address);
  const UniqueFd socket(::socket(destination.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return failErrno(errno, "socket");
  // Connecting a datagram socket only asks the routing table.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return failErrno(errno, "{}", destination.toString());
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return failErrno(errno, "getsockname");
  }
  return Endpoint::fromSockaddr(reinterpret_cast<const sockaddr*>(&own)).address;
}

std::optional<IpAddress> tunnelAddressOf(const PeerSnapshot& peer,
                                         const std::vector<InterfaceAddress>& own) {
  std::optional<IpAddress> any;
  for (const Prefix& prefix : peer.allowedIps) {
    if (prefix.length() != prefix.address().bits()) continue;
    const bool beside = std::ranges::any_of(own, [&](const InterfaceAddress& address) {
      return address.prefix().contains(prefix.address());
    });
    if (beside) return prefix.address();
    if (!any) any = prefix.address();
  }
  return any;
}

std::optional<std::uint16_t> mappedPortFor(const std::vector<control::MapSnapshot>& maps,
                                           const IpAddress& address, std::uint16_t port) {
  constexpr std::string_view kTcp = "tcp/";
  const std::string target = Endpoint{address, port}.toString();
  for (const control::MapSnapshot& map : maps) {
    if (!map.active || !map.listen.starts_with(kTcp) ||
        std::ranges::find(map.targets, target) == map.targets.end()) {
      continue;
    }
    // "tcp/18080", or with an address before the port; a range has no single target.
    const auto colon = map.listen.rfind(':');
    const std::size_t start = colon == std::string::npos ? kTcp.size() : colon + 1;
    std::uint16_t number = 0;
    const char* const end = map.listen.data() + map.listen.size();
    const auto [stopped, error] = std::from_chars(map.listen.data() + start, end, number);
    if (error == std::errc() && stopped == end && number != 0) return number;
  }
  return std::nullopt;
}

Result<PeerTarget> findPeer(const PeerArguments& arguments) {
  const auto daemons = askDaemons(arguments.interface);
  if (!daemons) return tl::unexpected(daemons.error());
  const auto known = lookUp(*daemons, arguments.peer);
  if (!known) return tl::unexpected(known.error());
  const auto inside = tunnelAddress(arguments, *known);
  if (!inside) return tl::unexpected(inside.error());

  PeerTarget target;
  target.name = *known ? labelOf((*known)->peer) : arguments.peer;
  if (*known) {
    const Known& peer = **known;
    target.interface = peer.device.name;
    target.backend = peer.device.backend;
    target.suite = peer.peer.suite;
    target.mtu = peer.device.mtu;
  } else {
    target.notes.push_back(
        daemons->forbidden
            ? "without root the daemon may not be asked for the cipher, the MTU and the mappings"
            : "no interface of this machine has a peer with that address");
  }
  target.targets.emplace(Layer::Bare, bareTarget(arguments, *known, *inside));
  target.targets.emplace(Layer::Tunnel, Target{inside->toString(), arguments.port});
  target.targets.emplace(Layer::Mapped, mappedTarget(arguments, *known, *inside, target.notes));
  return target;
}

}  // namespace adit::cli
