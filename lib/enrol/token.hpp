// The one line that `adit invite` prints and `adit join` takes.
//
// "adit1_" and base64url (RFC 4648 section 5, without padding) of a body that ends in a checksum
// over all of it; docs/protocol.md, "Enrolment", gives it byte by byte. The checksum is against
// slips of copying: who can make a token can make its checksum.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/suite.hpp"
#include "util/result.hpp"
#include "util/secret.hpp"

namespace adit::enrol {

inline constexpr std::size_t kMaxEndpoints = 4;
/// Of one endpoint's text and of a peer's name, in bytes.
inline constexpr std::size_t kMaxTextLength = 255;

struct Token {
  /// What the server's enrolment peer speaks: the suite that its file pins, else suite 0.
  crypto::Suite suite = crypto::Suite::ChaCha20Poly1305;
  /// Since the Unix epoch.
  std::chrono::seconds expires{};
  crypto::PublicKey server;
  /// What both sides derive the enrolment keys from.
  Secret<32> secret;
  /// What the server calls the peer that joins.
  std::string name;
  /// HOST:PORT of the server, 1 to kMaxEndpoints; printable ASCII, else unchecked.
  std::vector<std::string> endpoints;
};

/// The text is as secret as the token: wipe it after use. `token` must keep to the limits above.
std::string encodeToken(const Token& token);

/// Blanks and line ends round or inside the text are skipped, as mail programs put them there. The
/// error says what to do and never repeats the text.
Result<Token> decodeToken(std::string_view text);

}  // namespace adit::enrol
