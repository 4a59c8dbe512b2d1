// Keeps the packet threads out of shared tables while the control thread changes them.
//
// A packet thread holds its own seat for the length of a batch: an uncontended lock, taken once
// per some tens of packets. The control thread announces itself first, so that busy packet threads
// let it in after their current batch, then takes every seat. So within a batch all peers,
// sessions and allowed IPs stand still, and pointers to them stay valid; between batches none may
// be kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace adit::dataplane::user {

class BatchGate {
 public:
  explicit BatchGate(std::size_t seats) : seats_(seats) {}

  /// The control thread waits: end the batch soon.
  [[nodiscard]] bool exclusiveWanted() const {
    return exclusive_.load(std::memory_order_relaxed) != 0;
  }

  /// Held by packet thread number `seat` during a batch.
  class Batch {
   public:
    Batch(BatchGate& gate, std::size_t seat) : mutex_(gate.seats_[seat].mutex) {
      while (const std::uint32_t waiting = gate.exclusive_.load(std::memory_order_acquire)) {
        gate.exclusive_.wait(waiting, std::memory_order_acquire);
      }
      mutex_.lock();
    }
    ~Batch() { mutex_.unlock(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    std::mutex& mutex_;
  };

  /// Held by the control thread; no batch runs meanwhile. Not recursive.
  class Exclusive {
   public:
    explicit Exclusive(BatchGate& gate) : gate_(gate) {
      gate_.exclusive_.store(1, std::memory_order_release);
      for (Seat& seat : gate_.seats_) {
        seat.mutex.lock();
      }
    }
    ~Exclusive() {
      for (Seat& seat : gate_.seats_) {
        seat.mutex.unlock();
      }
      // A full barrier: libstdc++ looks for waiters without one, and would miss a thread that looks
      // at the flag before this store is seen, which would then sleep until the next exclusion.
      gate_.exclusive_.exchange(0, std::memory_order_seq_cst);
      gate_.exclusive_.notify_all();
    }
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    BatchGate& gate_;
  };

 private:
  // On cache lines of their own: every batch of every thread writes one.
  struct alignas(64) Seat {
    std::mutex mutex;
  };

  std::atomic<std::uint32_t> exclusive_{0};
  std::vector<Seat> seats_;
};

}  // namespace adit::dataplane::user
