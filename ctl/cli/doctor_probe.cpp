// The probes of `adit doctor --probe`.
#include <algorithm>
#include <array>

#include "cli/doctor_pinger.hpp"
#include "cli/doctor_port.hpp"
#include "cli/doctor_tunnel.hpp"
#include "cli/map_check.hpp"

namespace adit::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{1000};
/// Beyond the known round trip.
constexpr milliseconds kSlack{150};
/// A busy machine answers late, and late is not lost.
constexpr milliseconds kTrainSlack{600};
constexpr int kPings = 3;
/// Bytes of an inner packet that every path carries.
constexpr std::uint32_t kSmallPacket = 84;
/// Larger ones might be split.
constexpr std::uint32_t kTrainPacket = 1200;
constexpr std::array kRates = {2e6, 5e6, 10e6, 20e6, 50e6, 100e6};
constexpr milliseconds kTrainTime{250};
constexpr double kLossEnough = 0.1;
/// So that the whole ends in seconds.
constexpr std::size_t kMostPeers = 4;

/// An address of the peer's own: one that it has alone in its AllowedIPs.
std::optional<IpAddress> innerAddress(const control::PeerSnapshot& peer) {
  for (const Prefix& prefix : peer.allowedIps) {
    if (prefix.length() == prefix.address().bits()) return prefix.address();
  }
  return std::nullopt;
}

std::optional<microseconds> roundTrip(Pinger& pinger, std::uint32_t size) {
  std::optional<microseconds> best;
  for (int i = 0; i < kPings; ++i) {
    const auto delay = pinger.ping(size, kPatience);
    if (delay && (!best || *delay < *best)) best = delay;
    if (!delay && !best && i > 0) break;
  }
  return best;
}

/// One packet in a while is lost on every path.
bool passes(Pinger& pinger, std::uint32_t size, milliseconds patience) {
  return pinger.ping(size, patience) || pinger.ping(size, patience);
}

/// The largest size between one that is answered and one that is not.
std::uint32_t largest(Pinger& pinger, std::uint32_t low, std::uint32_t high,
                      milliseconds patience) {
  if (passes(pinger, high, patience)) return high;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (passes(pinger, middle, patience) ? low : high) = middle;
  }
  return low;
}

void probeRate(Pinger& inside, const Pinger::Path& outsidePath, doctor::PeerFacts& facts) {
  const auto patience = std::chrono::ceil<milliseconds>(facts.delay->value) + kTrainSlack;
  doctor::RateSample sample;
  sample.idleDelay = facts.delay->value;
  for (const double rate : kRates) {
    Pinger::Train train = inside.train(rate, kTrainPacket, kTrainTime, patience);
    if (train.loss >= kLossEnough) {
      // Once may be chance, or a session that was just replaced.
      const Pinger::Train again = inside.train(rate, kTrainPacket, kTrainTime, patience);
      if (again.loss < train.loss) train = again;
    }
    sample.offered = train.offered;
    sample.delivered = train.delivered;
    sample.loss = train.loss;
    sample.loadedDelay = train.delay;
    if (train.loss >= kLossEnough) break;
  }
  if (sample.loss >= kLossEnough) {
    auto outside = Pinger::open(outsidePath);
    if (outside && outside->ping(kTrainPacket, patience)) {
      sample.lossOutside = outside->train(sample.offered, kTrainPacket, kTrainTime, patience).loss;
    }
  }
  facts.sample = sample;
}

void probeSession(const Machine& machine, const IpAddress& inner, const Endpoint& endpoint,
                  doctor::PeerFacts& facts) {
  const control::DeviceSnapshot& device = machine.view.device;
  auto pinger = Pinger::open({.target = inner, .device = device.name, .source = {}, .mark = 0});
  if (!pinger) return;
  facts.path.probed = true;
  const auto delay = roundTrip(*pinger, kSmallPacket);
  if (!delay) return;
  facts.path.smallAnswered = true;
  facts.delay = {*delay, "3 pings through the tunnel"};
  facts.path.largestAnswered =
      largest(*pinger, kSmallPacket, device.mtu, std::chrono::ceil<milliseconds>(*delay) + kSlack);
  if (facts.path.largestAnswered < kTrainPacket) return;
  probeRate(*pinger,
            {.target = endpoint.address, .device = "", .source = {}, .mark = device.firewallMark},
            facts);
}

/// Routers tell of their MTU one after the other.
void probePathMtu(const Endpoint& endpoint, std::uint32_t mark, doctor::PeerFacts& facts) {
  constexpr int kRouters = 4;
  std::uint32_t size = facts.path.routeMtu;
  for (int i = 0; i < kRouters && size > facts.path.overhead; ++i) {
    const auto echo = askPort(endpoint, size, mark, kSlack * 2);
    if (!echo || !echo->mtu || *echo->mtu >= size) return;
    facts.path.toldMtu = size = *echo->mtu;
  }
}

void probePeer(const Machine& machine, const control::PeerSnapshot& peer,
               doctor::PeerFacts& facts) {
  if (!peer.endpoint) return;
  const std::uint32_t mark = machine.view.device.firewallMark;
  const Endpoint& endpoint = *peer.endpoint;
  if (facts.cipher.empty() || facts.unanswered) {
    const auto echo = askPort(endpoint, 0, mark, kPatience / 2);
    if (echo) facts.port = echo->answer;
    auto outside =
        Pinger::open({.target = endpoint.address, .device = "", .source = {}, .mark = mark});
    if (outside) facts.hostAnswers = roundTrip(*outside, kSmallPacket).has_value();
    return;
  }
  probePathMtu(endpoint, mark, facts);
  if (const auto inner = innerAddress(peer)) probeSession(machine, *inner, endpoint, facts);
}

}  // namespace

void probeTunnel(const Machine& machine, doctor::TunnelFacts& facts) {
  const auto& peers = machine.view.device.peers;
  for (std::size_t i = 0; i < std::min({peers.size(), facts.peers.size(), kMostPeers}); ++i) {
    probePeer(machine, peers[i], facts.peers[i]);
  }
  const auto obstacles = nat::obstaclesNow(machine.desired.ruleset);
  for (const MapLeg& leg :
       checkMaps(machine, "", obstacles.value_or(std::vector<nat::Obstacle>{}))) {
    const auto map = std::ranges::find(facts.maps, leg.listen, &doctor::MapFacts::listen);
    if (map == facts.maps.end()) continue;
    map->leg = leg.leg;
    map->detail = leg.detail;
  }
}

}  // namespace adit::cli
