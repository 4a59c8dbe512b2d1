#include "enrol/messages.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "crypto/box.hpp"
#include "enrol/bytes.hpp"
#include "wire/control.h"

namespace adit::enrol {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kNonceLength = 24;
constexpr std::uint8_t kThirdParty = 1;
constexpr std::uint8_t kTcp = 1;
constexpr std::uint8_t kUdp = 2;
/// Version and the head of the only record.
constexpr std::size_t kHeadLength = 1 + sizeof(adit_control_record);
/// Sealed: all fields with both addresses and every grant.
constexpr std::size_t kMaxAnswer = 1 + 32 + 2 + (1 + 4) + (1 + 16) + 1 + 1 + kMaxGrants * 5;
static_assert(kHeadLength + kNonceLength + kMaxAnswer + crypto::kBoxTagSize <=
              ADIT_CONTROL_MAX_LENGTH);

Message messageOf(adit_control_type type, Bytes value) {
  Message message{ADIT_CONTROL_VERSION, static_cast<std::uint8_t>(type),
                  static_cast<std::uint8_t>(value.size())};
  message.insert(message.end(), value.begin(), value.end());
  return message;
}

/// The value of the first record of that type; records of others are skipped.
std::optional<Bytes> valueOf(adit_control_type type, Bytes message) {
  Reader reader(message);
  if (reader.number<std::uint8_t>() != ADIT_CONTROL_VERSION) return std::nullopt;
  while (reader.ok()) {
    const auto found = reader.number<std::uint8_t>();
    if (!reader.ok() || found == ADIT_CONTROL_END) return std::nullopt;
    const Bytes value = reader.take(reader.number<std::uint8_t>());
    if (reader.ok() && found == type) return value;
  }
  return std::nullopt;
}

void writeAddress(Writer& writer, const std::vector<InterfaceAddress>& addresses, int family) {
  const auto found = std::ranges::find_if(
      addresses, [&](const InterfaceAddress& a) { return a.address.family() == family; });
  if (found == addresses.end()) return writer.number(std::uint8_t{0});
  writer.number(static_cast<std::uint8_t>(found->length));
  writer.raw(found->address.bytes());
}

/// False for a length that no address has.
bool readAddress(Reader& reader, std::vector<InterfaceAddress>& addresses, bool v6) {
  const unsigned length = reader.number<std::uint8_t>();
  if (length == 0) return reader.ok();
  const auto bytes = reader.take(v6 ? 16 : 4);
  if (!reader.ok()) return false;
  const IpAddress address =
      v6 ? IpAddress::fromV6(bytes.first<16>()) : IpAddress::fromV4(bytes.first<4>());
  addresses.push_back({address, length});
  return length <= address.bits() && !address.isUnspecified() && !address.isMulticast();
}

std::vector<std::uint8_t> plainAnswer(const Answer& answer) {
  Writer writer;
  writer.bytes().reserve(kMaxAnswer);
  writer.number(static_cast<std::uint8_t>(answer.verdict));
  if (answer.verdict != Verdict::Accepted) return std::move(writer.bytes());
  writer.raw(answer.presharedKey.bytes());
  writer.number(answer.mtu);
  writeAddress(writer, answer.addresses, AF_INET);
  writeAddress(writer, answer.addresses, AF_INET6);
  writer.number(answer.thirdParty ? kThirdParty : std::uint8_t{0});
  writer.number(static_cast<std::uint8_t>(answer.grants.size()));
  for (const Grant& grant : answer.grants) {
    writer.number(static_cast<std::uint8_t>((grant.tcp ? kTcp : 0) | (grant.udp ? kUdp : 0)));
    writer.number(grant.first);
    writer.number(grant.last);
  }
  return std::move(writer.bytes());
}

std::optional<Answer> readAnswer(Bytes plain) {
  Reader reader(plain);
  Answer answer;
  const auto verdict = reader.number<std::uint8_t>();
  if (!reader.ok() || verdict > static_cast<std::uint8_t>(Verdict::NotNow)) return std::nullopt;
  answer.verdict = static_cast<Verdict>(verdict);
  if (answer.verdict != Verdict::Accepted) {
    return reader.finished() ? std::optional(answer) : std::nullopt;
  }
  reader.raw(answer.presharedKey.bytes());
  answer.mtu = reader.number<std::uint16_t>();
  const bool sound =
      readAddress(reader, answer.addresses, false) && readAddress(reader, answer.addresses, true);
  answer.thirdParty = (reader.number<std::uint8_t>() & kThirdParty) != 0;
  const auto count = reader.number<std::uint8_t>();
  for (unsigned i = 0; i < count && reader.ok(); ++i) {
    const auto protocols = reader.number<std::uint8_t>();
    Grant grant{(protocols & kTcp) != 0, (protocols & kUdp) != 0, 0, 0};
    grant.first = reader.number<std::uint16_t>();
    grant.last = reader.number<std::uint16_t>();
    if (protocols == 0 || protocols > (kTcp | kUdp) || grant.first == 0 ||
        grant.last < grant.first) {
      return std::nullopt;
    }
    answer.grants.push_back(grant);
  }
  if (!sound || !reader.finished() || answer.addresses.empty()) return std::nullopt;
  return answer;
}

}  // namespace

Message encodeRequest(const crypto::PublicKey& joining, const JoinKeys& keys) {
  Writer writer;
  writer.raw(joining.bytes);
  writer.raw(keys.proof);
  return messageOf(ADIT_CONTROL_JOIN, writer.bytes());
}

std::optional<Request> decodeRequest(Bytes message, const crypto::PrivateKey& server,
                                     const crypto::PublicKey& enrolment) {
  const auto value = valueOf(ADIT_CONTROL_JOIN, message);
  if (!value) return std::nullopt;
  Reader reader(*value);
  crypto::PublicKey joining;
  crypto::Mac proof;
  reader.raw(joining.bytes);
  reader.raw(proof);
  if (!reader.finished()) return std::nullopt;
  auto keys = joinKeys(server, joining, {enrolment, server.publicKey(), joining});
  if (!keys || sodium_memcmp(keys->proof.data(), proof.data(), proof.size()) != 0) {
    return std::nullopt;
  }
  return Request{joining, std::move(*keys)};
}

Message encodeAnswer(const Answer& answer, const JoinKeys& keys, crypto::RandomSource& random) {
  std::vector<std::uint8_t> plain = plainAnswer(answer);
  Message value(kNonceLength + plain.size() + crypto::kBoxTagSize);
  const std::span<std::uint8_t> out(value);
  random.fill(out.first(kNonceLength));
  crypto::sealXBox(keys.answer.bytes(), out.first<kNonceLength>(), {}, plain,
                   out.subspan(kNonceLength));
  sodium_memzero(plain.data(), plain.size());
  return messageOf(ADIT_CONTROL_JOIN_ANSWER, value);
}

std::optional<Answer> decodeAnswer(Bytes message, const JoinKeys& keys) {
  const auto value = valueOf(ADIT_CONTROL_JOIN_ANSWER, message);
  if (!value || value->size() < kNonceLength + crypto::kBoxTagSize) return std::nullopt;
  const Bytes sealed = value->subspan(kNonceLength);
  std::vector<std::uint8_t> plain(sealed.size() - crypto::kBoxTagSize);
  const bool opened =
      crypto::openXBox(keys.answer.bytes(), value->first<kNonceLength>(), {}, sealed, plain);
  auto answer = opened ? readAnswer(plain) : std::nullopt;
  sodium_memzero(plain.data(), plain.size());
  return answer;
}

}  // namespace adit::enrol
