#include "cli/doctor_tunnel.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "cli/doctor_machine.hpp"
#include "cli/init_network.hpp"
#include "nat/obstacles.hpp"
#include "nat/prerequisites.hpp"
#include "netlink/route.hpp"
#include "netlink/sock_diag.hpp"

namespace adit::cli {
namespace {

using control::PeerSnapshot;

/// IP and UDP header, and header and tag of a message (docs/protocol.md).
constexpr std::uint32_t kOverheadV4 = 20 + 8 + 32;
constexpr std::uint32_t kOverheadV6 = 40 + 8 + 32;

doctor::CipherSpeeds speedsOf(const std::array<std::uint32_t, ADIT_SUITE_COUNT>& speeds) {
  return {speeds[static_cast<std::size_t>(crypto::Suite::ChaCha20Poly1305)],
          speeds[static_cast<std::size_t>(crypto::Suite::Aes256Gcm)]};
}

void observePath(netlink::Routing& routing, const Endpoint& endpoint, std::uint32_t mark,
                 doctor::PeerFacts& facts) {
  facts.path.overhead = endpoint.address.isV6() ? kOverheadV6 : kOverheadV4;
  const auto route = routing.lookupRoute(endpoint.address, mark);
  if (!route) return;
  facts.path.routeMtu = route->mtu;
  facts.behindNat =
      route->preferredSource && !isPublic(*route->preferredSource) && isPublic(endpoint.address);
}

doctor::PeerFacts observePeer(const Machine& machine, const PeerSnapshot& peer,
                              netlink::Routing* routing) {
  doctor::PeerFacts facts;
  facts.label = peer.name.empty() ? peer.publicKey.toBase64() : peer.name;
  facts.called = !peer.configuredEndpoint.empty();
  facts.unresolved = peer.unresolvedEndpoint;
  facts.keepalive = peer.persistentKeepalive;
  facts.unanswered = peer.unanswered;
  facts.received = peer.rxBytes;
  facts.sent = peer.txBytes;
  facts.clockBehind = peer.clockBehind;
  facts.clockBehindBy = peer.clockBehindBy;
  if (peer.suite) facts.cipher = crypto::suiteName(*peer.suite);
  if (peer.suiteSpeeds) facts.speeds = speedsOf(*peer.suiteSpeeds);
  if (peer.lastHandshake > std::chrono::nanoseconds::zero()) {
    const auto then = std::chrono::duration_cast<std::chrono::seconds>(peer.lastHandshake);
    facts.lastHandshake =
        std::max(std::chrono::seconds(std::time(nullptr)) - then, std::chrono::seconds(0));
  }
  const auto& peers = machine.config.peers;
  const auto said = std::ranges::find(peers, peer.publicKey, &config::PeerConfig::publicKey);
  if (said != peers.end()) facts.roams = said->roam;
  if (peer.endpoint) {
    facts.endpoint = peer.endpoint->toString();
    if (routing != nullptr) {
      observePath(*routing, *peer.endpoint, machine.view.device.firewallMark, facts);
    }
  }
  return facts;
}

/// Where peers' datagrams come in, on a machine without a default route.
std::string anyLink(const std::string& tunnel) {
  const auto routing = netlink::RouteSocket::open();
  const auto links = routing ? (*routing)->links() : Result<std::vector<netlink::Link>>();
  if (!links) return {};
  for (const netlink::Link& link : *links) {
    if (link.up && link.name != "lo" && link.name != tunnel) return link.name;
  }
  return {};
}

/// Rules that drop what we need, of the chains of others.
std::vector<doctor::FirewallDrop> observeFirewall(const Machine& machine, std::string nic) {
  const nat::RulesetSpec& spec = machine.desired.ruleset;
  auto found = nat::obstaclesNow(spec).value_or(std::vector<nat::Obstacle>{});
  const auto& peers = machine.view.device.peers;
  const bool called = std::ranges::any_of(
      peers, [](const PeerSnapshot& peer) { return peer.configuredEndpoint.empty(); });
  // Whoever calls gets answers, which every stateful firewall lets in.
  if (called && spec.mappings.empty() && spec.ownPort != 0) {
    if (nic.empty()) nic = anyLink(machine.named.interface);
    if (auto own = nat::portObstaclesNow(spec, nic)) {
      std::ranges::move(*own, std::back_inserter(found));
    }
  }
  std::vector<doctor::FirewallDrop> drops;
  for (const nat::Obstacle& obstacle : found) {
    drops.push_back({obstacle.what, obstacle.fix});
  }
  return drops;
}

std::vector<doctor::MapFacts> observeMaps(const Machine& machine) {
  std::vector<doctor::MapFacts> maps;
  for (const control::MapSnapshot& map : machine.view.device.maps) {
    // A mapping that the other end has to make is not of this ruleset.
    const auto& ours = machine.desired.maps.declared;
    if (std::ranges::any_of(ours, [&](const nat::Mapping& declared) {
          return declared.listenText() == map.listen;
        })) {
      continue;
    }
    const nat::MapUsage usage = map.usage.value_or(nat::MapUsage{});
    maps.push_back({.listen = map.listen,
                    .target = map.target,
                    .active = map.active,
                    .reason = map.reason,
                    .masquerade = map.source == "masquerade",
                    .packetsIn = usage.packetsIn,
                    .packetsOut = usage.packetsOut});
  }
  return maps;
}

doctor::ServiceFacts serviceOf(const nat::Mapping& mapping, const IpAddress& target,
                               const std::vector<nat::Listener>& listeners) {
  doctor::ServiceFacts facts;
  facts.port = fmt::format("{}/{}", nat::protocolName(mapping.protocol), mapping.targetPort);
  for (const nat::Listener& listener : listeners) {
    if (listener.protocol != mapping.protocol || listener.port != mapping.targetPort) continue;
    if (listener.address.isLoopback()) {
      facts.loopback = listener.address.toString();
    } else if (listener.address.isUnspecified() || listener.address == target) {
      facts.listening = true;
    }
  }
  return facts;
}

/// Services of this host that the other end maps, by the list of its sockets.
std::vector<doctor::ServiceFacts> observeServices(const Machine& machine) {
  std::vector<doctor::ServiceFacts> services;
  const auto listeners = nat::localListeners();
  if (!listeners) return services;
  const auto& own = machine.desired.ruleset.tunnelAddresses;
  for (const nat::Mapping& mapping : machine.desired.maps.declared) {
    // Of a range, such as FTP's passive ports, most are free most of the time.
    if (mapping.firstPort != mapping.lastPort) continue;
    for (const auto& target : {mapping.targetV4, mapping.targetV6}) {
      if (!target || std::ranges::find(own, *target) == own.end()) continue;
      services.push_back(serviceOf(mapping, *target, *listeners));
      break;
    }
  }
  return services;
}

doctor::PeerFacts* peerOf(const Machine& machine, const IpAddress& address,
                          doctor::TunnelFacts& facts) {
  doctor::PeerFacts* best = nullptr;
  unsigned length = 0;
  for (std::size_t i = 0; i < facts.peers.size(); ++i) {
    for (const Prefix& prefix : machine.view.device.peers[i].allowedIps) {
      if (prefix.contains(address) && (best == nullptr || prefix.length() > length)) {
        best = &facts.peers[i];
        length = prefix.length();
      }
    }
  }
  return best;
}

/// Connections of this host whose own address is the tunnel's.
void observeTcp(const Machine& machine, doctor::TunnelFacts& facts) {
  const auto connections = netlink::tcpConnections();
  if (!connections) return;
  const auto& own = machine.desired.ruleset.tunnelAddresses;
  doctor::TcpWaits waits;
  double busy = 0;
  double receiver = 0;
  double buffer = 0;
  std::uint64_t segments = 0;
  std::uint64_t again = 0;
  for (const netlink::TcpConnection& connection : *connections) {
    if (std::ranges::find(own, connection.local.address) == own.end()) continue;
    ++waits.connections;
    busy += static_cast<double>(connection.busy.count());
    receiver += static_cast<double>(connection.byReceiver.count());
    buffer += static_cast<double>(connection.bySendBuffer.count());
    segments += connection.segmentsOut;
    again += connection.retransmitted;
    doctor::PeerFacts* peer = peerOf(machine, connection.remote.address, facts);
    const auto delay = connection.minimumDelay;
    if (peer != nullptr && delay.count() > 0 && (!peer->delay || delay > peer->delay->value)) {
      peer->delay = {delay, "of a connection, ss -ti"};
    }
  }
  if (waits.connections == 0) return;
  // A second of traffic, and a few hundred segments, before it says anything.
  constexpr double kSecond = 1e6;
  constexpr std::uint64_t kEnough = 500;
  if (busy >= kSecond) {
    waits.byReceiver = receiver / busy;
    waits.bySendBuffer = buffer / busy;
  }
  if (segments >= kEnough) {
    waits.retransmitted = static_cast<double>(again) / static_cast<double>(segments);
  }
  facts.tcp = waits;
}

/// The daemon's warnings that no finding of ours tells better.
std::vector<std::string> otherWarnings(const control::DeviceSnapshot& device,
                                       const doctor::TunnelFacts& facts) {
  std::vector<std::string> others;
  for (const std::string& warning : device.warnings) {
    const auto holds = [&](const std::string& text) {
      return !text.empty() && warning.find(text) != std::string::npos;
    };
    const bool told =
        std::ranges::any_of(device.troubles,
                            [&](const auto& trouble) { return holds(trouble.text); }) ||
        std::ranges::any_of(facts.firewall, [&](const auto& drop) { return holds(drop.what); }) ||
        std::ranges::any_of(facts.peers, [&](const auto& peer) {
          return !peer.unresolved.empty() && holds("peer " + peer.label);
        });
    if (!told) others.push_back(warning);
  }
  return others;
}

}  // namespace

doctor::TunnelFacts observeTunnel(const Machine& machine, const tune::Files& files,
                                  const std::string& nic) {
  const control::DeviceSnapshot& device = machine.view.device;
  doctor::TunnelFacts facts;
  facts.name = device.name;
  facts.backend = device.backend;
  facts.backendReason = device.backendReason;
  facts.kernelWanted = machine.config.interface.backend != config::Backend::Userspace;
  facts.mtu = device.mtu;
  if (const auto& cipher = machine.config.interface.cipher) {
    facts.pinnedCipher = crypto::suiteName(*cipher);
  }
  facts.speeds = speedsOf(device.suiteSpeeds);
  facts.steers = hasSteering(files, device.name);
  const auto routing = netlink::RouteSocket::open();
  for (const PeerSnapshot& peer : device.peers) {
    facts.peers.push_back(observePeer(machine, peer, routing ? routing->get() : nullptr));
  }
  for (const control::TroubleSnapshot& trouble : device.troubles) {
    facts.troubles.push_back({trouble.kind, trouble.peer, trouble.text});
  }
  facts.firewall = observeFirewall(machine, nic);
  facts.maps = observeMaps(machine);
  facts.services = observeServices(machine);
  observeTcp(machine, facts);
  facts.warnings = otherWarnings(device, facts);
  return facts;
}

void observeRates(const control::DeviceView& later, std::chrono::duration<double> passed,
                  doctor::TunnelFacts& facts) {
  for (const PeerSnapshot& peer : later.device.peers) {
    const std::string label = peer.name.empty() ? peer.publicKey.toBase64() : peer.name;
    const auto known = std::ranges::find(facts.peers, label, &doctor::PeerFacts::label);
    if (known == facts.peers.end() || passed.count() <= 0) continue;
    const std::uint64_t before = known->received + known->sent;
    const std::uint64_t now = peer.rxBytes + peer.txBytes;
    known->rate = static_cast<double>(now - std::min(before, now)) * 8 / passed.count();
  }
}

}  // namespace adit::cli
