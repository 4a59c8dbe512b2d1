// What a finished handshake hands to a data plane.
#pragma once

#include <chrono>
#include <cstdint>

#include "crypto/key.hpp"
#include "crypto/suite.hpp"
#include "util/secret.hpp"

namespace adit::noise {

/// Names a peer for the life of a device. Never reused, so that a late event or key install
/// cannot meet another peer.
using PeerId = std::uint64_t;

/// Where a new session starts: `Next` on the responder, which must not send under it before the
/// first authenticated packet arrives; `Current` on the initiator.
enum class KeySlot : std::uint8_t { Current, Next };

/// Travel with a key, so that tests can shorten them.
struct KeyLimits {
  std::chrono::nanoseconds rekeyAfter;
  std::chrono::nanoseconds rejectAfter;
  std::uint64_t rekeyAfterMessages;
  std::uint64_t rejectAfterMessages;
};

struct SessionKeys {
  KeySlot slot;
  crypto::Suite suite;
  /// Names the session in datagrams that we receive; random and unique per device.
  std::uint32_t localIndex;
  /// Names the session in datagrams that we send.
  std::uint32_t remoteIndex;
  Secret<32> send;
  Secret<32> receive;
  KeyLimits limits;
};

}  // namespace adit::noise
