// Tokens, requests and answers of an enrolment, as they come and as somebody makes them who has the
// keys and the checksum right.
#include <sodium.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "crypto/box.hpp"
#include "enrol/messages.hpp"
#include "enrol/token.hpp"
#include "wire/control.h"

namespace {

using namespace adit;
using Bytes = std::span<const std::uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

crypto::PrivateKey keyOf(std::uint8_t value) {
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(value);
  return crypto::PrivateKey(bytes);
}

void readToken(std::string_view text) {
  const auto token = enrol::decodeToken(text);
  if (!token) return;
  const auto again = enrol::decodeToken(enrol::encodeToken(*token));
  require(again && again->secret == token->secret && again->endpoints == token->endpoints);
}

/// `body` with the checksum that it needs.
std::string tokenOf(Bytes body) {
  constexpr std::string_view kLabel = "adit token 1";
  const auto hash = crypto::blake2s(
      {{reinterpret_cast<const std::uint8_t*>(kLabel.data()), kLabel.size()}, body});
  std::vector<std::uint8_t> whole(body.begin(), body.end());
  whole.insert(whole.end(), hash.begin(), hash.begin() + 8);
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::string text(sodium_base64_encoded_len(whole.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), whole.data(), whole.size(), kVariant);
  text.pop_back();
  return "adit1_" + text;
}

void readSealed(Bytes plain, const enrol::JoinKeys& keys) {
  constexpr std::size_t kMost = 200;
  plain = plain.first(std::min(plain.size(), kMost));
  enrol::Message message{ADIT_CONTROL_VERSION, ADIT_CONTROL_JOIN_ANSWER,
                         static_cast<std::uint8_t>(24 + plain.size() + crypto::kBoxTagSize)};
  message.resize(message.size() + message.back());
  const std::span<std::uint8_t> value = std::span(message).subspan(3);
  crypto::sealXBox(keys.answer.bytes(), value.first<24>(), {}, plain, value.subspan(24));
  const auto answer = enrol::decodeAnswer(message, keys);
  if (!answer) return;
  require(answer->grants.size() <= 255 && answer->addresses.size() <= 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const crypto::PrivateKey server = keyOf(1);
  static const crypto::PrivateKey joining = keyOf(2);
  static const crypto::PublicKey enrolment = keyOf(3).publicKey();
  static const enrol::JoinKeys keys = *enrol::joinKeys(
      joining, server.publicKey(), {enrolment, server.publicKey(), joining.publicKey()});
  const Bytes input(data, size);
  readToken({reinterpret_cast<const char*>(data), size});
  readToken(tokenOf(input));
  readSealed(input, keys);
  enrol::decodeRequest(input, server, enrolment);
  enrol::decodeAnswer(input, keys);
  return 0;
}
