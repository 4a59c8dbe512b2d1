#include "enrol/token.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "crypto/hash.hpp"
#include "enrol/bytes.hpp"

namespace adit::enrol {
namespace {

constexpr std::string_view kFamily = "adit";
constexpr std::string_view kPrefix = "adit1_";
constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
constexpr std::size_t kCheckLength = 8;
/// Longer than any token, so that a whole file in its place is no work.
constexpr std::size_t kMaxLength = 4096;

using Check = std::array<std::uint8_t, kCheckLength>;

Check checkOf(std::span<const std::uint8_t> body) {
  constexpr std::string_view kLabel = "adit token 1";
  const crypto::Hash hash = crypto::blake2s(
      {{reinterpret_cast<const std::uint8_t*>(kLabel.data()), kLabel.size()}, body});
  Check check;
  std::copy_n(hash.begin(), kCheckLength, check.begin());
  return check;
}

bool isPrintable(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// Bytes that are wiped when they go.
struct Wiped {
  explicit Wiped(std::vector<std::uint8_t> content) : bytes(std::move(content)) {}
  ~Wiped() { sodium_memzero(bytes.data(), bytes.size()); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  std::vector<std::uint8_t> bytes;
};

tl::unexpected<Error> damaged() {
  return fail(
      "the token is damaged: a part of it is missing or was changed; copy the whole line that "
      "`adit invite` printed");
}

/// The sound fields of a body whose checksum is right.
Result<Token> readBody(std::span<const std::uint8_t> body) {
  Reader reader(body);
  Token token;
  const auto suite = crypto::suiteFromWire(reader.number<std::uint8_t>());
  const auto expires = reader.number<std::uint64_t>();
  reader.raw(token.server.bytes);
  reader.raw(token.secret.bytes());
  token.name = reader.text();
  const auto count = reader.number<std::uint8_t>();
  for (unsigned i = 0; i < count && reader.ok(); ++i) {
    token.endpoints.push_back(reader.text());
  }
  constexpr std::uint64_t kLatest = 253402300799;  // the end of the year 9999
  const bool sound = reader.finished() && suite && expires <= kLatest && count >= 1 &&
                     count <= kMaxEndpoints && isPrintable(token.name) &&
                     std::ranges::all_of(token.endpoints, isPrintable);
  if (!sound) return damaged();
  token.suite = *suite;
  token.expires = std::chrono::seconds(expires);
  return token;
}

}  // namespace

std::string encodeToken(const Token& token) {
  Writer writer;
  // So that no growing buffer leaves a copy of the secret behind.
  writer.bytes().reserve(kMaxLength);
  writer.number(static_cast<std::uint8_t>(token.suite));
  writer.number(static_cast<std::uint64_t>(token.expires.count()));
  writer.raw(token.server.bytes);
  writer.raw(token.secret.bytes());
  writer.text(token.name);
  writer.number(static_cast<std::uint8_t>(token.endpoints.size()));
  for (const std::string& endpoint : token.endpoints) {
    writer.text(endpoint);
  }
  writer.raw(checkOf(writer.bytes()));
  const Wiped body(std::move(writer.bytes()));

  std::string text(kPrefix);
  text.resize(kPrefix.size() + sodium_base64_encoded_len(body.bytes.size(), kVariant));
  sodium_bin2base64(text.data() + kPrefix.size(), text.size() - kPrefix.size(), body.bytes.data(),
                    body.bytes.size(), kVariant);
  text.pop_back();  // the terminating zero
  return text;
}

Result<Token> decodeToken(std::string_view text) {
  if (text.size() > kMaxLength) return fail("this is no token of `adit invite`: it is too long");
  Wiped copy({});
  copy.bytes.reserve(text.size());
  std::ranges::copy_if(text, std::back_inserter(copy.bytes),
                       [](char c) { return c != ' ' && c != '\t' && c != '\r' && c != '\n'; });
  const std::string_view packed(reinterpret_cast<const char*>(copy.bytes.data()),
                                copy.bytes.size());
  if (!packed.starts_with(kPrefix)) {
    const auto end = packed.find('_');
    const bool other = packed.starts_with(kFamily) && end != std::string_view::npos &&
                       end > kFamily.size() &&
                       std::ranges::all_of(packed.substr(kFamily.size(), end - kFamily.size()),
                                           [](char c) { return c >= '0' && c <= '9'; });
    if (other) return fail("this token was made by another version of adit; update adit here");
    return fail("this is no token of `adit invite`: those start with {}", kPrefix);
  }
  const std::string_view encoded = packed.substr(kPrefix.size());
  if (encoded.empty()) return damaged();
  Wiped body(std::vector<std::uint8_t>(encoded.size()));
  std::size_t length = 0;
  const int decoded = sodium_base642bin(body.bytes.data(), body.bytes.size(), encoded.data(),
                                        encoded.size(), nullptr, &length, nullptr, kVariant);
  if (decoded != 0 || length < kCheckLength) return damaged();
  const auto bytes = std::span<const std::uint8_t>(body.bytes).first(length);
  const auto content = bytes.first(length - kCheckLength);
  if (!std::ranges::equal(bytes.last(kCheckLength), checkOf(content))) return damaged();
  return readBody(content);
}

}  // namespace adit::enrol
