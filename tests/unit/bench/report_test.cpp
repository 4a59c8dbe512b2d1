// Plans, reports as JSON and back, comparisons, and the page.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bench/charts.hpp"
#include "bench/compare.hpp"
#include "bench/html.hpp"
#include "bench/plan.hpp"
#include "bench/report_json.hpp"
#include "bench/svg.hpp"

namespace adit::bench {
namespace {

StepResult measured(const Step& step, double mbps) {
  StepResult result;
  result.step = step;
  result.target = "10.10.0.2:5201";
  Figures figures;
  figures.mbps = mbps;
  figures.seconds = 5;
  figures.retransmits = 7;
  figures.roundTrip = 1.25;
  figures.congestion = "cubic";
  figures.series = {{1, mbps * 0.9}, {2, mbps * 1.1}};
  result.figures = figures;
  result.cores = {{.cpu = 0, .user = 10, .system = 30, .softirq = 45, .irq = 1, .steal = 2},
                  {.cpu = 3, .user = 1, .system = 2, .softirq = 3}};
  return result;
}

StepResult unmeasured(const Step& step, const char* reason) {
  StepResult result;
  result.step = step;
  result.figures = fail("{}", reason);
  return result;
}

constexpr Step kBare{Layer::Bare, Transport::Tcp, 1, Direction::Send};
constexpr Step kTunnel{Layer::Tunnel, Transport::Tcp, 1, Direction::Send};
constexpr Step kMapped{Layer::Mapped, Transport::Tcp, 1, Direction::Send};

Report sample() {
  Report report;
  report.started = "2026-11-30T23:00:00Z";
  report.aditVersion = "0.1.0";
  report.iperfVersion = "3.12";
  report.kernel = "6.1.0";
  report.processor = "A & B <fast>";
  report.cores = 2;
  report.mode = "peer";
  report.peer = "nas";
  report.interface = "adit0";
  report.backend = "userspace";
  report.suite = "aes-256-gcm";
  report.mtu = 1420;
  report.results = {measured(kBare, 9400), measured(kTunnel, 4700),
                    unmeasured(kMapped, "iperf3: </script><b>refused & gone\"")};
  report.ceiling = ceilingOf(report, 2000);
  report.notes = {"a note"};
  return report;
}

TEST_CASE("A plan goes up the layers, and UDP is not asked of a mapped port") {
  const auto steps = planSteps({});
  CHECK(steps.size() == 16);
  CHECK(steps.front() == kBare);
  CHECK(steps.back() == Step{Layer::Mapped, Transport::Tcp, 4, Direction::Receive});
  for (const Step& step : steps) {
    CHECK_FALSE((step.layer == Layer::Mapped && step.transport == Transport::Udp));
  }
  const auto few = planSteps({.layers = {Layer::Tunnel}, .streams = {8, 8}});
  REQUIRE(few.size() == 4);
  CHECK(few[0] == Step{Layer::Tunnel, Transport::Tcp, 8, Direction::Send});
  CHECK(few[3] == Step{Layer::Tunnel, Transport::Udp, 1, Direction::Receive});
}

TEST_CASE("The ceiling is the cipher's or the link's, and never invented") {
  Report report = sample();
  CHECK(ceilingOf(report, 500)->mbps == Approx(4000));
  CHECK(ceilingOf(report, 500)->linkMbps == Approx(9400));
  CHECK(ceilingOf(report, 2000)->mbps == Approx(9400));
  CHECK_FALSE(ceilingOf(report, std::nullopt));
  report.results.erase(report.results.begin());
  CHECK_FALSE(ceilingOf(report, 500));
}

TEST_CASE("JSON: what has no result is null with a reason, and all comes back") {
  const Report report = sample();
  const auto json = reportToJson(report);
  const auto& none = json["results"][2];
  CHECK(none["mbps"].is_null());
  CHECK(none["reason"] == "iperf3: </script><b>refused & gone\"");
  CHECK(json["results"][1]["mbps"] == 4700);
  CHECK(json["results"][1]["reason"].is_null());
  CHECK(json["results"][1]["cores"][0]["softirq_percent"] == 45);

  const auto back = reportFromJson(json.dump());
  REQUIRE(back);
  CHECK(reportToJson(*back) == json);
  REQUIRE(back->results.size() == 3);
  CHECK_FALSE(back->results[2].figures);
  CHECK(back->results[1].cores[1].cpu == 3);
  CHECK(back->results[1].figures->series.size() == 2);
}

TEST_CASE("JSON of others is refused, and a zero in it stays no result") {
  CHECK_FALSE(reportFromJson(""));
  CHECK_FALSE(reportFromJson("[]"));
  CHECK_FALSE(reportFromJson("{}"));
  CHECK_FALSE(reportFromJson(R"({"adit_bench":2,"results":[]})"));
  CHECK_FALSE(reportFromJson(R"({"adit_bench":1,"results":[{"layer":"other"}]})"));
  const auto report = reportFromJson(
      R"({"adit_bench":1,"results":[{"layer":"tunnel","protocol":"tcp","streams":1,
          "direction":"send","mbps":0},{"layer":"bare","protocol":"tcp","streams":1,
          "direction":"send","mbps":"5"}],"notes":[1],"mtu":-5,"cores":1e300,"ceiling":[]})");
  REQUIRE(report);
  CHECK_FALSE(report->results[0].figures);
  CHECK_FALSE(report->results[1].figures);
  CHECK_FALSE(measuredAnything(*report));
  CHECK(report->mtu == 0);
}

TEST_CASE("Before and after: percentages where both have figures") {
  const Report before = sample();
  Report after = sample();
  after.suite = "chacha20-poly1305";
  after.results = {measured(kTunnel, 5170), unmeasured(kBare, "busy"), measured(kMapped, 100)};
  const auto rows = compare(before, after);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].change().value() == Approx(10));
  CHECK_FALSE(rows[1].change());
  CHECK(rows[1].after->error().message == "busy");
  CHECK_FALSE(rows[2].change());
  CHECK_FALSE(*rows[2].before);
  after.results.pop_back();
  CHECK_FALSE(compare(before, after)[2].after);
  const auto different = differences(before, after);
  REQUIRE(different.size() == 1);
  CHECK(different[0] == "the cipher: aes-256-gcm before, chacha20-poly1305 after");
}

std::size_t countOf(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// Every element that is opened is closed, in order; a machine that reads XML takes no other.
void checkNesting(const std::string& page) {
  std::vector<std::string> open;
  for (auto at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const auto end = page.find('>', at);
    REQUIRE(end != std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1);
    REQUIRE(tag.find('<') == std::string::npos);
    at = end;
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name = tag.substr(0, tag.find(' '));
    if (!name.starts_with('/')) {
      open.push_back(name);
      continue;
    }
    REQUIRE_FALSE(open.empty());
    REQUIRE("/" + open.back() == name);
    open.pop_back();
  }
  CHECK(open.empty());
}

TEST_CASE("The page: well-formed, by itself, with a line for each layer and a bar for each core") {
  const Report report = sample();
  const std::string page = reportToHtml(report, nullptr);
  checkNesting(page);
  for (const char* foreign : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    INFO(foreign);
    const std::size_t namespaces = countOf(page, "http://www.w3.org/");
    CHECK(countOf(page, foreign) == (std::string_view(foreign) == "http://" ? namespaces : 0));
  }
  CHECK(countOf(page, "class=\"course line-bare\"") == 2);  // with the legend's
  CHECK(countOf(page, "class=\"course line-tunnel\"") == 2);
  CHECK(countOf(page, ">cpu0</text>") == 2);
  CHECK(countOf(page, ">cpu3</text>") == 2);
  CHECK(page.find("no result: iperf3: &lt;/script&gt;&lt;b&gt;refused &amp; gone&quot;") !=
        std::string::npos);
  CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
  CHECK(countOf(page, "role=\"img\"") == countOf(page, "<desc>"));
  CHECK(countOf(page, "</script>") == 1);
}

TEST_CASE("The page holds what --json prints") {
  const Report report = sample();
  const std::string page = reportToHtml(report, &report);
  constexpr std::string_view kStart = "id=\"adit-bench\">";
  const auto start = page.find(kStart) + kStart.size();
  const auto json = nlohmann::ordered_json::parse(
      page.substr(start, page.find("</script>") - start), nullptr, false);
  CHECK(json == reportToJson(report));
  CHECK(page.find("Before and after") != std::string::npos);
  checkNesting(page);
}

TEST_CASE("A page without any result still says why") {
  Report report = sample();
  report.results = {unmeasured(kTunnel, "interrupted")};
  report.ceiling = fail("the bare link was not measured with TCP");
  report.interrupted = true;
  const std::string page = reportToHtml(report, nullptr);
  checkNesting(page);
  CHECK(page.find("no result: interrupted") != std::string::npos);
  CHECK(page.find("Interrupted before its end") != std::string::npos);
  CHECK(countOf(page, "<path") == 0);
}

TEST_CASE("Many processors keep their bars and lose labels that would touch") {
  StepResult result = measured(kTunnel, 100);
  result.cores.clear();
  for (unsigned cpu = 0; cpu < 128; ++cpu) {
    result.cores.push_back({.cpu = cpu, .softirq = 50});
  }
  const std::string chart = processorChart(result);
  CHECK(countOf(chart, "<rect") == 128);
  CHECK(countOf(chart, "<text") < 30);
}

TEST_CASE("Axes have round steps and reach their largest value") {
  for (const double largest : {0.004, 0.9, 1.0, 3.7, 42.0, 99.0, 36374.0}) {
    const Axis axis = Axis::upTo(largest, 5);
    INFO(largest);
    CHECK(axis.top >= largest * 0.9999);
    CHECK(axis.top / axis.step <= 6.001);
  }
  CHECK(Axis::upTo(0, 5).top == 1);
  CHECK(Axis::upTo(std::nan(""), 5).top == 1);
}

}  // namespace
}  // namespace adit::bench
