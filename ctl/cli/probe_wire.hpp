// What passes an interface, as a capture shows it.
#pragma once

#include <linux/if_packet.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/probe_packet.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli {

/// A socket that sends and sees the IP packets of one interface. Needs CAP_NET_RAW.
class Wire {
 public:
  static Result<Wire> open(const std::string& interface);

  Result<void> send(const Bytes& packet) const;

  struct Seen {
    /// Valid until the next one.
    std::span<const std::uint8_t> packet;
    bool outgoing = false;
  };
  /// The next packet, if there is one already.
  std::optional<Seen> next();
  [[nodiscard]] int descriptor() const { return socket_.get(); }

 private:
  Wire(UniqueFd socket, const sockaddr_ll& address)
      : socket_(std::move(socket)), address_(address) {}

  UniqueFd socket_;
  sockaddr_ll address_;
  std::array<std::uint8_t, 2048> buffer_{};
};

/// Waits until a wire has something to see; false at the deadline.
bool waitFor(std::initializer_list<const Wire*> wires, std::chrono::steady_clock::time_point end);

}  // namespace adit::cli
