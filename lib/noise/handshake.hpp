// The four steps of Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s as WireGuard uses it.
//
// Source: Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel" (NDSS 2017), sections
// 5.4.1 to 5.4.5; for suites other than 0 docs/protocol.md. Pure functions of their arguments: no
// clock, no state but what they return. The macs of messages are left zero; see cookie.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "crypto/hash.hpp"
#include "crypto/key.hpp"
#include "crypto/random.hpp"
#include "crypto/suite.hpp"
#include "noise/timestamp.hpp"
#include "util/secret.hpp"
#include "wire/messages.h"

namespace adit::noise {

/// Our static key pair.
struct Identity {
  explicit Identity(const crypto::PrivateKey& key) : privateKey(key), publicKey(key.publicKey()) {}
  crypto::PrivateKey privateKey;
  crypto::PublicKey publicKey;
};

/// The other side of a handshake.
struct Remote {
  crypto::PublicKey publicKey;
  /// X25519 of our private and its public static key; computed once per peer.
  Secret<32> staticStatic;
  crypto::PresharedKey presharedKey;
};

/// The transcript hash and the chaining key so far.
struct Transcript {
  crypto::Hash hash{};
  Secret<32> chainingKey;
};

/// What an initiator remembers until the response. Wiped on destruction.
struct InitiatorHandshake {
  crypto::Suite suite;
  std::uint32_t localIndex;
  Secret<32> ephemeral;
  Transcript transcript;
};

/// What a responder learned from an initiation. Wiped on destruction.
struct ReceivedInitiation {
  crypto::Suite suite;
  /// The initiator's index, in our byte order.
  std::uint32_t remoteIndex;
  crypto::PublicKey remoteStatic;
  crypto::PublicKey remoteEphemeral;
  Transcript transcript;
};

struct TransportKeys {
  Secret<32> send;
  Secret<32> receive;
};

/// Fills `message` but its macs. Nothing when a shared secret is all zero (a low-order public
/// key): `message` must not be sent then.
std::optional<InitiatorHandshake> createInitiation(const Identity& identity, const Remote& remote,
                                                   crypto::Suite suite, std::uint32_t localIndex,
                                                   const Tai64n& timestamp,
                                                   crypto::RandomSource& random,
                                                   adit_message_initiation& message);

/// Responder, first half: who is it? Nothing for an unknown suite, a message that was not made for
/// our key, or a low-order ephemeral key. The sender is not authenticated yet.
std::optional<ReceivedInitiation> openInitiation(const Identity& identity,
                                                 const adit_message_initiation& message);

/// Responder, second half, once the caller knows the peer `received.remoteStatic`: authenticates
/// it and returns its timestamp.
std::optional<Tai64n> authenticateInitiation(ReceivedInitiation& received, const Remote& remote,
                                             const adit_message_initiation& message);

/// Answers an authenticated initiation: fills `message` but its macs, and returns the session's
/// keys. Nothing as for createInitiation().
std::optional<TransportKeys> createResponse(const ReceivedInitiation& received,
                                            const Remote& remote, std::uint32_t localIndex,
                                            crypto::RandomSource& random,
                                            adit_message_response& message);

/// Initiator: the session's keys, or nothing when the response is not authentic. The caller
/// destroys `handshake` on success, before it installs the keys.
std::optional<TransportKeys> consumeResponse(const InitiatorHandshake& handshake,
                                             const Identity& identity, const Remote& remote,
                                             const adit_message_response& message);

}  // namespace adit::noise
