// iperf3: its command line, and what its JSON says. Facts from iperf3 3.12 to 3.18: it ends with
// status 0 although its report holds "error", prints null for a figure that it could not compute,
// and leaves sums out of a run that was cut short.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "bench/model.hpp"

namespace adit::bench {

inline constexpr const char* kIperf = "iperf3";
inline constexpr std::uint16_t kIperfPort = 5201;
inline constexpr unsigned kMaxStreams = 128;

struct IperfRun {
  std::string address;
  std::uint16_t port = kIperfPort;
  Transport transport = Transport::Tcp;
  unsigned streams = 1;
  Direction direction = Direction::Send;
  /// From 1 to 3600.
  unsigned seconds = 5;
  /// UDP: bits per second of all streams together; 0 for as fast as the sender can.
  std::uint64_t udpRate = 0;
};

/// Of the client.
std::vector<std::string> iperfArguments(const IperfRun& run);

/// The figures of a report for `run`. The error is the reason for "no result", in one line.
Result<Figures> parseIperfReport(std::string_view text, const IperfRun& run);

/// The server serves somebody else and will be free.
bool isBusy(const Error& reason);
/// Nobody answers at that address, so that further runs to it are in vain.
bool isUnreachable(const Error& reason);

/// "3.12" of what `iperf3 --version` prints. An error for a version that is too old for its JSON
/// to be relied on.
Result<std::string> checkIperfVersion(std::string_view text);

}  // namespace adit::bench
