// A way for packets to come in by an interface although nobody has sent them there.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cli/probe_packet.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli {

/// An interface of its own whose packets are redirected to another's entrance. The kernel removes
/// it with the descriptor, so that not even a kill leaves anything behind.
class Gate {
 public:
  static Result<Gate> open(const std::string& into);

  /// One IP packet comes in.
  [[nodiscard]] Result<void> send(const Bytes& packet) const;

 private:
  explicit Gate(UniqueFd tap) : tap_(std::move(tap)) {}

  UniqueFd tap_;
  /// Of the interface: what is addressed to it is for this host.
  std::array<std::uint8_t, 6> address_{};
};

}  // namespace adit::cli
