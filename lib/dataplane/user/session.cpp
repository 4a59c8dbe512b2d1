#include "dataplane/user/session.hpp"

#include <algorithm>

#include "wire/timing.h"

namespace adit::dataplane::user {

Session::Session(Peer& peer, const noise::SessionKeys& keys, BootTime now)
    : peer_(peer),
      suite_(keys.suite),
      localIndex_(keys.localIndex),
      remoteIndex_(keys.remoteIndex),
      initiator_(keys.slot == noise::KeySlot::Current),
      start_(now),
      limits_(keys.limits),
      sendKey_(crypto::makeAeadKey(keys.suite, keys.send)),
      receiveKey_(crypto::makeAeadKey(keys.suite, keys.receive)) {}

std::optional<std::uint64_t> Session::reserve(std::uint64_t count) {
  const std::uint64_t limit = limits_.rejectAfterMessages;
  const auto fits = [&](std::uint64_t from) { return from < limit && limit - from >= count; };
  std::uint64_t first = counter_.load(std::memory_order_relaxed);
  while (fits(first)) {
    if (counter_.compare_exchange_weak(first, first + count, std::memory_order_relaxed)) {
      return first;
    }
  }
  // What is left is too little for some batch: given up, so that canSend() says so, and nobody
  // tries the same packets over and over under this key.
  while (first < limit &&
         !counter_.compare_exchange_weak(first, limit, std::memory_order_relaxed)) {
  }
  return std::nullopt;
}

bool Session::canSend(BootTime now) const {
  return !expired(now) && sent() < limits_.rejectAfterMessages;
}

bool Session::agedForSending(BootTime now) const {
  return sent() >= limits_.rekeyAfterMessages || (initiator_ && now - start_ >= limits_.rekeyAfter);
}

bool Session::agedForReceiving(BootTime now) const {
  constexpr std::chrono::seconds kMargin{ADIT_KEEPALIVE_TIMEOUT + ADIT_REKEY_TIMEOUT};
  return initiator_ && now - start_ >= std::max(limits_.rekeyAfter, limits_.rejectAfter - kMargin);
}

}  // namespace adit::dataplane::user
