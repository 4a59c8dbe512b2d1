// The three sessions of a peer: sending uses the current one; a responder's new one waits as next
// until the other side has used it; datagrams still under way arrive under the previous one.
#pragma once

#include <array>
#include <atomic>

#include "dataplane/user/session.hpp"

namespace adit::dataplane::user {

/// Sessions that fall out of the slots are retired, and freed by the control thread. install and
/// clear are for the control thread with batches kept out; the rest is thread-safe.
class KeySlots {
 public:
  [[nodiscard]] Session* current() const { return current_.load(std::memory_order_acquire); }
  [[nodiscard]] std::array<Session*, 3> all() const {
    return {current(), previous_.load(std::memory_order_acquire),
            next_.load(std::memory_order_acquire)};
  }

  /// On the initiator: the session is used at once.
  void installCurrent(Session* session) {
    // A next session that was never confirmed may still be used by the other side, which finished
    // its handshake after ours: keep receiving under it rather than under the older current one.
    if (Session* next = next_.exchange(nullptr); next != nullptr) {
      replace(previous_, next);
      replace(current_, session);
    } else {
      replace(previous_, current_.exchange(session));
    }
  }

  /// On the responder: the session waits for its first authenticated packet.
  void installNext(Session* session) {
    replace(next_, session);
    replace(previous_, nullptr);
  }

  /// A packet was authenticated under `session`. True when that made it the current one.
  bool promote(Session* session) {
    if (next_.load(std::memory_order_relaxed) != session) return false;
    Session* expected = session;
    if (!next_.compare_exchange_strong(expected, nullptr)) return false;
    replace(previous_, current_.exchange(session, std::memory_order_acq_rel));
    return true;
  }

  void clear() {
    replace(current_, nullptr);
    replace(previous_, nullptr);
    replace(next_, nullptr);
  }

 private:
  static void replace(std::atomic<Session*>& slot, Session* session) {
    Session* old = slot.exchange(session, std::memory_order_acq_rel);
    if (old != nullptr) old->retire();
  }

  std::atomic<Session*> current_{nullptr};
  std::atomic<Session*> previous_{nullptr};
  std::atomic<Session*> next_{nullptr};
};

}  // namespace adit::dataplane::user
