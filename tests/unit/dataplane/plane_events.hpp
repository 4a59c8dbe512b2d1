// Collects the events of a data plane, and waits for what they or the counters shall say.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <vector>

#include "dataplane/dataplane.hpp"

namespace adit::test {

struct Events : dataplane::EventSink {
  struct Handshake {
    std::vector<std::uint8_t> datagram;
    Endpoint source;
    LocalAddress local;
  };

  std::vector<dataplane::HandshakeReason> needed;
  int confirmed = 0;
  int expired = 0;
  std::vector<Endpoint> moves;
  std::vector<std::vector<std::uint8_t>> controls;
  std::vector<Handshake> handshakes;

  void needHandshake(dataplane::PeerId, dataplane::HandshakeReason reason) override {
    needed.push_back(reason);
  }
  void keyConfirmed(dataplane::PeerId) override { ++confirmed; }
  void endpointMoved(dataplane::PeerId, const Endpoint& endpoint) override {
    moves.push_back(endpoint);
  }
  void keysExpired(dataplane::PeerId) override { ++expired; }
  void control(dataplane::PeerId, std::span<const std::uint8_t> message) override {
    controls.emplace_back(message.begin(), message.end());
  }
  void handshake(std::span<const std::uint8_t> datagram, const Endpoint& source,
                 const LocalAddress& local, std::size_t) override {
    handshakes.push_back({{datagram.begin(), datagram.end()}, source, local});
  }

  /// Dispatches until `done`, for at most five seconds. Counters have no events: they are looked
  /// at every few milliseconds.
  bool until(dataplane::DataPlane& plane, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      pollfd ready{plane.eventDescriptor(), POLLIN, 0};
      if (::poll(&ready, 1, 2) == 1) plane.dispatch(*this);
    }
    return true;
  }
};

}  // namespace adit::test
