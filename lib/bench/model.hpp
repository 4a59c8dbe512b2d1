// What a benchmark measures and what comes out: layers, steps, figures. A step without figures has
// a reason instead, and is never a zero.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"

namespace adit::bench {

/// What the traffic crosses, from the bottom up.
enum class Layer : std::uint8_t {
  Bare,    ///< the network between the endpoints, unencrypted
  Tunnel,  ///< the tunnel's addresses
  Mapped,  ///< a port of the public server that leads through the tunnel
};
inline constexpr std::array kLayers{Layer::Bare, Layer::Tunnel, Layer::Mapped};
/// "bare", "tunnel", "mapped".
std::string_view layerName(Layer layer);
std::optional<Layer> layerFromName(std::string_view name);
/// For people: "bare link", "tunnel", "mapped port".
std::string_view layerTitle(Layer layer);

enum class Transport : std::uint8_t { Tcp, Udp };
/// Whether the side that runs the benchmark sends or receives.
enum class Direction : std::uint8_t { Send, Receive };

/// One run of iperf3.
struct Step {
  Layer layer = Layer::Bare;
  Transport transport = Transport::Tcp;
  /// From 1 to 128, as iperf3 has it.
  unsigned streams = 1;
  Direction direction = Direction::Send;
  friend bool operator==(const Step&, const Step&) = default;
};
/// "tunnel, TCP, 4 streams, send"
std::string stepTitle(const Step& step);
/// The same without the layer.
std::string loadTitle(const Step& step);

/// Throughput of one interval. Times in seconds since the step's start, rates in 10^6 bits/s.
struct Sample {
  double end = 0;
  double mbps = 0;
};

/// What a run measured, at the receiver.
struct Figures {
  /// 10^6 bits of payload per second; above zero.
  double mbps = 0;
  /// How long it ran.
  double seconds = 0;
  /// TCP: segments sent again, of all streams; nothing where the sender does not tell.
  std::optional<std::uint64_t> retransmits;
  /// TCP: mean round trip of the streams, milliseconds.
  std::optional<double> roundTrip;
  /// UDP: datagrams that did not arrive, percent.
  std::optional<double> lostPercent;
  /// The sender's congestion control.
  std::string congestion;
  std::vector<Sample> series;
};

/// How a processor spent its time, in percent of that time; the rest was idle.
struct CoreLoad {
  unsigned cpu = 0;
  double user = 0;
  double system = 0;
  double softirq = 0;
  /// Hard interrupts.
  double irq = 0;
  /// Taken by the hypervisor.
  double steal = 0;
  /// NET_RX soft interrupts per second.
  double receivedPerSecond = 0;
  [[nodiscard]] double busy() const { return user + system + softirq + irq + steal; }
};

struct StepResult {
  Step step;
  /// "10.10.0.2:5201"; empty where there is none.
  std::string target;
  /// Or why there are none.
  Result<Figures> figures = fail("not run");
  /// Of the machine that runs the benchmark, by number; empty where nothing ran.
  std::vector<CoreLoad> cores;
};

/// The core that had least left; null where none is known.
const CoreLoad* busiestCore(const StepResult& result);

/// What the cipher and the link beneath allow.
struct Ceiling {
  /// 10^6 bits per second: the smaller of the two below.
  double mbps = 0;
  /// The best that TCP did over the bare link.
  double linkMbps = 0;
  /// One core that does nothing but seal, or open, whichever is slower.
  double cipherMbps = 0;
};

/// The machine, the tunnel, and all results.
struct Report {
  /// RFC 3339, UTC.
  std::string started;
  std::string aditVersion;
  std::string iperfVersion;
  std::string kernel;
  std::string processor;
  unsigned cores = 0;
  /// "local", or "peer".
  std::string mode;
  std::string peer;
  std::string interface;
  /// Empty where they are not known; see `notes`.
  std::string backend;
  std::string suite;
  std::uint32_t mtu = 0;
  bool interrupted = false;
  std::vector<StepResult> results;
  Result<Ceiling> ceiling = fail("nothing was measured");
  /// What the person has to know to read the figures.
  std::vector<std::string> notes;
};

/// The result of exactly this step; null where it was not planned.
const StepResult* findStep(const Report& report, const Step& step);
/// At least one step has figures.
bool measuredAnything(const Report& report);
/// From the report's own figures and the speed of its cipher (10^6 bytes per second and core).
/// An error says what is missing.
Result<Ceiling> ceilingOf(const Report& report, std::optional<double> cipherMegabytes);

}  // namespace adit::bench
