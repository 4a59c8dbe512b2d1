#include "cli/status_text.hpp"

#include <algorithm>
#include <array>

#include "control/device_pcp_json.hpp"
#include "control/wg_format.hpp"

namespace adit::cli {
namespace {

using control::DeviceSnapshot;
using control::DeviceView;
using control::MapSnapshot;
using control::PeerSnapshot;
using std::chrono::seconds;

class Text {
 public:
  explicit Text(bool color) : color_(color) {}

  void heading(std::string_view text) {
    out_ += color_ ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : fmt::format("{}\n", text);
  }
  void row(std::string_view indent, std::string_view label, std::string_view value) {
    out_ += fmt::format("{}{}: {}\n", indent, label, value);
  }
  void line(std::string_view text) { out_ += fmt::format("{}\n", text); }
  void warning(std::string_view text) {
    out_ += color_ ? fmt::format("  \x1b[33mwarning\x1b[0m: {}\n", text)
                   : fmt::format("  warning: {}\n", text);
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  bool color_;
  std::string out_;
};

std::string countsText(const std::vector<std::pair<std::string, std::uint64_t>>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

/// As `latest handshake` of show, but a clock that was set back makes it "now".
std::string ageText(seconds now, std::chrono::nanoseconds handshake) {
  const auto then = std::chrono::duration_cast<seconds>(handshake);
  if (then <= seconds::zero()) return "never";
  return now <= then ? "now" : control::formatAgo(now, then);
}

std::string speedsText(const DeviceSnapshot& device) {
  std::string text;
  for (const crypto::Suite suite : crypto::kSuites) {
    const auto speed = device.suiteSpeeds[static_cast<std::size_t>(suite)];
    if (speed == 0) continue;
    text += fmt::format("{}{} {} MB/s", text.empty() ? "" : ", ", crypto::suiteName(suite), speed);
  }
  return text;
}

void addDevice(Text& text, const DeviceView& view) {
  const DeviceSnapshot& device = view.device;
  text.heading(fmt::format("{}: up", device.name));
  text.row("  ", "backend",
           device.backendReason.empty()
               ? device.backend
               : fmt::format("{} ({})", device.backend, device.backendReason));
  std::string addresses;
  for (const InterfaceAddress& address : device.addresses) {
    addresses += (addresses.empty() ? "" : ", ") + address.toString();
  }
  text.row("  ", "addresses", addresses.empty() ? "none" : addresses);
  text.row("  ", "mtu", fmt::format("{}", device.mtu));
  if (view.publicKey) text.row("  ", "public key", view.publicKey->toBase64());
  if (device.listenPort != 0) {
    text.row("  ", "listening port", fmt::format("{}", device.listenPort));
  }
  if (const auto speeds = speedsText(device); !speeds.empty()) {
    text.row("  ", "cipher speed, one core", speeds);
  }
  if (!device.drops.empty()) text.row("  ", "drops", countsText(device.drops));
}

void addPeer(Text& text, const PeerSnapshot& peer, seconds now) {
  constexpr std::string_view kIndent = "    ";
  const std::string key = peer.publicKey.toBase64();
  text.row("  ", "peer", peer.name.empty() ? key : fmt::format("{} ({})", peer.name, key));
  std::string endpoint = peer.endpoint ? peer.endpoint->toString() : "none yet";
  if (!peer.endpoint && !peer.unresolvedEndpoint.empty()) {
    endpoint = peer.unresolvedEndpoint + " (not resolved yet)";
  }
  text.row(kIndent, "endpoint", endpoint);
  text.row(kIndent, "cipher", peer.suite ? crypto::suiteName(*peer.suite) : "no session");
  text.row(kIndent, "latest handshake", ageText(now, peer.lastHandshake));
  text.row(kIndent, "transfer",
           fmt::format("{} received, {} sent", control::formatBytes(peer.rxBytes),
                       control::formatBytes(peer.txBytes)));
  if (peer.clockBehind != 0) {
    text.row(kIndent, "peer clock behind",
             fmt::format("{} handshakes refused; set the peer's clock", peer.clockBehind));
  }
  if (!peer.drops.empty()) text.row(kIndent, "drops", countsText(peer.drops));
}

void addMaps(Text& text, const std::vector<MapSnapshot>& maps) {
  if (maps.empty()) return;
  std::size_t listen = std::string_view("LISTEN").size();
  std::size_t target = std::string_view("TO").size();
  std::size_t source = std::string_view("SOURCE").size();
  for (const MapSnapshot& map : maps) {
    listen = std::max(listen, map.listen.size());
    target = std::max(target, map.target.size());
    source = std::max(source, map.source.size());
  }
  text.line("");
  text.line(fmt::format("  {:<{}}  {:<{}}  {:<{}}  STATE", "LISTEN", listen, "TO", target, "SOURCE",
                        source));
  for (const MapSnapshot& map : maps) {
    const std::string state = fmt::format("{}{}{}", map.active ? "active" : "inactive",
                                          map.reason.empty() ? "" : ": ", map.reason);
    text.line(fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}", map.listen, listen, map.target, target,
                          map.source, source, state));
  }
}

std::string stateText(const control::PortRequestSnapshot& request) {
  using State = control::PortRequestSnapshot::State;
  std::string text(control::stateName(request.state));
  if (request.state == State::Granted) {
    text += fmt::format(" for {} s", request.lifetime);
  }
  return request.reason.empty() ? text : text + ": " + request.reason;
}

/// Ports that were asked for, by a peer or by this host.
void addRequests(Text& text, const std::vector<control::PortRequestSnapshot>& requests) {
  if (requests.empty()) return;
  std::size_t port = std::string_view("PORT").size();
  std::size_t target = std::string_view("TO").size();
  std::size_t who = std::string_view("ASKED BY").size();
  const auto nameOf = [](const control::PortRequestSnapshot& request) -> std::string {
    return request.peer.empty() ? "us" : request.peer;
  };
  for (const control::PortRequestSnapshot& request : requests) {
    port = std::max(port, request.listen.size());
    target = std::max(target, request.target.size());
    who = std::max(who, nameOf(request).size());
  }
  text.line("");
  text.line(
      fmt::format("  {:<{}}  {:<{}}  {:<{}}  STATE", "PORT", port, "TO", target, "ASKED BY", who));
  for (const control::PortRequestSnapshot& request : requests) {
    text.line(fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}", request.listen, port, request.target,
                          target, nameOf(request), who, stateText(request)));
  }
}

}  // namespace

std::string formatStatus(const DeviceView& view, seconds now, bool color) {
  Text text(color);
  addDevice(text, view);
  for (const PeerSnapshot& peer : view.device.peers) {
    text.line("");
    addPeer(text, peer, now);
  }
  addMaps(text, view.device.maps);
  addRequests(text, view.device.requests);
  if (!view.device.warnings.empty()) text.line("");
  for (const std::string& warning : view.device.warnings) {
    text.warning(warning);
  }
  return text.take();
}

}  // namespace adit::cli
