#include "pcp/ports.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace adit::pcp {
namespace {

constexpr unsigned kLastPort = 65535;

/// Puts the external side of a lease at `first` where all of it fits; else says why not.
std::optional<Refusal> place(const PeerPolicy& peer, const LeaseTable& leases, const Host& host,
                             std::uint16_t first, Lease& lease) {
  if (first + lease.size - 1U > kLastPort) {
    return Refusal{ResultCode::CannotProvideExternal,
                   fmt::format("{} ports from {} on pass {}", lease.size, first, kLastPort)};
  }
  lease.firstExternal = first;
  const PortRange wanted = lease.external();
  if (!isGranted(peer, wanted)) {
    return Refusal{ResultCode::NotAuthorized,
                   fmt::format("{} is not within AllowMaps of {} ({})", wanted.toString(),
                               peer.name, grantsText(peer))};
  }
  if (leases.isHeld(lease)) {
    return Refusal{ResultCode::CannotProvideExternal,
                   fmt::format("{} is held by another request", wanted.toString())};
  }
  if (const auto holder = host.holderOf(wanted, lease.target.family())) {
    return Refusal{ResultCode::CannotProvideExternal, *holder};
  }
  return std::nullopt;
}

/// A run of free ports.
struct Run {
  unsigned first = 0;
  unsigned size = 0;
};

/// The largest run of at most `lease.size` free ports among the grants.
Run largestRun(const PeerPolicy& peer, const LeaseTable& leases, const Host& host, bool parity,
               const Lease& lease) {
  const int family = lease.target.family();
  const auto held = leases.heldPorts(lease.protocol);
  Run best;
  for (const PortRange& grant : peer.grants) {
    Run run;
    for (unsigned port = grant.first; port <= grant.last && grant.protocol == lease.protocol;
         ++port) {
      const auto number = static_cast<std::uint16_t>(port);
      if (held.test(number) || host.isHeld(lease.protocol, number, family)) {
        run.size = 0;
        continue;
      }
      if (run.size == 0 && parity && port % 2 != lease.firstInternal % 2U) {
        continue;
      }
      run = run.size == 0 ? Run{port, 1} : Run{run.first, run.size + 1};
      if (run.size > best.size) {
        best = run;
      }
      if (best.size == lease.size) {
        return best;
      }
    }
  }
  return best;
}

/// Makes the lease small enough for ports that differ from its internal ones.
std::optional<Refusal> fitShifted(const PeerPolicy& peer, const PortWish& wish, Lease& lease) {
  if (wish.mostShifted == 0) {
    return Refusal{
        ResultCode::UserExceededQuota,
        fmt::format("{} has as many ports that lead to ports of another number as it may",
                    peer.name)};
  }
  lease.size = static_cast<std::uint16_t>(std::min<std::size_t>(lease.size, wish.mostShifted));
  return std::nullopt;
}

}  // namespace

bool isGranted(const PeerPolicy& peer, const PortRange& ports) {
  unsigned next = ports.first;
  for (bool advanced = true; advanced && next <= ports.last;) {
    advanced = false;
    for (const PortRange& grant : peer.grants) {
      if (next <= ports.last && grant.contains(ports.protocol, next)) {
        next = grant.last + 1U;
        advanced = true;
      }
    }
  }
  return next > ports.last;
}

std::string grantsText(const PeerPolicy& peer) {
  std::string text;
  for (const PortRange& grant : peer.grants) {
    text += (text.empty() ? "" : ", ") + grant.toString();
  }
  return text.empty() ? "nothing" : text;
}

std::optional<Refusal> choosePorts(const PeerPolicy& peer, const LeaseTable& leases,
                                   const Host& host, const PortWish& wish, Lease& lease) {
  const bool any = std::ranges::any_of(
      peer.grants, [&](const PortRange& grant) { return grant.protocol == lease.protocol; });
  const std::uint16_t first = wish.external != 0 ? wish.external : lease.firstInternal;
  const bool odd = wish.parity && first % 2 != lease.firstInternal % 2;
  auto refusal = first == lease.firstInternal ? std::nullopt : fitShifted(peer, wish, lease);
  if (!refusal) {
    refusal = place(peer, leases, host, first, lease);
  }
  if ((!refusal && !odd) || wish.exactly || !any) {
    return refusal;
  }
  if (auto tooMany = fitShifted(peer, wish, lease)) {
    return tooMany;
  }
  const Run run = largestRun(peer, leases, host, wish.parity, lease);
  if (run.size == 0) {
    return refusal ? refusal
                   : Refusal{ResultCode::NoResources,
                             fmt::format("no port of AllowMaps of {} ({}) is free", peer.name,
                                         grantsText(peer))};
  }
  lease.firstExternal = static_cast<std::uint16_t>(run.first);
  lease.size = static_cast<std::uint16_t>(run.size);
  return std::nullopt;
}

}  // namespace adit::pcp
