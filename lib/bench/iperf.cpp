#include "bench/iperf.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace adit::bench {
namespace {

using Json = nlohmann::json;

constexpr std::pair<unsigned, unsigned> kOldestVersion{3, 12};
constexpr unsigned kConnectMilliseconds = 3000;
/// iperf3's own smallest interval.
constexpr double kShortestInterval = 0.1;
/// Points of a line that a page can show.
constexpr double kIntervals = 40;
/// A run that ended before this part of its time was cut short.
constexpr double kLeastPart = 0.5;

/// Null where a member on the way is missing or not an object.
const Json* at(const Json& json, std::initializer_list<const char*> path) {
  const Json* now = &json;
  for (const char* name : path) {
    if (!now->is_object()) return nullptr;
    const auto found = now->find(name);
    if (found == now->end()) return nullptr;
    now = &*found;
  }
  return now;
}

/// Finite and not negative, else nothing.
std::optional<double> numberAt(const Json& json, std::initializer_list<const char*> path) {
  const Json* found = at(json, path);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

std::string oneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

Result<Json> reportOf(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail("iperf3 printed nothing");
  }
  Json report = Json::parse(text, nullptr, false);
  if (report.is_discarded() || !report.is_object()) {
    return fail("iperf3's report is not JSON, or was cut off");
  }
  if (const Json* error = at(report, {"error"})) {
    return fail("iperf3: {}",
                oneLine(error->is_string() ? error->get<std::string>() : error->dump()));
  }
  const Json* end = at(report, {"end"});
  if (end == nullptr || !end->is_object() || end->empty()) {
    return fail("iperf3's report has no end: the run was interrupted");
  }
  return report;
}

struct Received {
  double bytes;
  double seconds;
};

Result<Received> receivedTcp(const Json& report) {
  if (at(report, {"end", "sum_received"}) == nullptr) {
    return fail("iperf3's report lacks the receiver's sum: the run was interrupted");
  }
  const auto rate = numberAt(report, {"end", "sum_received", "bits_per_second"});
  const auto bytes = numberAt(report, {"end", "sum_received", "bytes"});
  const auto seconds = numberAt(report, {"end", "sum_received", "seconds"});
  if (!rate || !bytes || !seconds) return fail("iperf3's receiver has no figure (nan)");
  return Received{*bytes, *seconds};
}

/// "sum" alone mixes the sender's bytes with the receiver's losses; datagrams can be relied on.
/// Received with -R, "sum" counts datagrams that the receiver had no time for either.
Result<Received> receivedUdp(const Json& report, std::optional<double>& lostPercent) {
  const Json* end = at(report, {"end"});
  const char* const which =
      at(*end, {"sum_received", "packets"}) != nullptr ? "sum_received" : "sum";
  if (at(*end, {which}) == nullptr) {
    return fail("iperf3's report lacks the receiver's sum: the run was interrupted");
  }
  const auto packets = numberAt(*end, {which, "packets"});
  const auto lost = numberAt(*end, {which, "lost_packets"});
  const auto seconds = numberAt(*end, {which, "seconds"});
  const auto length = numberAt(report, {"start", "test_start", "blksize"});
  if (!packets || !lost || !seconds || !length) {
    return fail("iperf3's receiver has no figure (nan)");
  }
  const double arrived = *packets - *lost;
  if (*packets > 0 && arrived <= 0) return fail("none of {} datagrams arrived", *packets);
  if (*packets > 0) lostPercent = 100 * *lost / *packets;
  return Received{arrived * *length, *seconds};
}

std::vector<Sample> seriesOf(const Json& report) {
  std::vector<Sample> series;
  const Json* intervals = at(report, {"intervals"});
  if (intervals == nullptr || !intervals->is_array()) return series;
  for (const Json& interval : *intervals) {
    const auto end = numberAt(interval, {"sum", "end"});
    const auto rate = numberAt(interval, {"sum", "bits_per_second"});
    // The last one may be a few microseconds long and say nothing.
    const auto seconds = numberAt(interval, {"sum", "seconds"});
    if (end && rate && seconds.value_or(0) >= kShortestInterval / 2) {
      series.push_back({*end, *rate / 1e6});
    }
  }
  return series;
}

std::optional<double> roundTripOf(const Json& streams) {
  double sum = 0;
  unsigned count = 0;
  for (const Json& stream : streams) {
    if (const auto mean = numberAt(stream, {"sender", "mean_rtt"}); mean && *mean > 0) {
      sum += *mean / 1000;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

std::vector<std::string> iperfArguments(const IperfRun& run) {
  const double interval = std::max(kShortestInterval, run.seconds / kIntervals);
  std::vector<std::string> arguments{kIperf,
                                     "-J",
                                     "-c",
                                     run.address,
                                     "-p",
                                     std::to_string(run.port),
                                     "-t",
                                     std::to_string(run.seconds),
                                     "-P",
                                     std::to_string(run.streams),
                                     "-i",
                                     fmt::format("{:.3g}", interval),
                                     "--connect-timeout",
                                     std::to_string(kConnectMilliseconds)};
  if (run.direction == Direction::Receive) arguments.emplace_back("-R");
  if (run.transport == Transport::Udp) {
    // iperf3's rate is that of each stream.
    const std::uint64_t each =
        run.udpRate == 0 ? 0 : std::max<std::uint64_t>(run.udpRate / run.streams, 1);
    arguments.insert(arguments.end(), {"-u", "-b", std::to_string(each)});
  }
  return arguments;
}

Result<Figures> parseIperfReport(std::string_view text, const IperfRun& run) {
  const auto report = reportOf(text);
  if (!report) return tl::unexpected(report.error());
  Figures figures;
  const bool udp = run.transport == Transport::Udp;
  const auto received = udp ? receivedUdp(*report, figures.lostPercent) : receivedTcp(*report);
  if (!received) return tl::unexpected(received.error());
  if (received->bytes <= 0) return fail("nothing arrived");
  if (received->seconds < kLeastPart * run.seconds) {
    return fail("iperf3 ended after {:.1f} of {} s", received->seconds, run.seconds);
  }
  const Json* streams = at(*report, {"end", "streams"});
  const std::size_t count = streams != nullptr && streams->is_array() ? streams->size() : 0;
  if (count != run.streams) return fail("iperf3 ran {} of {} streams", count, run.streams);
  figures.seconds = received->seconds;
  figures.mbps = received->bytes * 8 / received->seconds / 1e6;
  // A sender of datagrams only knows what it sent.
  if (!udp || run.direction == Direction::Receive) figures.series = seriesOf(*report);
  if (!udp) {
    if (const auto again = numberAt(*report, {"end", "sum_sent", "retransmits"})) {
      figures.retransmits = static_cast<std::uint64_t>(*again);
    }
    figures.roundTrip = roundTripOf(*streams);
    if (const Json* name = at(*report, {"end", "sender_tcp_congestion"});
        name != nullptr && name->is_string()) {
      figures.congestion = name->get<std::string>();
    }
  }
  return figures;
}

bool isBusy(const Error& reason) {
  return reason.message.find("server is busy") != std::string::npos;
}

bool isUnreachable(const Error& reason) {
  return reason.message.find("unable to connect") != std::string::npos;
}

Result<std::string> checkIperfVersion(std::string_view text) {
  constexpr std::string_view kBefore = "iperf ";
  const auto start = text.find(kBefore);
  std::pair<unsigned, unsigned> version{};
  if (start != std::string_view::npos) {
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data() + start + kBefore.size(), end, version.first);
    if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
      std::from_chars(major.ptr + 1, end, version.second);
    }
  }
  if (version.first == 0) return fail("`iperf3 --version` does not tell a version");
  if (version < kOldestVersion) {
    return fail("iperf3 {}.{} is too old, its reports cannot be relied on: install {}.{} or newer",
                version.first, version.second, kOldestVersion.first, kOldestVersion.second);
  }
  return fmt::format("{}.{}", version.first, version.second);
}

}  // namespace adit::bench
