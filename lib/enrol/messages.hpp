// What a joining machine and its server say to each other, as in-tunnel control messages of the
// enrolment peer's session; docs/protocol.md, "Enrolment".
//
// The session proves that the sender has the token. The request proves in addition that it has the
// private half of the key that it brings, and the answer is sealed to that key: two machines with
// one token share the enrolment peer, and neither shall read the other's preshared key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/random.hpp"
#include "enrol/keys.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::enrol {

using Message = std::vector<std::uint8_t>;

/// Ports that the new peer may ask for.
struct Grant {
  bool tcp = false;
  bool udp = false;
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(const Grant&, const Grant&) = default;
};
/// As many fit into one message.
inline constexpr std::size_t kMaxGrants = 30;

enum class Verdict : std::uint8_t {
  Accepted = 0,
  /// The invitation belongs to another key.
  Taken = 1,
  Expired = 2,
  /// The server has no such invitation any more.
  Withdrawn = 3,
  /// The server cannot write it down at the moment; its log has the reason.
  NotNow = 4,
};

struct Answer {
  Verdict verdict = Verdict::NotNow;
  /// The rest is of an accepted key.
  crypto::PresharedKey presharedKey;
  /// At most one of each family, with the length of the tunnel's prefix.
  std::vector<InterfaceAddress> addresses;
  /// Bytes; 0 where the server's file sets none.
  std::uint16_t mtu = 0;
  std::vector<Grant> grants;
  /// Also for addresses behind the new peer.
  bool thirdParty = false;
};

/// `keys` as of the key that joins.
Message encodeRequest(const crypto::PublicKey& joining, const JoinKeys& keys);
/// The key that joins and its keys, or nothing when the message is no request, or whoever sent it
/// does not have the private key.
struct Request {
  crypto::PublicKey joining;
  JoinKeys keys;
};
std::optional<Request> decodeRequest(std::span<const std::uint8_t> message,
                                     const crypto::PrivateKey& server,
                                     const crypto::PublicKey& enrolment);

/// `answer` must keep to the limits above.
Message encodeAnswer(const Answer& answer, const JoinKeys& keys, crypto::RandomSource& random);
/// Nothing when the message is no answer, or one to another key.
std::optional<Answer> decodeAnswer(std::span<const std::uint8_t> message, const JoinKeys& keys);

}  // namespace adit::enrol
