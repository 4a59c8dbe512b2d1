#include "cli/monitor_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "control/wg_format.hpp"

namespace adit::cli {
namespace {

using control::DeviceView;
using control::MapSnapshot;
using control::PeerSnapshot;

constexpr std::string_view kBold = "1";
constexpr std::string_view kRed = "31";
constexpr std::string_view kYellow = "33";
/// A session ends after three minutes without a new handshake.
constexpr std::chrono::seconds kSessionEnds{180};

/// Columns of the places that things lead to, and how wide a screen must be for them.
constexpr std::size_t kEndpoint = 21;
constexpr std::size_t kTarget = 20;
constexpr std::size_t kWide = 76;

/// Bytes of UTF-8 that begin a character.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & '\xc0') != '\x80'; }));
}

/// At most `columns` characters; names come from files and may hold anything.
std::string cut(std::string_view text, std::size_t columns) {
  std::string result;
  std::size_t used = 0;
  for (const char c : text) {
    const bool begins = (c & '\xc0') != '\x80';
    if (begins && used == columns) break;
    used += begins ? 1 : 0;
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return result;
}

std::string padded(std::string_view text, std::size_t columns) {
  const std::string shown = cut(text, columns);
  return shown + std::string(columns - std::min(columns, width(shown)), ' ');
}

/// Five characters at most: "0", "980", "9.9k", "123M".
std::string shortNumber(double value) {
  constexpr std::array kUnits = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const bool fraction = unit > 0 && value < 9.95;
  return fmt::format("{:.{}f}{}", value, fraction ? 1 : 0, kUnits[unit]);
}

/// Bits per second; "-" where there is no earlier look.
std::string rate(std::optional<double> bits) {
  return bits ? shortNumber(*bits) : "-";
}

class Picture {
 public:
  Picture(const MonitorLook& before, const MonitorLook& now, const MonitorSize& size, bool color)
      : before_(before), now_(now), size_(size), color_(color) {
    seconds_ = std::chrono::duration<double>(now.taken - before.taken).count();
  }

  std::vector<std::string> run() {
    cpus();
    for (const DeviceView& device : now_.devices) {
      interface(device);
    }
    for (const std::string& failure : now_.failures) {
      line(failure, kRed);
    }
    if (now_.devices.empty() && now_.failures.empty()) {
      line("no interface is up; start one with `adit up NAME`");
    }
    return fitted();
  }

 private:
  void line(std::string_view text, std::string_view paint = {}) {
    std::string shown = cut(text, size_.columns);
    shown.erase(shown.find_last_not_of(' ') + 1);
    lines_.push_back(color_ && !paint.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", paint, shown)
                                              : shown);
  }

  [[nodiscard]] std::optional<double> perSecond(std::uint64_t before, std::uint64_t now) const {
    if (seconds_ <= 0) return std::nullopt;
    return static_cast<double>(now - std::min(before, now)) * 8 / seconds_;
  }

  [[nodiscard]] const DeviceView* earlier(const DeviceView& device) const {
    const auto found = std::ranges::find_if(before_.devices, [&](const DeviceView& other) {
      return other.device.name == device.device.name;
    });
    return found == before_.devices.end() ? nullptr : &*found;
  }

  void cpus() {
    const auto shares = doctor::sharesBetween(before_.cpus, now_.cpus);
    if (shares.empty()) return;
    constexpr std::size_t kCell = 26;
    const std::size_t perLine = std::max<std::size_t>(1, size_.columns / kCell);
    std::string text;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      text += cpuCell(shares[i]);
      if ((i + 1) % perLine == 0 || i + 1 == shares.size()) {
        line(text);
        text.clear();
      }
    }
  }

  /// "cpu 3 ####::::..   85 si 40", 26 wide: `#` softirq, `:` the rest of what is busy.
  static std::string cpuCell(const doctor::CpuShare& share) {
    constexpr double kBar = 10;
    const auto soft = static_cast<std::size_t>(share.softirq * kBar + 0.5);
    const auto busy = std::max(soft, static_cast<std::size_t>(share.busy * kBar + 0.5));
    const std::string bar = std::string(soft, '#') + std::string(busy - soft, ':') +
                            std::string(static_cast<std::size_t>(kBar) - busy, '.');
    return fmt::format("{:>3} {} {:>3.0f}% si {:>2.0f}  ", share.cpu, bar, share.busy * 100,
                       std::min(share.softirq * 100, 99.0));
  }

  void interface(const DeviceView& view) {
    const auto& device = view.device;
    if (!lines_.empty()) line("");
    line(fmt::format("{}  {}  mtu {}  port {}  {} peer{}", device.name, device.backend, device.mtu,
                     device.listenPort, device.peers.size(), device.peers.size() == 1 ? "" : "s"),
         kBold);
    const DeviceView* old = earlier(view);
    peers(view, old);
    maps(view, old);
    for (const std::string& warning : device.warnings) {
      line("! " + warning, kYellow);
    }
  }

  /// A narrow screen has no room for where things lead.
  [[nodiscard]] bool isWide() const { return size_.columns >= kWide; }

  /// That column, with the blank before it.
  [[nodiscard]] std::string where(std::string_view text, std::size_t columns) const {
    return isWide() ? ' ' + padded(text, columns) : std::string();
  }

  /// What the others leave to the first column.
  [[nodiscard]] std::size_t first(std::size_t others, std::size_t place) const {
    constexpr std::size_t kLeast = 8;
    const std::size_t taken = others + (isWide() ? place + 1 : 0);
    return size_.columns > taken + kLeast ? size_.columns - taken : kLeast;
  }

  void peers(const DeviceView& view, const DeviceView* old) {
    if (view.device.peers.empty()) return;
    constexpr std::size_t kOthers = 38;
    const std::size_t name = std::min<std::size_t>(first(kOthers, kEndpoint), 44);
    line(fmt::format("  {}{} {:>6} {:>6} {:>5} {:>5} {:>7}", padded("PEER", name - 3),
                     where("ENDPOINT", kEndpoint), "RX b/s", "TX b/s", "RX B", "TX B", "AGE"));
    for (const PeerSnapshot& peer : view.device.peers) {
      onePeer(peer, old, name - 3);
    }
  }

  void onePeer(const PeerSnapshot& peer, const DeviceView* old, std::size_t columns) {
    const PeerSnapshot* then = nullptr;
    if (old != nullptr) {
      const auto& all = old->device.peers;
      const auto found = std::ranges::find(all, peer.publicKey, &PeerSnapshot::publicKey);
      if (found != all.end()) then = &*found;
    }
    const auto handshake = std::chrono::duration_cast<std::chrono::seconds>(peer.lastHandshake);
    const bool never = handshake.count() <= 0;
    const auto age = std::max(now_.wallClock - handshake, std::chrono::seconds(0));
    line(fmt::format("  {}{} {:>6} {:>6} {:>5} {:>5} {:>7}",
                     padded(peer.name.empty() ? peer.publicKey.toBase64() : peer.name, columns),
                     where(peer.endpoint ? peer.endpoint->toString() : "-", kEndpoint),
                     rate(then != nullptr ? perSecond(then->rxBytes, peer.rxBytes) : std::nullopt),
                     rate(then != nullptr ? perSecond(then->txBytes, peer.txBytes) : std::nullopt),
                     shortNumber(static_cast<double>(peer.rxBytes)),
                     shortNumber(static_cast<double>(peer.txBytes)),
                     never ? std::string("never") : ageText(age)),
         never || age > kSessionEnds ? kYellow : std::string_view{});
  }

  static std::string ageText(std::chrono::seconds age) {
    constexpr std::int64_t kMinute = 60;
    constexpr std::int64_t kHour = 3600;
    constexpr std::int64_t kDay = 86400;
    const std::int64_t count = age.count();
    if (count < 2 * kMinute) return fmt::format("{} s", count);
    if (count < 2 * kHour) return fmt::format("{} min", count / kMinute);
    if (count < 2 * kDay) return fmt::format("{} h", count / kHour);
    return fmt::format("{} d", count / kDay);
  }

  void maps(const DeviceView& view, const DeviceView* old) {
    if (view.device.maps.empty()) return;
    constexpr std::size_t kOthers = 38;
    const std::size_t listen = std::min<std::size_t>(first(kOthers, kTarget), 40);
    line(fmt::format("  {}{} {:>6} {:>6} {:>5} {:>6} {}", padded("MAPPING", listen - 3),
                     where("TO", kTarget), "IN b/s", "OUTb/s", "OPEN", "TOTAL", "STATE"));
    for (const MapSnapshot& map : view.device.maps) {
      oneMap(map, old, listen - 3);
    }
  }

  void oneMap(const MapSnapshot& map, const DeviceView* old, std::size_t columns) {
    const MapSnapshot* then = nullptr;
    if (old != nullptr) {
      const auto& all = old->device.maps;
      const auto found = std::ranges::find(all, map.listen, &MapSnapshot::listen);
      if (found != all.end()) then = &*found;
    }
    const bool known = map.usage && then != nullptr && then->usage;
    const auto usage = map.usage.value_or(nat::MapUsage{});
    line(fmt::format("  {}{} {:>6} {:>6} {:>5} {:>6} {}", padded(map.listen, columns),
                     where(map.target, kTarget),
                     rate(known ? perSecond(then->usage->bytesIn, usage.bytesIn) : std::nullopt),
                     rate(known ? perSecond(then->usage->bytesOut, usage.bytesOut) : std::nullopt),
                     map.usage ? shortNumber(static_cast<double>(usage.open)) : "-",
                     map.usage ? shortNumber(static_cast<double>(usage.connections)) : "-",
                     map.active ? "ok" : "off"),
         map.active ? std::string_view{} : kYellow);
  }

  std::vector<std::string> fitted() {
    if (size_.rows == 0 || lines_.size() <= size_.rows) return std::move(lines_);
    const std::size_t hidden = lines_.size() - size_.rows + 1;
    lines_.resize(size_.rows - 1);
    line(fmt::format("… {} more lines: a larger window, or `adit monitor NAME`", hidden));
    return std::move(lines_);
  }

  const MonitorLook& before_;
  const MonitorLook& now_;
  const MonitorSize& size_;
  bool color_;
  double seconds_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> monitorLines(const MonitorLook& before, const MonitorLook& now,
                                      const MonitorSize& size, bool color) {
  return Picture(before, now, size, color).run();
}

}  // namespace adit::cli
