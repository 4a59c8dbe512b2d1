// The outer path: what fits through it, and how fast it lets UDP pass.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

/// A smaller MTU carries no IPv6 (RFC 8200, section 5).
constexpr std::uint32_t kSmallestV6 = 1280;
/// A policer drops without queueing: the delay under load stays what it was, and some.
constexpr auto kNoQueue = std::chrono::milliseconds(10);
constexpr double kMuchLoss = 0.1;
/// What is lost outside the tunnel at that rate must be far less.
constexpr double kLessOutside = 3;

std::string mtuRemedy(const TunnelFacts& tunnel, std::uint32_t mtu) {
  std::string text =
      fmt::format("MTU = {} in [Interface] of both sides, then `adit reload {}`", mtu, tunnel.name);
  if (mtu < kSmallestV6) text += "; IPv6 in the tunnel needs 1280, and cannot work on this path";
  return text;
}

void judgeProbe(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  const PathFacts& path = peer.path;
  if (path.largestAnswered >= tunnel.mtu) return;
  const bool told = path.toldMtu && *path.toldMtu < tunnel.mtu + path.overhead;
  out.push_back(
      {"path-mtu-black-hole", Severity::Fault,
       fmt::format("{}: large packets to peer {} vanish: the path carries less than the tunnel's "
                   "MTU of {}{}",
                   tunnel.name, peer.label, tunnel.mtu,
                   told ? "" : ", and no router says so (a black hole)"),
       fmt::format("pings of {} bytes through the tunnel are answered, larger ones are not{}",
                   path.largestAnswered,
                   told ? fmt::format("; a router reports an MTU of {}", *path.toldMtu) : ""),
       mtuRemedy(tunnel, path.largestAnswered)});
}

void judgePeer(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  const PathFacts& path = peer.path;
  if (path.overhead == 0 || tunnel.mtu == 0) return;
  if (path.probed && path.smallAnswered && path.largestAnswered < tunnel.mtu) {
    return judgeProbe(tunnel, peer, out);
  }
  const std::uint32_t known =
      path.toldMtu ? std::min(*path.toldMtu, path.routeMtu == 0 ? *path.toldMtu : path.routeMtu)
                   : path.routeMtu;
  if (known <= path.overhead || tunnel.mtu + path.overhead <= known) return;
  out.push_back(
      {"path-mtu-small", Severity::Slow,
       fmt::format("{}: full packets to peer {} are split into two datagrams, for the path's MTU "
                   "is smaller than assumed",
                   tunnel.name, peer.label),
       fmt::format("MTU {} of the tunnel + {} bytes of headers > {} ({})", tunnel.mtu,
                   path.overhead, known,
                   path.toldMtu ? "told by a router, ICMP" : "of the route to the endpoint"),
       mtuRemedy(tunnel, known - path.overhead)});
}

}  // namespace

void judgePathMtu(const TunnelFacts& tunnel, Findings& out) {
  for (const PeerFacts& peer : tunnel.peers) {
    judgePeer(tunnel, peer, out);
  }
}

void judgePolicing(const TunnelFacts& tunnel, Findings& out) {
  for (const PeerFacts& peer : tunnel.peers) {
    if (!peer.sample || peer.sample->loss < kMuchLoss) continue;
    const RateSample& sample = *peer.sample;
    const bool queued = sample.loadedDelay > sample.idleDelay * 3 / 2 + kNoQueue;
    const bool outsideToo = sample.lossOutside && *sample.lossOutside * kLessOutside > sample.loss;
    std::string evidence =
        fmt::format("at {} {} is lost and {} arrives; round trip {} idle, {} loaded",
                    rateText(sample.offered), percentText(sample.loss), rateText(sample.delivered),
                    delayText(sample.idleDelay), delayText(sample.loadedDelay));
    if (sample.lossOutside) {
      evidence += fmt::format("; pings beside the tunnel at that rate lose {}",
                              percentText(*sample.lossOutside));
    }
    if (queued || outsideToo) {
      out.push_back({"path-slow", Severity::Slow,
                     fmt::format("{}: the path to peer {} itself carries no more than {}",
                                 tunnel.name, peer.label, rateText(sample.delivered)),
                     std::move(evidence),
                     fmt::format("a faster link, or tell TCP: `adit tune apply --bandwidth {} "
                                 "--delay {:.0f}ms`",
                                 rateArgument(sample.delivered),
                                 static_cast<double>(sample.idleDelay.count()) / 1000 + 1)});
      continue;
    }
    out.push_back(
        {"udp-policed", Severity::Slow,
         fmt::format("{}: somebody on the way to peer {} limits this UDP flow to {} and drops the "
                     "rest",
                     tunnel.name, peer.label, rateText(sample.delivered)),
         std::move(evidence),
         fmt::format("another port may be treated better: ListenPort = 443 there and Endpoint = "
                     "…:443 here; else `adit tune apply {}` for BBR, which bears the loss, and ask "
                     "the provider",
                     tunnel.name)});
  }
}

}  // namespace adit::doctor
