// Session keys for tests.
#pragma once

#include <catch2/catch.hpp>

#include "crypto/aead.hpp"
#include "noise/types.hpp"
#include "wire/timing.h"

namespace adit::test {

inline void prepareAead() {
  REQUIRE(crypto::initializeAead());
}

/// Keys that are different for each `number`; WireGuard's limits.
inline noise::SessionKeys keysFor(noise::KeySlot slot, std::uint32_t number,
                                  crypto::Suite suite = crypto::Suite::ChaCha20Poly1305) {
  noise::SessionKeys keys{.slot = slot,
                          .suite = suite,
                          .localIndex = number,
                          .remoteIndex = number + 0x1000000,
                          .send = {},
                          .receive = {},
                          .limits = {.rekeyAfter = std::chrono::seconds(ADIT_REKEY_AFTER_TIME),
                                     .rejectAfter = std::chrono::seconds(ADIT_REJECT_AFTER_TIME),
                                     .rekeyAfterMessages = ADIT_REKEY_AFTER_MESSAGES_CHACHA,
                                     .rejectAfterMessages = ADIT_REJECT_AFTER_MESSAGES_CHACHA}};
  keys.send.bytes()[0] = static_cast<std::uint8_t>(number);
  keys.send.bytes()[1] = static_cast<std::uint8_t>(number >> 8);
  keys.send.bytes()[31] = 1;
  keys.receive.bytes()[0] = static_cast<std::uint8_t>(number);
  keys.receive.bytes()[1] = static_cast<std::uint8_t>(number >> 8);
  keys.receive.bytes()[31] = 2;
  return keys;
}

/// The same session as the other side has it.
inline noise::SessionKeys otherSide(noise::SessionKeys keys) {
  std::swap(keys.send, keys.receive);
  std::swap(keys.localIndex, keys.remoteIndex);
  keys.slot = keys.slot == noise::KeySlot::Current ? noise::KeySlot::Next : noise::KeySlot::Current;
  return keys;
}

}  // namespace adit::test
