#include "initiation.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

#include "crypto/box.hpp"
#include "crypto/hash.hpp"
#include "wire/messages.h"

namespace adit::peers {
namespace {

using crypto::Bytes;

Bytes bytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Secret<32> sharedSecret(const Secret<32>& own, const crypto::PublicKey& other) {
  const auto secret = crypto::x25519(own, other);
  if (!secret) {
    throw std::runtime_error("the responder's key is of low order");
  }
  return *secret;
}

/// TAI64N of no particular time.
constexpr std::array<std::uint8_t, ADIT_TIMESTAMP_LENGTH> kTimestamp{0x40, 0, 0, 0, 0x70};

}  // namespace

std::vector<std::uint8_t> strangersInitiation(const crypto::PublicKey& responder,
                                              std::uint32_t senderIndex) {
  adit_message_initiation message{};
  message.header.type = ADIT_MESSAGE_INITIATION;
  message.sender_index = senderIndex;

  const auto construction = crypto::blake2s({bytesOf("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")});
  Secret<32> chain{std::span<const std::uint8_t, 32>(construction)};
  auto hash = crypto::blake2s({construction, bytesOf("WireGuard v1 zx2c4 Jason@zx2c4.com")});
  hash = crypto::blake2s({hash, responder.bytes});

  const auto ephemeral = crypto::PrivateKey::generate();
  const auto ephemeralPublic = ephemeral.publicKey();
  std::memcpy(message.unencrypted_ephemeral, ephemeralPublic.bytes.data(), ADIT_KEY_LENGTH);
  hash = crypto::blake2s({hash, ephemeralPublic.bytes});
  crypto::kdf(chain, ephemeralPublic.bytes, chain);

  const auto identity = crypto::PrivateKey::generate();
  const auto identityPublic = identity.publicKey();
  Secret<32> key;
  crypto::kdf(chain, sharedSecret(ephemeral.secret(), responder).bytes(), chain, key);
  crypto::sealBox(key.bytes(), 0, hash, identityPublic.bytes, message.encrypted_static);
  hash = crypto::blake2s({hash, message.encrypted_static});

  crypto::kdf(chain, sharedSecret(identity.secret(), responder).bytes(), chain, key);
  crypto::sealBox(key.bytes(), 0, hash, kTimestamp, message.encrypted_timestamp);

  std::vector<std::uint8_t> result(sizeof(message));
  std::memcpy(result.data(), &message, sizeof(message));
  constexpr std::size_t kMac1At = offsetof(adit_message_initiation, macs);
  const auto mac1Key = crypto::blake2s({bytesOf("mac1----"), responder.bytes});
  const auto mac1 = crypto::keyedBlake2s(mac1Key, {std::span(result).first(kMac1At)});
  std::memcpy(result.data() + kMac1At, mac1.data(), mac1.size());
  return result;
}

}  // namespace adit::peers
