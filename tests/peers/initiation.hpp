// Handshake initiations as a stranger would send them: right in every field, from a key that the
// responder does not know.
#pragma once

#include <cstdint>
#include <vector>

#include "crypto/key.hpp"

namespace adit::peers {

/// The 148 bytes of the WireGuard paper's first message (section 5.4.2), suite 0, under fresh
/// ephemeral and static keys, with a right mac1 and no cookie.
std::vector<std::uint8_t> strangersInitiation(const crypto::PublicKey& responder,
                                              std::uint32_t senderIndex);

}  // namespace adit::peers
