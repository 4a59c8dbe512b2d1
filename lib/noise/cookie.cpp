#include "noise/cookie.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include "crypto/box.hpp"

namespace adit::noise {
namespace {

crypto::Bytes asBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

template <typename Span>
struct Parts {
  Span beforeMac1;
  Span mac1;
  Span beforeMac2;
  Span mac2;
};

/// The end of a message: mac1 covers what stands before it, mac2 also mac1.
template <typename Byte>
Parts<std::span<Byte>> partsOf(std::span<Byte> message) {
  assert(message.size() > sizeof(adit_message_macs));
  const std::size_t mac1 = message.size() - sizeof(adit_message_macs);
  const std::size_t mac2 = mac1 + ADIT_MAC_LENGTH;
  return {message.first(mac1), message.subspan(mac1, ADIT_MAC_LENGTH), message.first(mac2),
          message.subspan(mac2)};
}

bool equalMacs(crypto::Bytes a, crypto::Bytes b) {
  return sodium_memcmp(a.data(), b.data(), ADIT_MAC_LENGTH) == 0;
}

}  // namespace

crypto::Hash mac1Key(const crypto::PublicKey& publicKey) {
  return crypto::blake2s({asBytes("mac1----"), publicKey.bytes});
}

crypto::Hash cookieKey(const crypto::PublicKey& publicKey) {
  return crypto::blake2s({asBytes("cookie--"), publicKey.bytes});
}

CookieChecker::CookieChecker(const crypto::PublicKey& ourKey, crypto::RandomSource& random,
                             const Timing& timing)
    : random_(random),
      secretAge_(timing.cookieSecretAge),
      mac1_(mac1Key(ourKey)),
      cookieKey_(cookieKey(ourKey)) {}

bool CookieChecker::mac1Valid(std::span<const std::uint8_t> message) {
  const auto parts = partsOf(message);
  return equalMacs(mac1_(parts.beforeMac1), parts.mac1);
}

bool CookieChecker::mac2Valid(std::span<const std::uint8_t> message, const Endpoint& source,
                              BootTime now) {
  const auto parts = partsOf(message);
  const Cookie cookie = cookieOf(source, now);
  return equalMacs(crypto::keyedBlake2s(cookie.bytes(), {parts.beforeMac2}), parts.mac2);
}

adit_message_cookie CookieChecker::reply(std::span<const std::uint8_t> message,
                                         std::uint32_t receiverIndex, const Endpoint& source,
                                         BootTime now) {
  adit_message_cookie out{};
  out.header.type = ADIT_MESSAGE_COOKIE;
  out.receiver_index = htole32(receiverIndex);
  random_.fill(out.nonce);
  const Cookie cookie = cookieOf(source, now);
  crypto::sealXBox(cookieKey_, out.nonce, partsOf(message).mac1, cookie.bytes(),
                   out.encrypted_cookie);
  return out;
}

Cookie CookieChecker::cookieOf(const Endpoint& source, BootTime now) {
  if (!secretMade_ || now - *secretMade_ >= secretAge_) {
    random_.fill(secret_.bytes());
    secretMade_ = now;
  }
  const std::array<std::uint8_t, 2> port{static_cast<std::uint8_t>(source.port >> 8),
                                         static_cast<std::uint8_t>(source.port)};
  const crypto::Mac mac = crypto::keyedBlake2s(secret_.bytes(), {source.address.bytes(), port});
  return Cookie(mac);
}

CookieMaker::CookieMaker(const crypto::PublicKey& peerKey, const Timing& timing)
    : cookieLife_(timing.cookieSecretAge - timing.cookieLatency),
      mac1Key_(mac1Key(peerKey)),
      cookieKey_(cookieKey(peerKey)) {}

void CookieMaker::addMacs(std::span<std::uint8_t> message, BootTime now) {
  const auto parts = partsOf(message);
  const crypto::Mac mac1 = crypto::keyedBlake2s(mac1Key_, {parts.beforeMac1});
  std::ranges::copy(mac1, parts.mac1.begin());
  lastMac1_ = mac1;
  if (cookieReceived_ && now - *cookieReceived_ < cookieLife_) {
    std::ranges::copy(crypto::keyedBlake2s(cookie_.bytes(), {parts.beforeMac2}),
                      parts.mac2.begin());
    return;
  }
  cookie_.wipe();
  cookieReceived_.reset();
  std::ranges::fill(parts.mac2, std::uint8_t{0});
}

bool CookieMaker::consume(const adit_message_cookie& reply, BootTime now) {
  if (!lastMac1_) return false;
  Cookie cookie;
  if (!crypto::openXBox(cookieKey_, reply.nonce, *lastMac1_, reply.encrypted_cookie,
                        cookie.bytes())) {
    return false;
  }
  cookie_ = std::move(cookie);
  cookieReceived_ = now;
  lastMac1_.reset();
  return true;
}

}  // namespace adit::noise
