// One pair of session keys: what is needed to send under one and to receive under the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "crypto/aead.hpp"
#include "noise/types.hpp"
#include "util/clock.hpp"
#include "wire/replay.h"

namespace adit::dataplane::user {

struct Peer;

class Session {
 public:
  /// Expands both keys. `peer` must outlive the session.
  Session(Peer& peer, const noise::SessionKeys& keys, BootTime now);

  [[nodiscard]] Peer& peer() const { return peer_; }
  [[nodiscard]] crypto::Suite suite() const { return suite_; }
  [[nodiscard]] std::uint32_t localIndex() const { return localIndex_; }
  [[nodiscard]] std::uint32_t remoteIndex() const { return remoteIndex_; }
  [[nodiscard]] bool initiator() const { return initiator_; }
  [[nodiscard]] BootTime start() const { return start_; }
  [[nodiscard]] const noise::KeyLimits& limits() const { return limits_; }
  [[nodiscard]] const crypto::AeadKey& sendKey() const { return *sendKey_; }
  [[nodiscard]] const crypto::AeadKey& receiveKey() const { return *receiveKey_; }

  /// Reserves `count` counters, each of which is given out once; returns the first one. Nothing
  /// when that would pass the message limit, which counts as reached from then on.
  std::optional<std::uint64_t> reserve(std::uint64_t count);
  [[nodiscard]] std::uint64_t sent() const { return counter_.load(std::memory_order_relaxed); }

  /// Neither age nor message limit is reached.
  [[nodiscard]] bool canSend(BootTime now) const;
  [[nodiscard]] bool expired(BootTime now) const { return now - start_ >= limits_.rejectAfter; }
  /// Sending now should ask for a new key (paper, section 6.2).
  [[nodiscard]] bool agedForSending(BootTime now) const;
  /// Receiving now should: a last chance before a mostly receiving initiator's key expires.
  [[nodiscard]] bool agedForReceiving(BootTime now) const;

  /// Serialises the replay window; taken once per batch.
  std::mutex& replayMutex() { return replayMutex_; }
  adit_replay& replay() { return replay_; }

  /// A packet thread took the session out of all slots; the control thread will free it.
  void retire() { retired_.store(true, std::memory_order_release); }
  [[nodiscard]] bool retired() const { return retired_.load(std::memory_order_acquire); }

 private:
  Peer& peer_;
  const crypto::Suite suite_;
  const std::uint32_t localIndex_;
  const std::uint32_t remoteIndex_;
  const bool initiator_;
  const BootTime start_;
  const noise::KeyLimits limits_;
  std::unique_ptr<crypto::AeadKey> sendKey_;
  std::unique_ptr<crypto::AeadKey> receiveKey_;
  std::atomic<std::uint64_t> counter_{0};
  std::atomic<bool> retired_{false};
  std::mutex replayMutex_;
  adit_replay replay_{};
};

}  // namespace adit::dataplane::user
