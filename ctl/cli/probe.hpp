// A packet of a stranger into the tunnel, and what comes back: the way that a client's packets take
// from the server on, whatever firewall this machine has.
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

}  // namespace adit::cli
