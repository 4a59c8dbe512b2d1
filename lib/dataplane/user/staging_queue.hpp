// Packets to a peer that has no usable key yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "wire/messages.h"

namespace adit::dataplane::user {

/// Thread-safe. Bounded: the oldest packet gives way, since its sender has likely given it up.
class StagingQueue {
 public:
  static constexpr std::size_t kCapacity = 128;

  /// An inner packet, with room behind it for padding.
  struct Packet {
    std::vector<std::uint8_t> bytes;
    std::size_t length = 0;
    std::uint8_t tos = 0;
  };

  struct Pushed {
    bool first;          ///< the queue was empty before
    bool droppedOldest;  ///< an older packet gave way
  };

  Pushed push(std::span<const std::uint8_t> packet, std::uint8_t tos) {
    Packet staged;
    staged.bytes.reserve(packet.size() + ADIT_PADDING_MULTIPLE);
    staged.bytes.assign(packet.begin(), packet.end());
    staged.bytes.resize(packet.size() + ADIT_PADDING_MULTIPLE);
    staged.length = packet.size();
    staged.tos = tos;
    const std::lock_guard lock(mutex_);
    const Pushed result{packets_.empty(), packets_.size() >= kCapacity};
    if (result.droppedOldest) packets_.pop_front();
    packets_.push_back(std::move(staged));
    empty_.store(false, std::memory_order_release);
    return result;
  }

  [[nodiscard]] std::deque<Packet> takeAll() {
    const std::lock_guard lock(mutex_);
    empty_.store(true, std::memory_order_release);
    return std::exchange(packets_, {});
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    empty_.store(true, std::memory_order_release);
    packets_.clear();
  }

  /// Takes no lock: asked for every packet that is sent.
  [[nodiscard]] bool empty() const { return empty_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::atomic<bool> empty_{true};
  std::deque<Packet> packets_;
};

}  // namespace adit::dataplane::user
