// Bytes that look like what the grammar wants but are not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace adit::config {

/// One character of a text: `length` bytes. Nothing was decoded when `codePoint` is empty: the
/// byte is not UTF-8 (RFC 3629) there, and `length` is 1.
struct Character {
  std::optional<std::uint32_t> codePoint;
  std::size_t length = 1;
};

/// The character at `offset`, which must be inside `text`.
Character decodeCharacter(std::string_view text, std::size_t offset);

/// "U+00A0 (no-break space, bytes C2 A0)": names the character at the start of `text`.
std::string describeCharacter(std::string_view text);

/// The plain ASCII text that this character is taken for by the eye: "A" for U+0410, " " for
/// U+00A0, "" for invisible ones. Nothing when it resembles none.
std::optional<std::string_view> lookalikeOf(std::uint32_t codePoint);

/// Blanks that are not space or tab, and invisible characters.
bool isOddBlank(std::uint32_t codePoint);

}  // namespace adit::config
