#include "enrol/keys.hpp"

#include <algorithm>
#include <string_view>

namespace adit::enrol {
namespace {

crypto::Bytes bytesOf(std::string_view label) {
  return {reinterpret_cast<const std::uint8_t*>(label.data()), label.size()};
}

}  // namespace

EnrolmentKeys enrolmentKeys(const Secret<32>& secret, const crypto::PublicKey& server) {
  const Secret<32> chainingKey(crypto::blake2s({bytesOf("adit enrolment 1"), server.bytes}));
  Secret<32> privateKey;
  crypto::PresharedKey presharedKey;
  crypto::kdf(chainingKey, secret.bytes(), privateKey, presharedKey);
  return {crypto::PrivateKey(privateKey.bytes()), presharedKey};
}

std::optional<JoinKeys> joinKeys(const crypto::PrivateKey& own, const crypto::PublicKey& other,
                                 const JoinParties& parties) {
  const auto shared = crypto::x25519(own.secret(), other);
  if (!shared) return std::nullopt;
  const Secret<32> chainingKey(crypto::blake2s({bytesOf("adit join 1"), parties.enrolment.bytes,
                                                parties.server.bytes, parties.joining.bytes}));
  Secret<32> proof;
  JoinKeys keys;
  crypto::kdf(chainingKey, shared->bytes(), proof, keys.answer);
  std::copy_n(proof.data(), keys.proof.size(), keys.proof.begin());
  return keys;
}

}  // namespace adit::enrol
