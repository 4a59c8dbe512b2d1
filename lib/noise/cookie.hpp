// mac1, mac2 and cookies: what keeps strangers from making us compute.
//
// Source: the WireGuard paper, sections 5.3, 5.4.4 and 5.4.7.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "crypto/hash.hpp"
#include "crypto/key.hpp"
#include "crypto/random.hpp"
#include "noise/timing.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"
#include "util/secret.hpp"
#include "wire/messages.h"

namespace adit::noise {

using Cookie = Secret<ADIT_COOKIE_LENGTH>;

/// HASH("mac1----" || publicKey): the key of mac1 in messages to the owner of `publicKey`.
crypto::Hash mac1Key(const crypto::PublicKey& publicKey);
/// HASH("cookie--" || publicKey): the key of cookie replies by the owner of `publicKey`.
crypto::Hash cookieKey(const crypto::PublicKey& publicKey);

/// Checks the macs of messages to us and answers with cookies. For initiations and responses,
/// whose last 32 bytes are the macs; shorter spans are a programming error.
class CookieChecker {
 public:
  CookieChecker(const crypto::PublicKey& ourKey, crypto::RandomSource& random,
                const Timing& timing);

  /// Constant time.
  [[nodiscard]] bool mac1Valid(std::span<const std::uint8_t> message);
  /// Whether mac2 was made with the cookie that `source` has of us.
  [[nodiscard]] bool mac2Valid(std::span<const std::uint8_t> message, const Endpoint& source,
                               BootTime now);
  /// The cookie reply for `message`, whose sender index is `receiverIndex`.
  [[nodiscard]] adit_message_cookie reply(std::span<const std::uint8_t> message,
                                          std::uint32_t receiverIndex, const Endpoint& source,
                                          BootTime now);

 private:
  [[nodiscard]] Cookie cookieOf(const Endpoint& source, BootTime now);

  crypto::RandomSource& random_;
  std::chrono::nanoseconds secretAge_;
  crypto::KeyedBlake2s mac1_;
  crypto::Hash cookieKey_;
  Secret<32> secret_;
  std::optional<BootTime> secretMade_;
};

/// Puts the macs on messages to one peer, and keeps the cookie that the peer gave us.
class CookieMaker {
 public:
  CookieMaker(const crypto::PublicKey& peerKey, const Timing& timing);

  /// Fills the last 32 bytes of `message`: mac1, and mac2 if there is a fresh cookie, else zeros.
  void addMacs(std::span<std::uint8_t> message, BootTime now);
  /// False when the reply is not authentic or answers no message of ours.
  bool consume(const adit_message_cookie& reply, BootTime now);

 private:
  std::chrono::nanoseconds cookieLife_;
  crypto::Hash mac1Key_;
  crypto::Hash cookieKey_;
  /// mac1 of the last message; a cookie reply proves that it saw it. Used once.
  std::optional<crypto::Mac> lastMac1_;
  Cookie cookie_;
  std::optional<BootTime> cookieReceived_;
};

}  // namespace adit::noise
