#include "noise/handshake.hpp"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "crypto/box.hpp"

namespace adit::noise {
namespace {

using crypto::Bytes;

constexpr std::string_view kConstruction = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
constexpr std::string_view kIdentifier = "WireGuard v1 zx2c4 Jason@zx2c4.com";
constexpr std::string_view kSuiteLabel = "adit suite";

Bytes asBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void mixHash(Transcript& transcript, Bytes data) {
  transcript.hash = crypto::blake2s({transcript.hash, data});
}

void mixKey(Transcript& transcript, Bytes input) {
  Secret<32> next;
  crypto::kdf(transcript.chainingKey, input, next);
  transcript.chainingKey = std::move(next);
}

/// Also derives the key of the next sealed field.
void mixKey(Transcript& transcript, Bytes input, Secret<32>& key) {
  Secret<32> next;
  crypto::kdf(transcript.chainingKey, input, next, key);
  transcript.chainingKey = std::move(next);
}

/// An ephemeral key is public and enters both the chaining key and the hash.
void mixEphemeral(Transcript& transcript, const crypto::PublicKey& ephemeral) {
  mixKey(transcript, ephemeral.bytes);
  mixHash(transcript, ephemeral.bytes);
}

void sealField(Transcript& transcript, const Secret<32>& key, Bytes plaintext,
               std::span<std::uint8_t> field) {
  crypto::sealBox(key.bytes(), 0, transcript.hash, plaintext, field);
  mixHash(transcript, field);
}

bool openField(Transcript& transcript, const Secret<32>& key, Bytes field,
               std::span<std::uint8_t> plaintext) {
  if (!crypto::openBox(key.bytes(), 0, transcript.hash, field, plaintext)) return false;
  mixHash(transcript, field);
  return true;
}

/// Up to and including the responder's static key. Suite 0 is WireGuard's transcript; another
/// suite is bound into it, so that both sides agree on it or fail.
Transcript startTranscript(crypto::Suite suite, const crypto::PublicKey& responder) {
  const crypto::Hash construction = crypto::blake2s({asBytes(kConstruction)});
  Transcript transcript;
  transcript.chainingKey = Secret<32>(construction);
  transcript.hash = crypto::blake2s({construction, asBytes(kIdentifier)});
  if (suite != crypto::Suite::ChaCha20Poly1305) {
    const auto id = static_cast<std::uint8_t>(suite);
    transcript.hash = crypto::blake2s({transcript.hash, asBytes(kSuiteLabel), Bytes(&id, 1)});
  }
  mixHash(transcript, responder.bytes);
  return transcript;
}

crypto::PrivateKey makeEphemeral(crypto::RandomSource& random) {
  Secret<32> bytes;
  random.fill(bytes.bytes());
  return crypto::PrivateKey(bytes.bytes());
}

crypto::PublicKey publicKeyOf(const std::uint8_t (&bytes)[ADIT_KEY_LENGTH]) {
  crypto::PublicKey key;
  std::ranges::copy(bytes, key.bytes.begin());
  return key;
}

adit_message_header headerOf(adit_message_type type, crypto::Suite suite) {
  adit_message_header header{};
  header.type = static_cast<std::uint8_t>(type);
  header.suite = static_cast<std::uint8_t>(suite);
  return header;
}

/// Mixes the preshared key in; `key` seals the response's empty field.
void mixPresharedKey(Transcript& transcript, const crypto::PresharedKey& presharedKey,
                     Secret<32>& key) {
  Secret<32> next;
  Secret<32> tau;
  crypto::kdf(transcript.chainingKey, presharedKey.bytes(), next, tau, key);
  transcript.chainingKey = std::move(next);
  mixHash(transcript, tau.bytes());
}

}  // namespace

std::optional<InitiatorHandshake> createInitiation(const Identity& identity, const Remote& remote,
                                                   crypto::Suite suite, std::uint32_t localIndex,
                                                   const Tai64n& timestamp,
                                                   crypto::RandomSource& random,
                                                   adit_message_initiation& message) {
  message = {};
  const crypto::PrivateKey ephemeral = makeEphemeral(random);
  const crypto::PublicKey ephemeralPublic = ephemeral.publicKey();
  const auto ephemeralStatic = crypto::x25519(ephemeral.secret(), remote.publicKey);
  if (!ephemeralStatic || remote.staticStatic.isZero()) return std::nullopt;

  InitiatorHandshake handshake{suite, localIndex, ephemeral.secret(),
                               startTranscript(suite, remote.publicKey)};
  Transcript& transcript = handshake.transcript;
  message.header = headerOf(ADIT_MESSAGE_INITIATION, suite);
  message.sender_index = htole32(localIndex);
  std::ranges::copy(ephemeralPublic.bytes, message.unencrypted_ephemeral);
  mixEphemeral(transcript, ephemeralPublic);

  Secret<32> key;
  mixKey(transcript, ephemeralStatic->bytes(), key);
  sealField(transcript, key, identity.publicKey.bytes, message.encrypted_static);
  mixKey(transcript, remote.staticStatic.bytes(), key);
  sealField(transcript, key, timestamp.toBytes(), message.encrypted_timestamp);
  return handshake;
}

std::optional<ReceivedInitiation> openInitiation(const Identity& identity,
                                                 const adit_message_initiation& message) {
  const auto suite = crypto::suiteFromWire(message.header.suite);
  if (!suite) return std::nullopt;
  ReceivedInitiation received{*suite,
                              le32toh(message.sender_index),
                              {},
                              publicKeyOf(message.unencrypted_ephemeral),
                              startTranscript(*suite, identity.publicKey)};
  mixEphemeral(received.transcript, received.remoteEphemeral);
  const auto ephemeralStatic =
      crypto::x25519(identity.privateKey.secret(), received.remoteEphemeral);
  if (!ephemeralStatic) return std::nullopt;
  Secret<32> key;
  mixKey(received.transcript, ephemeralStatic->bytes(), key);
  if (!openField(received.transcript, key, message.encrypted_static, received.remoteStatic.bytes)) {
    return std::nullopt;
  }
  return received;
}

std::optional<Tai64n> authenticateInitiation(ReceivedInitiation& received, const Remote& remote,
                                             const adit_message_initiation& message) {
  if (remote.staticStatic.isZero()) return std::nullopt;
  Secret<32> key;
  mixKey(received.transcript, remote.staticStatic.bytes(), key);
  Tai64n::Bytes timestamp{};
  if (!openField(received.transcript, key, message.encrypted_timestamp, timestamp)) {
    return std::nullopt;
  }
  return Tai64n::fromBytes(timestamp);
}

std::optional<TransportKeys> createResponse(const ReceivedInitiation& received,
                                            const Remote& remote, std::uint32_t localIndex,
                                            crypto::RandomSource& random,
                                            adit_message_response& message) {
  message = {};
  const crypto::PrivateKey ephemeral = makeEphemeral(random);
  const auto ephemeralEphemeral = crypto::x25519(ephemeral.secret(), received.remoteEphemeral);
  const auto ephemeralStatic = crypto::x25519(ephemeral.secret(), remote.publicKey);
  if (!ephemeralEphemeral || !ephemeralStatic) return std::nullopt;

  Transcript transcript = received.transcript;
  const crypto::PublicKey ephemeralPublic = ephemeral.publicKey();
  message.header = headerOf(ADIT_MESSAGE_RESPONSE, received.suite);
  message.sender_index = htole32(localIndex);
  message.receiver_index = htole32(received.remoteIndex);
  std::ranges::copy(ephemeralPublic.bytes, message.unencrypted_ephemeral);
  mixEphemeral(transcript, ephemeralPublic);
  mixKey(transcript, ephemeralEphemeral->bytes());
  mixKey(transcript, ephemeralStatic->bytes());
  Secret<32> key;
  mixPresharedKey(transcript, remote.presharedKey, key);
  sealField(transcript, key, {}, message.encrypted_nothing);

  TransportKeys keys;
  crypto::kdf(transcript.chainingKey, {}, keys.receive, keys.send);
  return keys;
}

std::optional<TransportKeys> consumeResponse(const InitiatorHandshake& handshake,
                                             const Identity& identity, const Remote& remote,
                                             const adit_message_response& message) {
  if (message.header.suite != static_cast<std::uint8_t>(handshake.suite)) return std::nullopt;
  const crypto::PublicKey remoteEphemeral = publicKeyOf(message.unencrypted_ephemeral);
  const auto ephemeralEphemeral = crypto::x25519(handshake.ephemeral, remoteEphemeral);
  const auto staticEphemeral = crypto::x25519(identity.privateKey.secret(), remoteEphemeral);
  if (!ephemeralEphemeral || !staticEphemeral) return std::nullopt;

  Transcript transcript = handshake.transcript;
  mixEphemeral(transcript, remoteEphemeral);
  mixKey(transcript, ephemeralEphemeral->bytes());
  mixKey(transcript, staticEphemeral->bytes());
  Secret<32> key;
  mixPresharedKey(transcript, remote.presharedKey, key);
  if (!openField(transcript, key, message.encrypted_nothing, {})) return std::nullopt;

  TransportKeys keys;
  crypto::kdf(transcript.chainingKey, {}, keys.send, keys.receive);
  return keys;
}

}  // namespace adit::noise
