// TCP in the tunnel: window and congestion control, against bandwidth x delay.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

/// What `adit tune` assumes, too.
constexpr double kAssumedBandwidth = 1e9;
/// Half of a buffer is window, the rest is the kernel's bookkeeping (tcp_adv_win_scale).
constexpr double kWindowShare = 0.5;
/// Round trips differ by some: what carries this part is not too small.
constexpr double kNearlyAll = 0.75;
/// Below this delay the congestion control makes little difference.
constexpr auto kLong = std::chrono::milliseconds(20);
constexpr double kLossy = 0.005;
/// Part of the busy time that connections wait for a buffer.
constexpr double kOftenWaits = 0.3;

struct Path {
  const TunnelFacts* tunnel = nullptr;
  const PeerFacts* peer = nullptr;
  std::chrono::microseconds delay{};
};

/// The longest of the paths whose delay is known.
std::optional<Path> longestPath(const std::vector<TunnelFacts>& tunnels) {
  std::optional<Path> longest;
  for (const TunnelFacts& tunnel : tunnels) {
    for (const PeerFacts& peer : tunnel.peers) {
      if (peer.delay && (!longest || peer.delay->value > longest->delay)) {
        longest = Path{&tunnel, &peer, peer.delay->value};
      }
    }
  }
  return longest;
}

Measured<double> bandwidthOf(const Observation& seen, const Path& path) {
  if (seen.bandwidth) return {static_cast<double>(*seen.bandwidth), "given"};
  if (path.peer->sample && path.peer->sample->loss > 0) {
    return {path.peer->sample->delivered, "measured"};
  }
  if (seen.machine.nicSpeed) {
    return {static_cast<double>(*seen.machine.nicSpeed), "the NIC's speed"};
  }
  return {kAssumedBandwidth, "assumed"};
}

std::string_view nameOfSmaller(const TcpSettings& tcp) {
  return tcp.receiveMaximum <= tcp.sendMaximum ? "tcp_rmem" : "tcp_wmem";
}

void judgeBuffers(const Observation& seen, const Path& path, Findings& out) {
  const TcpSettings& tcp = seen.machine.tcp;
  const auto smaller = static_cast<double>(std::min(tcp.receiveMaximum, tcp.sendMaximum));
  if (smaller <= 0) return;
  const double seconds = static_cast<double>(path.delay.count()) / 1e6;
  const Measured<double> bandwidth = bandwidthOf(seen, path);
  const double window = smaller * kWindowShare;
  const double needed = bandwidth.value / 8 * seconds;
  if (seconds <= 0 || window >= needed * kNearlyAll) return;
  const double ceiling = window * 8 / seconds;
  std::string evidence = fmt::format(
      "{} allows {}, half of it window; {} ({}) x {} ({}) needs {} of window; one connection "
      "cannot exceed {}",
      nameOfSmaller(tcp), sizeText(smaller), rateText(bandwidth.value), bandwidth.source,
      delayText(path.delay), path.peer->delay->source, sizeText(needed), rateText(ceiling));
  out.push_back({"tcp-buffers", Severity::Slow,
                 fmt::format("{}: TCP buffers of this machine are too small for the path to peer "
                             "{}: a connection gets at most {} of {}",
                             path.tunnel->name, path.peer->label, rateText(ceiling),
                             rateText(bandwidth.value)),
                 std::move(evidence),
                 fmt::format("`adit tune apply --bandwidth {} --delay {}ms` on both sides",
                             rateArgument(bandwidth.value),
                             std::max<std::int64_t>(1, (path.delay.count() + 999) / 1000))});
}

bool isBbr(const TcpSettings& tcp) {
  return tcp.congestionControl.starts_with("bbr");
}

double retransmitted(const TunnelFacts& tunnel) {
  return tunnel.tcp ? tunnel.tcp->retransmitted : 0;
}

/// Not finding BBR in the list of what is loaded says nothing: it may be loaded on demand.
void judgeCongestionControl(const Observation& seen, const std::optional<Path>& path,
                            Findings& out) {
  const TcpSettings& tcp = seen.machine.tcp;
  if (tcp.congestionControl.empty() || isBbr(tcp)) return;
  const TunnelFacts* lossy = nullptr;
  for (const TunnelFacts& tunnel : seen.tunnels) {
    if (retransmitted(tunnel) >= kLossy) lossy = &tunnel;
  }
  const bool isLong = path && path->delay >= kLong;
  std::string evidence = fmt::format("tcp_congestion_control = {}", tcp.congestionControl);
  if (isLong) {
    evidence += fmt::format("; round trip to peer {} {} ({})", path->peer->label,
                            delayText(path->delay), path->peer->delay->source);
  }
  if (lossy != nullptr) {
    evidence += fmt::format("; {:.1f} % of the segments through {} were sent again (ss -ti)",
                            retransmitted(*lossy) * 100, lossy->name);
  }
  const bool matters = isLong || lossy != nullptr;
  out.push_back(
      {"congestion-control", matters ? Severity::Slow : Severity::Advice,
       fmt::format("connections that this machine sends use {}, which {} on paths with loss or "
                   "long delay",
                   tcp.congestionControl, matters ? "gives up its rate" : "would give up its rate"),
       std::move(evidence), "`adit tune apply` (CongestionControl = bbr)"});
}

void judgeWaits(const TunnelFacts& tunnel, Findings& out) {
  if (!tunnel.tcp || tunnel.tcp->connections == 0) return;
  const TcpWaits& waits = *tunnel.tcp;
  if (waits.bySendBuffer < kOftenWaits && waits.byReceiver < kOftenWaits) return;
  const bool own = waits.bySendBuffer >= waits.byReceiver;
  out.push_back(
      {"tcp-window", Severity::Slow,
       own ? fmt::format("{}: connections wait for their send buffer (tcp_wmem here)", tunnel.name)
           : fmt::format(
                 "{}: connections wait for the receiver's window (tcp_rmem, or the program, "
                 "on the other side)",
                 tunnel.name),
       fmt::format("{} of the busy time of {} connections (ss -ti: {})",
                   percentText(own ? waits.bySendBuffer : waits.byReceiver), waits.connections,
                   own ? "sndbuf_limited" : "rwnd_limited"),
       own ? "`adit tune apply` here, with --bandwidth and --delay of the path"
           : "`adit tune apply` on the other side, with --bandwidth and --delay of the path"});
}

}  // namespace

void judgeTcp(const Observation& seen, Findings& out) {
  const auto path = longestPath(seen.tunnels);
  if (path) judgeBuffers(seen, *path, out);
  judgeCongestionControl(seen, path, out);
  for (const TunnelFacts& tunnel : seen.tunnels) {
    judgeWaits(tunnel, out);
  }
}

}  // namespace adit::doctor
