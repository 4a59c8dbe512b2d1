#include "bench/report_json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/iperf.hpp"

namespace adit::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Of the format; raised when an old program would misread a new file.
constexpr int kFormat = 1;
/// More than one run has of either.
constexpr std::size_t kMostSamples = 100'000;

/// Three digits behind the point: what is measured does not have more.
double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

Json optionalJson(const std::optional<double>& value) {
  return value ? Json(rounded(*value)) : Json();
}

Json coreJson(const CoreLoad& core) {
  return {{"cpu", core.cpu},
          {"busy_percent", rounded(core.busy())},
          {"user_percent", rounded(core.user)},
          {"system_percent", rounded(core.system)},
          {"softirq_percent", rounded(core.softirq)},
          {"irq_percent", rounded(core.irq)},
          {"steal_percent", rounded(core.steal)},
          {"net_rx_per_second", rounded(core.receivedPerSecond)}};
}

Json resultJson(const StepResult& result) {
  const Step& step = result.step;
  Json json{{"layer", layerName(step.layer)},
            {"protocol", step.transport == Transport::Tcp ? "tcp" : "udp"},
            {"streams", step.streams},
            {"direction", step.direction == Direction::Send ? "send" : "receive"},
            {"target", result.target},
            {"mbps", nullptr},
            {"reason", nullptr}};
  if (!result.figures) {
    json["reason"] = result.figures.error().message;
  } else {
    const Figures& figures = *result.figures;
    json["mbps"] = rounded(figures.mbps);
    json["seconds"] = rounded(figures.seconds);
    json["retransmits"] = figures.retransmits ? Json(*figures.retransmits) : Json();
    json["rtt_ms"] = optionalJson(figures.roundTrip);
    json["lost_percent"] = optionalJson(figures.lostPercent);
    json["congestion"] = figures.congestion.empty() ? Json() : Json(figures.congestion);
    json["series"] = Json::array();
    for (const Sample& sample : figures.series) {
      json["series"].push_back({{"end", rounded(sample.end)}, {"mbps", rounded(sample.mbps)}});
    }
  }
  json["cores"] = Json::array();
  for (const CoreLoad& core : result.cores) {
    json["cores"].push_back(coreJson(core));
  }
  return json;
}

Json ceilingJson(const Result<Ceiling>& ceiling) {
  if (!ceiling) return {{"mbps", nullptr}, {"reason", ceiling.error().message}};
  return {{"mbps", rounded(ceiling->mbps)},
          {"link_mbps", rounded(ceiling->linkMbps)},
          {"cipher_mbps_per_core", rounded(ceiling->cipherMbps)}};
}

Json textJson(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

std::string textAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Finite and not negative, else nothing.
std::optional<double> numberAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

unsigned countAt(const Json& json, const char* name) {
  constexpr double kMost = 1e6;
  return static_cast<unsigned>(std::min(numberAt(json, name).value_or(0), kMost));
}

/// The objects of an array; none where there is no such array.
std::vector<const Json*> objectsAt(const Json& json, const char* name) {
  std::vector<const Json*> objects;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return objects;
  for (const Json& each : *found) {
    if (each.is_object() && objects.size() < kMostSamples) objects.push_back(&each);
  }
  return objects;
}

CoreLoad coreOf(const Json& json) {
  const auto percent = [&](const char* name) {
    return std::min(numberAt(json, name).value_or(0), 100.0);
  };
  return {.cpu = countAt(json, "cpu"),
          .user = percent("user_percent"),
          .system = percent("system_percent"),
          .softirq = percent("softirq_percent"),
          .irq = percent("irq_percent"),
          .steal = percent("steal_percent"),
          .receivedPerSecond = numberAt(json, "net_rx_per_second").value_or(0)};
}

Result<Step> stepOf(const Json& json) {
  const auto layer = layerFromName(textAt(json, "layer"));
  const std::string protocol = textAt(json, "protocol");
  const std::string direction = textAt(json, "direction");
  const unsigned streams = countAt(json, "streams");
  if (!layer || (protocol != "tcp" && protocol != "udp") ||
      (direction != "send" && direction != "receive") || streams < 1 || streams > kMaxStreams) {
    return fail("a result without layer, protocol, streams and direction");
  }
  return Step{*layer, protocol == "tcp" ? Transport::Tcp : Transport::Udp, streams,
              direction == "send" ? Direction::Send : Direction::Receive};
}

Result<Figures> figuresOf(const Json& json) {
  const auto mbps = numberAt(json, "mbps");
  if (!mbps || *mbps <= 0) {
    const std::string reason = textAt(json, "reason");
    return fail("{}", reason.empty() ? "the file does not say why" : reason);
  }
  Figures figures;
  figures.mbps = *mbps;
  figures.seconds = numberAt(json, "seconds").value_or(0);
  if (const auto again = numberAt(json, "retransmits")) {
    figures.retransmits = static_cast<std::uint64_t>(*again);
  }
  figures.roundTrip = numberAt(json, "rtt_ms");
  figures.lostPercent = numberAt(json, "lost_percent");
  figures.congestion = textAt(json, "congestion");
  for (const Json* sample : objectsAt(json, "series")) {
    const auto end = numberAt(*sample, "end");
    const auto rate = numberAt(*sample, "mbps");
    if (end && rate) figures.series.push_back({*end, *rate});
  }
  return figures;
}

Result<Ceiling> ceilingOfJson(const Json& json) {
  const auto found = json.find("ceiling");
  if (found == json.end() || !found->is_object()) return fail("the file does not say");
  const auto mbps = numberAt(*found, "mbps");
  const auto link = numberAt(*found, "link_mbps");
  const auto cipher = numberAt(*found, "cipher_mbps_per_core");
  if (!mbps || !link || !cipher) return fail("{}", textAt(*found, "reason"));
  return Ceiling{*mbps, *link, *cipher};
}

}  // namespace

Json reportToJson(const Report& report) {
  Json json{{"adit_bench", kFormat},
            {"started", report.started},
            {"adit_version", report.aditVersion},
            {"iperf3_version", report.iperfVersion},
            {"kernel", report.kernel},
            {"processor", report.processor},
            {"cores", report.cores},
            {"mode", report.mode},
            {"peer", report.peer},
            {"interface", textJson(report.interface)},
            {"backend", textJson(report.backend)},
            {"suite", textJson(report.suite)},
            {"mtu", report.mtu == 0 ? Json() : Json(report.mtu)},
            {"interrupted", report.interrupted},
            {"ceiling", ceilingJson(report.ceiling)},
            {"results", Json::array()},
            {"notes", report.notes}};
  for (const StepResult& result : report.results) {
    json["results"].push_back(resultJson(result));
  }
  return json;
}

Result<Report> reportFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("adit_bench")) {
    return fail("not a result of `adit bench --json`");
  }
  if (json["adit_bench"] != kFormat) return fail("written by another version of adit");
  Report report;
  report.started = textAt(json, "started");
  report.aditVersion = textAt(json, "adit_version");
  report.iperfVersion = textAt(json, "iperf3_version");
  report.kernel = textAt(json, "kernel");
  report.processor = textAt(json, "processor");
  report.cores = countAt(json, "cores");
  report.mode = textAt(json, "mode");
  report.peer = textAt(json, "peer");
  report.interface = textAt(json, "interface");
  report.backend = textAt(json, "backend");
  report.suite = textAt(json, "suite");
  report.mtu = countAt(json, "mtu");
  report.interrupted = json.value("interrupted", Json(false)) == Json(true);
  report.ceiling = ceilingOfJson(json);
  for (const Json* each : objectsAt(json, "results")) {
    const auto step = stepOf(*each);
    if (!step) return tl::unexpected(step.error());
    StepResult result;
    result.step = *step;
    result.target = textAt(*each, "target");
    result.figures = figuresOf(*each);
    for (const Json* core : objectsAt(*each, "cores")) {
      result.cores.push_back(coreOf(*core));
    }
    report.results.push_back(std::move(result));
  }
  if (const auto notes = json.find("notes"); notes != json.end() && notes->is_array()) {
    for (const Json& note : *notes) {
      if (note.is_string()) report.notes.push_back(note.get<std::string>());
    }
  }
  return report;
}

}  // namespace adit::bench
