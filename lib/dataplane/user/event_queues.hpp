// What packet threads hand to the control thread. Bounded.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "noise/types.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"
#include "wire/control.h"
#include "wire/messages.h"

namespace adit::dataplane::user {

/// A handshake datagram as it arrived.
struct HandshakeDatagram {
  static constexpr std::size_t kMaxLength = sizeof(adit_message_initiation);

  std::array<std::uint8_t, kMaxLength> bytes;
  std::uint16_t length = 0;
  Endpoint source;
  LocalAddress local;
  /// How many waited behind it when it was taken out.
  std::size_t backlog = 0;

  [[nodiscard]] std::span<const std::uint8_t> datagram() const {
    return std::span(bytes).first(length);
  }
};

/// Handshake datagrams, in memory that is allocated once: anybody can send them. Thread-safe.
class HandshakeRing {
 public:
  static constexpr std::size_t kCapacity = 1024;

  HandshakeRing() : ring_(kCapacity) {}

  enum class Pushed { First, Behind, Full };
  /// `datagram` is at most HandshakeDatagram::kMaxLength bytes.
  Pushed push(std::span<const std::uint8_t> datagram, const Endpoint& source,
              const LocalAddress& local) {
    const std::lock_guard lock(mutex_);
    if (count_ == kCapacity) return Pushed::Full;
    HandshakeDatagram& slot = ring_[(first_ + count_) % kCapacity];
    std::ranges::copy(datagram, slot.bytes.begin());
    slot.length = static_cast<std::uint16_t>(datagram.size());
    slot.source = source;
    slot.local = local;
    return count_++ == 0 ? Pushed::First : Pushed::Behind;
  }

  std::optional<HandshakeDatagram> pop() {
    const std::lock_guard lock(mutex_);
    if (count_ == 0) return std::nullopt;
    HandshakeDatagram& slot = ring_[first_];
    first_ = (first_ + 1) % kCapacity;
    slot.backlog = --count_;
    return slot;
  }

 private:
  std::mutex mutex_;
  std::vector<HandshakeDatagram> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// How many control messages of one peer reach the control thread, which all peers share: a few at
/// once and five per second, where an honest peer sends two or three per session. Thread-safe.
class ControlLimiter {
 public:
  static constexpr std::chrono::nanoseconds kInterval = std::chrono::milliseconds(200);
  static constexpr int kBurst = 10;

  /// Whether one more may pass now.
  [[nodiscard]] bool take(BootTime now) {
    BootTime::rep full = fullAt_.load(std::memory_order_relaxed);
    for (;;) {
      const BootTime::rep next = std::max(full, now.count()) + kInterval.count();
      if (next - now.count() > kBurst * kInterval.count()) return false;
      if (fullAt_.compare_exchange_weak(full, next, std::memory_order_relaxed)) return true;
    }
  }

 private:
  /// When a whole burst may pass again.
  std::atomic<BootTime::rep> fullAt_{0};
};

struct ControlMessage {
  noise::PeerId peer;
  std::vector<std::uint8_t> bytes;
};

/// In-tunnel control messages, which only authenticated peers can send. Thread-safe.
class ControlQueue {
 public:
  static constexpr std::size_t kCapacity = 64;
  /// A longer message is refused. Padding comes on top of what its sender wrote.
  static constexpr std::size_t kMaxLength = ADIT_CONTROL_MAX_LENGTH + ADIT_PADDING_MULTIPLE;

  /// False when the queue is full or the message is too long.
  bool push(noise::PeerId peer, std::span<const std::uint8_t> message) {
    if (message.size() > kMaxLength) return false;
    const std::lock_guard lock(mutex_);
    if (queue_.size() == kCapacity) return false;
    queue_.push_back({peer, {message.begin(), message.end()}});
    return true;
  }

  std::optional<ControlMessage> pop() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return std::nullopt;
    ControlMessage message = std::move(queue_.front());
    queue_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::deque<ControlMessage> queue_;
};

}  // namespace adit::dataplane::user
