// The picture of `adit monitor`, from two looks.
#include "cli/monitor_text.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "control/cli_fake_device.hpp"

using namespace adit;
using namespace adit::cli;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

MonitorLook lookAt(control::DeviceSnapshot device, std::chrono::nanoseconds taken) {
  MonitorLook look;
  look.taken = taken;
  look.wallClock =
      std::chrono::duration_cast<std::chrono::seconds>(device.peers.front().lastHandshake) + 90s;
  look.devices.push_back(control::viewOf(std::move(device)));
  return look;
}

/// Characters, not bytes.
std::size_t widthOf(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & '\xc0') != '\x80'; }));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

std::string lineWith(const std::vector<std::string>& lines, std::string_view word) {
  const auto found = std::ranges::find_if(
      lines, [&](const std::string& line) { return line.find(word) != std::string::npos; });
  return found == lines.end() ? "" : *found;
}

}  // namespace

TEST_CASE("monitor: rates are those between two looks") {
  control::DeviceSnapshot device = control::testing::richSnapshot();
  device.peers.front().name = "first";
  device.maps.front().usage = nat::MapUsage{3, 1, 0, 1000, 0, 0};
  const MonitorLook before = lookAt(device, 10s);
  device.peers.front().rxBytes += 250'000;
  device.peers.front().txBytes += 2'500;
  device.maps.front().usage = nat::MapUsage{4, 2, 0, 126'000, 0, 12'500'000};
  const MonitorLook now = lookAt(device, 12s);
  const auto lines = monitorLines(before, now, {80, 24}, false);
  CHECK_THAT(lineWith(lines, "first"), Contains(" 1.0M ") && Contains(" 10k "));
  CHECK_THAT(lineWith(lines, "tcp/18080"),
             Contains(" 500k ") && Contains(" 50M ") && Contains("     2      4 ok"));
  CHECK_THAT(lineWith(lines, "udp/5000"), Contains("off"));
  CHECK_THAT(joined(lines), Contains("! IPv6 is off"));
  // Of one look alone there are none, nor after a counter that began anew.
  CHECK_THAT(lineWith(monitorLines(now, now, {80, 24}, false), "first"), Contains(" -      - "));
  CHECK_THAT(
      lineWith(monitorLines(now, lookAt(before.devices.front().device, 14s), {80, 24}, false),
               "first"),
      Contains("   0      0 "));
}

TEST_CASE("monitor: it fits, whatever the size") {
  control::DeviceSnapshot device = control::testing::richSnapshot();
  device.peers.front().name = "ein sehr langer Name für die Küche, länger als jede Spalte";
  device.peers.front().endpoint =
      Endpoint::parse("[2001:db8:1111:2222:3333:4444:5555:6666]:51820").value();
  device.peers[1].name = "evil\x1b[2Jname\n\r";
  for (int i = 0; i < 40; ++i) {
    device.maps.push_back(device.maps.front());
  }
  MonitorLook now = lookAt(device, 12s);
  for (unsigned cpu = 0; cpu < 128; ++cpu) {
    now.cpus[cpu] = {200, 50, 40};
  }
  MonitorLook before = now;
  for (auto& [cpu, ticks] : before.cpus) {
    ticks = {100, 0, 0};
  }
  for (const auto& [columns, rows] : {std::pair<std::size_t, std::size_t>{80, 24},
                                      {60, 12},
                                      {132, 50},
                                      {200, 10},
                                      {20, 5},
                                      {1, 1}}) {
    CAPTURE(columns, rows);
    const auto lines = monitorLines(before, now, {columns, rows}, false);
    CHECK(lines.size() <= rows);
    for (const std::string& line : lines) {
      CHECK(widthOf(line) <= columns);
      CHECK(
          std::ranges::none_of(line, [](char c) { return c == '\x1b' || c == '\n' || c == '\r'; }));
    }
  }
  CHECK_THAT(monitorLines(before, now, {80, 24}, false).back(), Contains("more lines"));
  CHECK(monitorLines(before, now, {80, 0}, false).size() > 60);
}

TEST_CASE("monitor: cores, with softirq apart") {
  MonitorLook before;
  MonitorLook now;
  before.cpus = {{0, {100, 100, 0}}, {7, {100, 100, 0}}};
  now.cpus = {{0, {200, 110, 60}}, {7, {200, 200, 0}}};
  now.taken = 1s;
  const auto lines = monitorLines(before, now, {80, 24}, false);
  CHECK_THAT(lines.front(),
             Contains("  0 ######:::.  90% si 60") && Contains("  7 ..........   0% si  0"));
  CHECK_THAT(lines.back(), Contains("adit up NAME"));
}

TEST_CASE("monitor: colours only where they are asked for, and a session that is gone stands out") {
  control::DeviceSnapshot device = control::testing::richSnapshot();
  device.peers.front().name = "gone";
  device.peers.front().lastHandshake = {};
  MonitorLook now;
  now.devices.push_back(control::viewOf(device));
  CHECK_THAT(lineWith(monitorLines(now, now, {80, 24}, true), "gone"),
             Contains("\x1b[33m") && Contains("never") && Contains("\x1b[0m"));
  CHECK_THAT(joined(monitorLines(now, now, {80, 24}, false)), !Contains("\x1b"));
}
