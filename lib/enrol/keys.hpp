// Keys of the enrolment, by BLAKE2s and X25519 of lib/crypto; docs/protocol.md, "Enrolment".
#pragma once

#include <optional>

#include "crypto/hash.hpp"
#include "crypto/key.hpp"
#include "util/secret.hpp"

namespace adit::enrol {

/// The peer that carries the enrolment: whoever has the token has both, the server keeps the public
/// half of the first.
struct EnrolmentKeys {
  crypto::PrivateKey privateKey;
  crypto::PresharedKey presharedKey;
};
EnrolmentKeys enrolmentKeys(const Secret<32>& secret, const crypto::PublicKey& server);

/// What only the owner of the new private key and the server know.
struct JoinKeys {
  /// Shows that the sender of a public key has the private one.
  crypto::Mac proof;
  /// Seals the answer to that key.
  Secret<32> answer;
};

/// Who takes part in one enrolment.
struct JoinParties {
  crypto::PublicKey enrolment;
  crypto::PublicKey server;
  crypto::PublicKey joining;
};
/// `own` is the private key of the server or of who joins, `other` the public key of the other of
/// the two. Nothing when `other` is a low-order point.
std::optional<JoinKeys> joinKeys(const crypto::PrivateKey& own, const crypto::PublicKey& other,
                                 const JoinParties& parties);

}  // namespace adit::enrol
