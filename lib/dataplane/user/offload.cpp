#include "dataplane/user/offload.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "dataplane/user/udp_socket.hpp"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kTestSegment = 1000;
constexpr std::size_t kTestBytes = 4 * kTestSegment + 123;
constexpr int kTestTimeoutMs = 100;

std::vector<std::uint8_t> testPattern() {
  std::vector<std::uint8_t> bytes(kTestBytes);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

}  // namespace

OffloadSwitches OffloadSwitches::parse(std::string_view text) {
  OffloadSwitches switches;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const bool all = word == "off";
    if (all || word == "udp-segmentation") switches.udpSegmentation = false;
    if (all || word == "udp-merging") switches.udpMerging = false;
    if (all || word == "tun-segmentation") switches.tunSegmentation = false;
    if (all || word == "tun-merging") switches.tunMerging = false;
    if (all || word == "self-test") switches.selfTest = false;
  }
  return switches;
}

OffloadSwitches OffloadSwitches::fromEnvironment() {
  const char* text = std::getenv("ADIT_OFFLOAD");
  return parse(text == nullptr ? "" : text);
}

bool udpSegmentationIsSound() {
  constexpr std::array<std::uint8_t, 4> kLoopback{127, 0, 0, 1};
  SocketSettings settings;
  settings.bindAddress = IpAddress::fromV4(kLoopback);
  settings.receiveOffload = false;
  const auto receiver = UdpSockets::open(settings);
  const auto sender = UdpSockets::open(settings);
  if (!receiver || !sender) return true;
  Destination destination;
  destination.length =
      Endpoint{settings.bindAddress, receiver->port(), 0}.toSockaddr(destination.address);
  const std::vector<std::uint8_t> sent = testPattern();
  if (sendDatagrams(*sender, destination, sent, kTestSegment, 0, true).error != 0) return true;

  std::vector<std::uint8_t> received;
  std::array<std::uint8_t, 2 * kTestSegment> buffer;
  pollfd ready{receiver->v4(), POLLIN, 0};
  while (received.size() < sent.size() && ::poll(&ready, 1, kTestTimeoutMs) > 0) {
    const ssize_t got = ::recv(receiver->v4(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    received.insert(received.end(), buffer.begin(), buffer.begin() + got);
  }
  // A firewall on loopback may swallow it all; only what arrives can be wrong.
  return received.empty() || received == sent;
}

}  // namespace adit::dataplane::user
