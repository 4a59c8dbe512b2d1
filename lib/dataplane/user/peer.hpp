// A peer as the packet threads see it.
#pragma once

#include <atomic>

#include "dataplane/dataplane.hpp"
#include "dataplane/user/counters.hpp"
#include "dataplane/user/endpoint_cell.hpp"
#include "dataplane/user/event_queues.hpp"
#include "dataplane/user/key_history.hpp"
#include "dataplane/user/key_slots.hpp"
#include "dataplane/user/peer_timers.hpp"
#include "dataplane/user/staging_queue.hpp"

namespace adit::dataplane::user {

/// The times that PeerTimers needs, noted by packet threads.
struct ActivityCells {
  TimeCell lastSent;
  TimeCell lastReceived;
  TimeCell lastDataSent;
  TimeCell unansweredSince;
  TimeCell unacknowledgedSince;
  TimeCell keyAged;

  void noteSent(BootTime now, bool data) {
    lastSent.set(now);
    unacknowledgedSince.clearIfSet();
    if (data) {
      lastDataSent.set(now);
      unansweredSince.setIfClear(now);
    }
  }
  void noteReceived(BootTime now, bool data) {
    lastReceived.set(now);
    unansweredSince.clearIfSet();
    if (data) unacknowledgedSince.setIfClear(now);
  }
  [[nodiscard]] PeerActivity snapshot() const {
    return {.lastSent = lastSent.get(),
            .lastReceived = lastReceived.get(),
            .lastDataSent = lastDataSent.get(),
            .unansweredSince = unansweredSince.get(),
            .unacknowledgedSince = unacknowledgedSince.get(),
            .keyAged = keyAged.get()};
  }
};

struct Peer {
  Peer(PeerId peerId, const crypto::PublicKey& key) : id(peerId), publicKey(key) {}

  const PeerId id;

  // Changed by the control thread while no batch runs.
  crypto::PublicKey publicKey;
  std::uint16_t persistentKeepalive = 0;
  bool roam = true;

  // Thread-safe.
  KeySlots slots;
  EndpointCell endpoint;
  StagingQueue staging;
  ControlLimiter controlLimiter;
  ActivityCells activity;
  DropCounters drops;
  Counter rxBytes;
  Counter txBytes;
  Counter rxPackets;
  Counter txPackets;
  /// A next session was promoted and the control thread has not told of it yet.
  std::atomic<bool> confirmed{false};
  /// A key is there: the sending thread shall empty the staging queue.
  std::atomic<bool> flushWanted{false};

  // Only for the control thread.
  PeerTimers timers;
  KeyHistory history;
  BootTime lastMoveTold{};
};

}  // namespace adit::dataplane::user
