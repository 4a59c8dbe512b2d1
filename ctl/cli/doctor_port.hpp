// One datagram that may not be split, to a tunnel's port: what the network says about it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "doctor/observation.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct PortEcho {
  doctor::PortAnswer answer = doctor::PortAnswer::Silent;
  /// A router reports that it carries no more than this.
  std::optional<std::uint32_t> mtu;
};

/// Sends zeros, which every tunnel drops and counts as malformed, in a packet of `size` bytes with
/// its IP header; `mark` is SO_MARK.
Result<PortEcho> askPort(const Endpoint& endpoint, std::uint32_t size, std::uint32_t mark,
                         std::chrono::milliseconds patience);

}  // namespace adit::cli
