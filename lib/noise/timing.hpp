// The protocol's constants in one struct, so that tests can shorten them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "crypto/suite.hpp"
#include "noise/types.hpp"
#include "wire/timing.h"

namespace adit::noise {

/// Defaults are those of wire/timing.h and docs/protocol.md.
struct Timing {
  std::chrono::nanoseconds rekeyAfter = std::chrono::seconds(ADIT_REKEY_AFTER_TIME);
  std::chrono::nanoseconds rejectAfter = std::chrono::seconds(ADIT_REJECT_AFTER_TIME);
  /// A handshake that is unanswered for so long is given up.
  std::chrono::nanoseconds rekeyAttempt = std::chrono::seconds(ADIT_REKEY_ATTEMPT_TIME);
  /// Between two initiations to a peer, at least.
  std::chrono::nanoseconds rekeyTimeout = std::chrono::seconds(ADIT_REKEY_TIMEOUT);
  /// Greatest random delay on top of `rekeyTimeout`.
  std::chrono::nanoseconds rekeyJitter = std::chrono::milliseconds(ADIT_REKEY_TIMEOUT_JITTER_MS);
  /// Between two accepted initiations of a peer, at least.
  std::chrono::nanoseconds initiationInterval =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / ADIT_INITIATIONS_PER_SECOND;
  std::chrono::nanoseconds cookieSecretAge = std::chrono::seconds(ADIT_COOKIE_SECRET_AGE);
  /// A cookie is no longer used so long before its secret may have changed.
  std::chrono::nanoseconds cookieLatency = std::chrono::seconds(ADIT_COOKIE_SECRET_LATENCY);
  /// As many datagrams waiting mean that we are under load.
  std::size_t loadBacklog = 32;
  /// How long a load is remembered.
  std::chrono::nanoseconds loadHysteresis = std::chrono::seconds(1);
  /// Between two control messages to a peer that has not answered.
  std::chrono::nanoseconds controlInterval = std::chrono::seconds(ADIT_REKEY_TIMEOUT);
  /// Between two control messages of a peer that are acted on, at least.
  std::chrono::nanoseconds controlSpacing = std::chrono::seconds(1);
  /// After a change of suite that the peer did not answer, how long it is not tried again.
  std::chrono::nanoseconds upgradeHoldOff = std::chrono::minutes(10);
  std::uint64_t rekeyAfterMessagesChaCha = ADIT_REKEY_AFTER_MESSAGES_CHACHA;
  std::uint64_t rejectAfterMessagesChaCha = ADIT_REJECT_AFTER_MESSAGES_CHACHA;
  std::uint64_t rekeyAfterMessagesGcm = ADIT_REKEY_AFTER_MESSAGES_GCM;
  std::uint64_t rejectAfterMessagesGcm = ADIT_REJECT_AFTER_MESSAGES_GCM;

  /// The limits of a key of `suite` for packets of up to `mtu` bytes. The GCM counts hold for
  /// packets of 2^7 blocks and shrink in proportion above that, so that no key encrypts more than
  /// 2^36 blocks (draft-irtf-cfrg-aead-limits).
  [[nodiscard]] KeyLimits keyLimits(crypto::Suite suite, std::uint32_t mtu) const;
};

}  // namespace adit::noise
