// What `adit doctor` sees of a tunnel: the daemon's word, the kernel's routes, rules and sockets,
// and, where asked for, what probes find.
#pragma once

#include <chrono>
#include <string>

#include "cli/machine.hpp"
#include "doctor/observation.hpp"
#include "tune/machine.hpp"

namespace adit::cli {

/// Sends nothing. `nic` is that of the way out.
doctor::TunnelFacts observeTunnel(const Machine& machine, const tune::Files& files,
                                  const std::string& nic);

/// What the peers' counters have grown by since `facts` was taken, `passed` ago.
void observeRates(const control::DeviceView& later, std::chrono::duration<double> passed,
                  doctor::TunnelFacts& facts);

/// Pings through the tunnel and beside it, a datagram to the endpoints' ports, and a stranger's
/// packet to each mapping. Needs CAP_NET_RAW. What cannot be tried stays as it was.
void probeTunnel(const Machine& machine, doctor::TunnelFacts& facts);

}  // namespace adit::cli
