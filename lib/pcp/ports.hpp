// The choice of external ports.
#pragma once

#include <string>

#include "pcp/host.hpp"
#include "pcp/lease.hpp"
#include "pcp/result_code.hpp"
#include "util/result.hpp"

namespace adit::pcp {

/// What is wished for, beside the lease itself.
struct PortWish {
  /// 0 for no wish.
  std::uint16_t external = 0;
  /// No other port and no smaller set will do.
  bool exactly = false;
  /// The first external port must be odd where the first internal one is, and even where that is.
  bool parity = false;
  /// As many ports as may lead to ones of another number.
  std::size_t mostShifted = 65535;
};

struct Refusal {
  ResultCode code = ResultCode::Success;
  /// For people, on both sides.
  std::string reason = {};
};

/// Sets the external ports of `lease`, and its size where fewer are free than it wants: those
/// wished for, else the ones that equal the internal ones, else the largest free run among the
/// peer's grants.
std::optional<Refusal> choosePorts(const PeerPolicy& peer, const LeaseTable& leases,
                                   const Host& host, const PortWish& wish, Lease& lease);

/// Whether the peer's grants hold all ports of a range, in one entry or in several.
bool isGranted(const PeerPolicy& peer, const PortRange& ports);

/// "tcp/8000-9000, udp/51413"; "nothing" without grants.
std::string grantsText(const PeerPolicy& peer);

}  // namespace adit::pcp
