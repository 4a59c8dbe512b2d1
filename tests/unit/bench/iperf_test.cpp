// What is a figure, and what is none.
#include "bench/iperf.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "iperf_reports.hpp"

namespace adit::bench {
namespace {

using Json = nlohmann::json;

IperfRun tcp() {
  return {.address = "10.10.0.2", .streams = 2, .seconds = 1};
}

IperfRun udp(Direction direction, unsigned streams) {
  return {.address = "10.10.0.2",
          .transport = Transport::Udp,
          .streams = streams,
          .direction = direction,
          .seconds = 1};
}

/// The reason for "no result" of a good report after `spoil`.
std::string spoiled(const IperfRun& run, const char* report,
                    const std::function<void(Json&)>& spoil) {
  Json json = Json::parse(report);
  spoil(json);
  const auto figures = parseIperfReport(json.dump(), run);
  REQUIRE_FALSE(figures);
  return figures.error().message;
}

bool has(const std::vector<std::string>& arguments, const std::vector<std::string>& sequence) {
  return std::ranges::search(arguments, sequence).begin() != arguments.end();
}

TEST_CASE("TCP: what arrived at the receiver, sums of the streams, the course") {
  const auto figures = parseIperfReport(kTcpSend, tcp());
  REQUIRE(figures);
  CHECK(figures->mbps == Approx(16842.08).epsilon(1e-4));
  CHECK(figures->seconds == Approx(1.0159).epsilon(1e-3));
  CHECK(figures->retransmits == 5);
  CHECK(figures->roundTrip.value() == Approx(0.48));
  CHECK(figures->congestion == "bbr");
  CHECK_FALSE(figures->lostPercent);
  REQUIRE(figures->series.size() == 2);
  CHECK(figures->series[0].end == Approx(0.2).epsilon(0.01));
  CHECK(figures->series[0].mbps == Approx(16429.3).epsilon(1e-4));
}

TEST_CASE("UDP: datagrams that arrived, not the bytes that were sent") {
  const auto received = parseIperfReport(kUdpReceive, udp(Direction::Receive, 1));
  REQUIRE(received);
  CHECK(received->mbps == Approx(4298).epsilon(0.01));
  CHECK(received->lostPercent.value() == Approx(86.6).epsilon(0.01));
  CHECK(received->series.size() == 2);
  const auto sent = parseIperfReport(kUdpSend, udp(Direction::Send, 2));
  REQUIRE(sent);
  CHECK(sent->mbps == Approx(2314).epsilon(0.01));
  CHECK(sent->lostPercent.value() == Approx(90.3).epsilon(0.01));
  CHECK_FALSE(sent->retransmits);
  // The sender's course is not what arrived.
  CHECK(sent->series.empty());
}

TEST_CASE("iperf3 ends with status 0 and an error in its report") {
  const auto figures = parseIperfReport(
      R"({"start":{},"intervals":[],"end":{},"error":"unable to connect to server: refused"})",
      tcp());
  REQUIRE_FALSE(figures);
  CHECK(figures.error().message == "iperf3: unable to connect to server: refused");
  CHECK(isUnreachable(figures.error()));
  CHECK_FALSE(isBusy(figures.error()));
  // Also beside sums: they are of a part of the run.
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) {
          json["error"] = "interrupt - the client has terminated";
        }) == "iperf3: interrupt - the client has terminated");
  CHECK(isBusy(Error{"iperf3: error - the server is busy running a test. try again later"}));
}

TEST_CASE("A report without a figure has a reason and is never zero") {
  CHECK(parseIperfReport("", tcp()).error().message == "iperf3 printed nothing");
  CHECK(parseIperfReport(" \n", tcp()).error().message == "iperf3 printed nothing");
  for (const char* text : {"iperf3: error - unable to connect", "[]", "{\"end\":{\"sum\":",
                           "{\"end\":{\"sum_received\":{\"bits_per_second\":nan}}}"}) {
    INFO(text);
    CHECK(parseIperfReport(text, tcp()).error().message ==
          "iperf3's report is not JSON, or was cut off");
  }
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) { json.erase("end"); }).find("no end") !=
        std::string::npos);
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) { json["end"] = Json::object(); }).find("no end") !=
        std::string::npos);
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) {
          json["end"].erase("sum_received");
        }).find("lacks the receiver's sum") != std::string::npos);
  CHECK(spoiled(udp(Direction::Receive, 1), kUdpReceive, [](Json& json) {
          json["end"].erase("sum_received");
          json["end"].erase("sum");
        }).find("lacks the receiver's sum") != std::string::npos);
}

TEST_CASE("nan, which iperf3's JSON has as null, is no figure") {
  for (const char* member : {"bits_per_second", "bytes", "seconds"}) {
    INFO(member);
    CHECK(spoiled(tcp(), kTcpSend, [&](Json& json) {
            json["end"]["sum_received"][member] = nullptr;
          }).find("nan") != std::string::npos);
  }
  CHECK(spoiled(udp(Direction::Receive, 1), kUdpReceive, [](Json& json) {
          json["end"]["sum_received"]["lost_packets"] = nullptr;
        }).find("nan") != std::string::npos);
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) {
          json["end"]["sum_received"]["bytes"] = -1;
        }).find("nan") != std::string::npos);
}

TEST_CASE("Nothing, or a part of what was asked, is no figure") {
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) {
          json["end"]["sum_received"]["bytes"] = 0;
          json["end"]["sum_received"]["bits_per_second"] = 0;
        }) == "nothing arrived");
  CHECK(spoiled(udp(Direction::Receive, 1), kUdpReceive, [](Json& json) {
          json["end"]["sum_received"]["packets"] = 10;
          json["end"]["sum_received"]["lost_packets"] = 10;
        }) == "none of 10 datagrams arrived");
  CHECK(spoiled(udp(Direction::Receive, 1), kUdpReceive, [](Json& json) {
          json["end"]["sum_received"]["packets"] = 0;
          json["end"]["sum_received"]["lost_packets"] = 0;
        }) == "nothing arrived");
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) {
          json["end"]["sum_received"]["seconds"] = 0.3;
        }) == "iperf3 ended after 0.3 of 1 s");
  CHECK(spoiled(tcp(), kTcpSend, [](Json& json) { json["end"]["streams"].erase(1); }) ==
        "iperf3 ran 1 of 2 streams");
}

TEST_CASE("The client's command line") {
  IperfRun run = udp(Direction::Receive, 4);
  run.udpRate = 200'000'000;
  run.port = 18080;
  run.seconds = 60;
  const auto arguments = iperfArguments(run);
  CHECK(has(arguments, {"iperf3", "-J", "-c", "10.10.0.2", "-p", "18080", "-t", "60", "-P", "4"}));
  CHECK(has(arguments, {"-R"}));
  // iperf3's rate is that of each stream.
  CHECK(has(arguments, {"-u", "-b", "50000000"}));
  CHECK(has(arguments, {"-i", "1.5"}));
  CHECK(has(iperfArguments(tcp()), {"-i", "0.1"}));
  CHECK_FALSE(has(iperfArguments(tcp()), {"-u"}));
  CHECK_FALSE(has(iperfArguments(tcp()), {"-R"}));
  CHECK(has(iperfArguments(udp(Direction::Send, 1)), {"-b", "0"}));
}

TEST_CASE("Versions of iperf3") {
  CHECK(checkIperfVersion("iperf 3.12 (cJSON 1.7.15)\nLinux").value() == "3.12");
  CHECK(checkIperfVersion("iperf 3.18 (cJSON 1.7.18)").value() == "3.18");
  CHECK(checkIperfVersion("iperf 4.0").value() == "4.0");
  CHECK(checkIperfVersion("iperf 3.9 (cJSON 1.7.13)").error().message.find("too old") !=
        std::string::npos);
  CHECK_FALSE(checkIperfVersion("iperf 2.1.8 (12 August 2022)"));
  CHECK_FALSE(checkIperfVersion("no such thing"));
  CHECK_FALSE(checkIperfVersion("iperf 3"));
}

}  // namespace
}  // namespace adit::bench
