#include "bench/html.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/charts.hpp"
#include "bench/compare.hpp"
#include "bench/report_json.hpp"
#include "bench/svg.hpp"

namespace adit::bench {
namespace {

/// Colours that differ for people who confuse red and green too (after Okabe and Ito).
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --muted: #59636e; --rule: #d1d9e0;
  --bare: #0072b2; --tunnel: #d55e00; --mapped: #009e73;
  --softirq: #d55e00; --system: #0072b2; --user: #56b4e9; --other: #999999; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --muted: #9198a1;
  --rule: #3d444d; --bare: #56b4e9; --tunnel: #ff9248; --mapped: #3fd0a0;
  --softirq: #ff9248; --system: #56b4e9; --user: #a8d8f8; --other: #8b949e; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--back);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1rem 0 .2rem; } p { margin: .3rem 0; }
.muted { color: var(--muted); fill: var(--muted); }
.grid-of { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-size: .9rem; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 13px system-ui, sans-serif; fill: var(--text); } svg text.small { font-size: 12px; }
svg text.muted { fill: var(--muted); }
.grid { stroke: var(--rule); stroke-width: 1; }
.ceiling { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 5 4; }
.fill-bare { fill: var(--bare); } .fill-tunnel { fill: var(--tunnel); }
.fill-mapped { fill: var(--mapped); } .fill-softirq { fill: var(--softirq); }
.fill-system { fill: var(--system); } .fill-user { fill: var(--user); }
.fill-other { fill: var(--other); }
.course { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line-bare { stroke: var(--bare); stroke-dasharray: 2 3; } .line-tunnel { stroke: var(--tunnel); }
.line-mapped { stroke: var(--mapped); stroke-dasharray: 8 3; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; list-style: none; }
.legend svg { display: inline-block; width: 28px; height: 12px; margin-right: .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--rule); }
th:nth-child(-n+2), td:nth-child(-n+2), td.reason { text-align: left; }
td.reason { color: var(--muted); }
)";

std::string row(const std::vector<std::string>& cells, const char* kind) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) {
    text += kind == std::string_view("th") ? fmt::format("<th scope=\"col\">{}</th>", escaped(cell))
                                           : fmt::format("<td>{}</td>", escaped(cell));
  }
  return text + "</tr>\n";
}

std::string rate(double mbps) {
  return mbps < 100 ? fmt::format("{:.2f}", mbps) : fmt::format("{:.0f}", mbps);
}

std::string figuresRow(const StepResult& result) {
  const std::vector<std::string> what{std::string(layerTitle(result.step.layer)),
                                      loadTitle(result.step)};
  if (!result.figures) {
    return fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"reason\" colspan=\"6\">no result: "
        "{}</td></tr>\n",
        escaped(what[0]), escaped(what[1]), escaped(result.figures.error().message));
  }
  const Figures& figures = *result.figures;
  const CoreLoad* busiest = busiestCore(result);
  return row(
      {what[0], what[1], rate(figures.mbps),
       figures.retransmits ? std::to_string(*figures.retransmits) : "–",
       figures.lostPercent ? fmt::format("{:.1f} %", *figures.lostPercent) : "–",
       figures.roundTrip ? fmt::format("{:.2f}", *figures.roundTrip) : "–",
       busiest != nullptr ? fmt::format("cpu{}: {:.0f} %", busiest->cpu, busiest->busy()) : "–",
       busiest != nullptr ? fmt::format("{:.0f} %", busiest->softirq) : "–"},
      "td");
}

std::string figuresTable(const Report& report) {
  std::string text = "<h2>All figures</h2>\n<div class=\"scroll\"><table><thead>" +
                     row({"Layer", "Load", "Mbit/s", "Retransmits", "Lost", "Round trip, ms",
                          "Busiest core", "of it softirq"},
                         "th") +
                     "</thead><tbody>\n";
  for (const StepResult& result : report.results) {
    text += figuresRow(result);
  }
  return text + "</tbody></table></div>\n";
}

std::string rateCell(const std::optional<Result<double>>& value) {
  if (!value) return "not measured";
  return *value ? rate(**value) : "no result";
}

std::string comparisonTable(const Report& before, const Report& after) {
  std::string text = fmt::format(
      "<h2>Before and after</h2>\n<p class=\"muted\">Mbit/s; before is {}.</p>\n"
      "<div class=\"scroll\"><table><thead>{}</thead><tbody>\n",
      escaped(before.started), row({"Layer", "Load", "Before", "After", "Change"}, "th"));
  for (const Comparison& each : compare(before, after)) {
    const auto change = each.change();
    text +=
        row({std::string(layerTitle(each.step.layer)), loadTitle(each.step), rateCell(each.before),
             rateCell(each.after), change ? fmt::format("{:+.1f} %", *change) : "–"},
            "td");
  }
  text += "</tbody></table></div>\n";
  for (const std::string& line : differences(before, after)) {
    text += fmt::format("<p>Differs too: {}.</p>\n", escaped(line));
  }
  return text;
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& entries, bool lines) {
  std::string text = "<ul class=\"legend\">";
  for (const auto& [cssClass, name] : entries) {
    const std::string mark =
        lines ? fmt::format("<path d=\"M0 6 L28 6\" class=\"course line-{}\"/>", cssClass)
              : fmt::format("<rect width=\"28\" height=\"12\" class=\"fill-{}\"/>", cssClass);
    text += fmt::format("<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\">{}</svg>{}</li>", mark,
                        escaped(name));
  }
  return text + "</ul>\n";
}

std::string layerLegend(const Report& report, bool lines) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Layer layer : kLayers) {
    if (std::ranges::any_of(report.results,
                            [&](const StepResult& each) { return each.step.layer == layer; })) {
      entries.emplace_back(layerName(layer), layerTitle(layer));
    }
  }
  return legend(entries, lines);
}

std::string figure(const std::string& chart, const std::string& caption) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", escaped(caption), chart);
}

std::string courses(const Report& report) {
  std::string charts;
  for (const Step& load : loadsOf(report)) {
    const std::string chart = courseChart(report, load);
    if (!chart.empty()) charts += figure(chart, loadTitle(load));
  }
  if (charts.empty()) return "";
  return "<h2>Throughput over time</h2>\n" + layerLegend(report, true) +
         "<p class=\"muted\">Who sends datagrams does not know when they arrive, so UDP has a "
         "course only where this side receives. Each chart has its own scale.</p>\n"
         "<div class=\"grid-of\">" +
         charts + "</div>\n";
}

std::string processors(const Report& report) {
  std::string text;
  for (const Layer layer : kLayers) {
    std::string charts;
    for (const StepResult& result : report.results) {
      if (result.step.layer != layer || !result.figures) continue;
      const std::string chart = processorChart(result);
      if (!chart.empty()) charts += figure(chart, loadTitle(result.step));
    }
    if (charts.empty()) continue;
    text +=
        fmt::format("<h3>{}</h3>\n<div class=\"grid-of\">{}</div>\n", layerTitle(layer), charts);
  }
  if (text.empty()) return "";
  return "<h2>CPU per core</h2>\n" +
         legend({{"softirq", "softirq (the network)"},
                 {"system", "system"},
                 {"user", "user"},
                 {"other", "interrupts, hypervisor"}},
                false) +
         "<p class=\"muted\">Percent of each core's time, on the machine that ran the "
         "benchmark.</p>\n" +
         text;
}

std::string known(const std::string& text) {
  return escaped(text.empty() ? "unknown" : text);
}

std::string heading(const Report& report) {
  std::string text = fmt::format(
      "<h1>adit bench: {}</h1>\n<p class=\"muted\">{}, {} cores{}{}, Linux {}; adit {}, iperf3 {}; "
      "data plane {}, cipher {}, MTU {}</p>\n",
      escaped(report.peer), escaped(report.started), report.cores,
      report.processor.empty() ? "" : " of ", escaped(report.processor), escaped(report.kernel),
      escaped(report.aditVersion), escaped(report.iperfVersion), known(report.backend),
      known(report.suite), report.mtu == 0 ? "unknown" : std::to_string(report.mtu));
  if (report.interrupted) text += "<p><strong>Interrupted before its end.</strong></p>\n";
  text += report.ceiling ? fmt::format(
                               "<p>Expected ceiling of the tunnel: {} Mbit/s. One core that does "
                               "nothing but {} does {}; the bare link does {}.</p>\n",
                               rate(report.ceiling->mbps), escaped(report.suite),
                               rate(report.ceiling->cipherMbps), rate(report.ceiling->linkMbps))
                         : fmt::format("<p>Expected ceiling of the tunnel: no result: {}.</p>\n",
                                       escaped(report.ceiling.error().message));
  return text;
}

/// Inside <script>, where HTML knows no entities: what could end it, or be one, is JSON's own.
std::string embeddedJson(const Report& report) {
  using Json = nlohmann::ordered_json;
  const std::string plain =
      reportToJson(report).dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string text;
  for (const char c : plain) {
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string reportToHtml(const Report& report, const Report* before) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>adit bench: {}</title>\n<style>{}</style></head><body><main>\n",
      escaped(report.peer), kStyle);
  page += heading(report);
  if (measuredAnything(report)) {
    page += "<h2>Throughput by layer</h2>\n" + layerLegend(report, false) +
            figure(throughputChart(report), "What arrived, mean of each run; longer is better.");
  }
  if (before != nullptr) page += comparisonTable(*before, report);
  page += courses(report) + processors(report) + figuresTable(report);
  if (!report.notes.empty()) page += "<h2>Notes</h2>\n";
  for (const std::string& note : report.notes) {
    page += fmt::format("<p>{}.</p>\n", escaped(note));
  }
  page += fmt::format("</main><script type=\"application/json\" id=\"adit-bench\">{}</script>\n",
                      embeddedJson(report));
  return page + "</body></html>\n";
}

}  // namespace adit::bench
