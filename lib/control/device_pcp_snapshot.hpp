// Requests for ports as status shows them, on the side that asks and on the side that is asked.
#pragma once

#include <cstdint>
#include <string>

namespace adit::control {

struct PortRequestSnapshot {
  enum class Role : std::uint8_t {
    Lease,    ///< a peer has it from us
    Refusal,  ///< a peer asked for it in vain
    Request,  ///< our own, to the server
  } role = Role::Lease;
  enum class State : std::uint8_t { Asking, Granted, Refused } state = State::Granted;
  /// The peer that asked; of our own requests empty.
  std::string peer = {};
  /// "PCP" or "NAT-PMP".
  std::string protocol = {};
  /// "tcp/18080", "udp/5000-5009"
  std::string listen = {};
  /// "10.10.0.2:80"
  std::string target = {};
  /// Why it is refused, or what is different from what was asked for; else empty.
  std::string reason = {};
  /// Seconds until it ends unless it is renewed; 0 where nothing is granted.
  std::uint64_t lifetime = 0;
};

}  // namespace adit::control
