// A stranger's packet to a mapped port, and what becomes of it on its way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "nat/mapping.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::cli {

enum class Echo : std::uint8_t {
  Answered,     ///< the service takes connections, or has sent a datagram
  Refused,      ///< the target says that nobody listens on the port
  Unreachable,  ///< somebody on the way says that it cannot be reached
  Silent,
};

/// Sends one TCP SYN, or one empty UDP datagram, to `target` out of the interface, below all rules
/// of this machine, with `source` as its source, and waits for the answer at the same place. Needs
/// CAP_NET_RAW. What the kernel does with the answer is not its business: it has no such
/// connection.
Result<Echo> probe(const std::string& interface, nat::Protocol protocol, const IpAddress& source,
                   const Endpoint& target, std::chrono::milliseconds patience);

struct Path {
  /// The public NIC, where the packet comes in.
  std::string publicInterface;
  /// What it is addressed to there.
  Endpoint listen;
  std::string tunnel;
  /// What the mapping makes of that.
  Endpoint target;
};

/// How far a packet came; the answer is `echo` once it has left by the public NIC.
struct Journey {
  bool intoTunnel = false;
  bool answerOutOfTunnel = false;
  Echo echo = Echo::Silent;
};

/// Lets the same packet come in by the public NIC, as a client's does, so that all rules and routes
/// of this machine judge it, and watches where it and its answer pass. A stranger's answer is sent
/// to `source`, which should be nobody's address. Needs CAP_NET_ADMIN, CAP_NET_RAW, /dev/net/tun
/// and the kernel's act_mirred: an error where the packet cannot be made to come in.
Result<Journey> travel(const Path& path, nat::Protocol protocol, const IpAddress& source,
                       std::chrono::milliseconds patience);

}  // namespace adit::cli
