// Echo requests of a raw socket: round trips, the largest packet that comes back, and trains of a
// given rate. Needs CAP_NET_RAW.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "util/address.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli {

class Pinger {
 public:
  struct Path {
    IpAddress target;
    /// The only interface to use; empty leaves that to the routes.
    std::string device;
    /// Unspecified leaves it to the kernel.
    IpAddress source;
    /// SO_MARK; 0 is none.
    std::uint32_t mark = 0;
  };
  /// Packets are sent whole or not at all (IP_PMTUDISC_PROBE).
  static Result<Pinger> open(const Path& path);

  /// The round trip of one packet of `size` bytes, IP header included; nothing where no answer came
  /// within `patience`, or the interface cannot send as much.
  std::optional<std::chrono::microseconds> ping(std::uint32_t size,
                                                std::chrono::milliseconds patience);

  struct Train {
    /// Bits per second of IP packets.
    double offered = 0;
    double delivered = 0;
    /// Lost part, 0 to 1.
    double loss = 0;
    /// The median of the round trips.
    std::chrono::microseconds delay{};
  };
  /// Sends packets of `size` bytes at `rate` bits per second for `duration`, and waits `patience`
  /// for the last answers.
  Train train(double rate, std::uint32_t size, std::chrono::milliseconds duration,
              std::chrono::milliseconds patience);

  /// Of the smallest packets that are sent here.
  static std::uint32_t smallest(bool v6);

 private:
  using Time = std::chrono::steady_clock::time_point;
  Pinger(UniqueFd socket, bool v6, std::uint16_t identity)
      : socket_(std::move(socket)), v6_(v6), identity_(identity) {}

  bool send(std::uint32_t size, std::uint16_t sequence);
  /// The sequence number of an answer that has come; nothing where none has, by `until`.
  std::optional<std::uint16_t> receive(Time until);

  UniqueFd socket_;
  bool v6_;
  std::uint16_t identity_;
  std::uint16_t sequence_ = 0;
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(65536);
};

}  // namespace adit::cli
