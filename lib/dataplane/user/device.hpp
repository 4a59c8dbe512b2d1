// What all threads of one user-space device share.
#pragma once

#include <atomic>

#include "dataplane/user/batch_gate.hpp"
#include "dataplane/user/counters.hpp"
#include "dataplane/user/event_fd.hpp"
#include "dataplane/user/event_queues.hpp"
#include "dataplane/user/peer_table.hpp"
#include "util/clock.hpp"

namespace adit::dataplane::user {

struct Device {
  Device(const Clock& deviceClock, std::size_t packetThreads)
      : clock(deviceClock), gate(packetThreads) {}

  const Clock& clock;
  BatchGate gate;
  PeerTable table;
  DropCounters drops;
  HandshakeRing handshakes;
  ControlQueue controls;
  /// Tells the control thread that dispatch() has something to do.
  EventFd controlSignal;
  /// Of the TUN device; for padding.
  std::atomic<unsigned> mtu{0};
  /// UDP_SEGMENT may be used.
  std::atomic<bool> segmentSends{true};
  /// Super-packets may be written to the TUN device.
  std::atomic<bool> mergeTcp{false};
  std::atomic<bool> mergeUdp{false};

  void drop(Drop reason, Peer* peer = nullptr, std::uint64_t count = 1) {
    drops.add(reason, count);
    if (peer != nullptr) peer->drops.add(reason, count);
  }
};

}  // namespace adit::dataplane::user
