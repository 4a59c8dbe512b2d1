#include "config/unicode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace adit::config {
namespace {

struct Lookalike {
  std::uint32_t codePoint;
  std::string_view name;
  std::string_view plain;
};

/// Characters that editors, web pages and keyboards of other scripts put into configurations.
/// Names are shortened from the Unicode Character Database.
constexpr auto kLookalikes = std::to_array<Lookalike>({
    {0x00a0, "no-break space", " "},
    {0x00ad, "soft hyphen", ""},
    {0x037e, "Greek question mark", ";"},
    {0x0391, "Greek Alpha", "A"},
    {0x0392, "Greek Beta", "B"},
    {0x0395, "Greek Epsilon", "E"},
    {0x0396, "Greek Zeta", "Z"},
    {0x0397, "Greek Eta", "H"},
    {0x0399, "Greek Iota", "I"},
    {0x039a, "Greek Kappa", "K"},
    {0x039c, "Greek Mu", "M"},
    {0x039d, "Greek Nu", "N"},
    {0x039f, "Greek Omicron", "O"},
    {0x03a1, "Greek Rho", "P"},
    {0x03a4, "Greek Tau", "T"},
    {0x03a5, "Greek Upsilon", "Y"},
    {0x03a7, "Greek Chi", "X"},
    {0x03bf, "Greek omicron", "o"},
    {0x0405, "Cyrillic Dze", "S"},
    {0x0406, "Cyrillic I", "I"},
    {0x0408, "Cyrillic Je", "J"},
    {0x0410, "Cyrillic A", "A"},
    {0x0412, "Cyrillic Ve", "B"},
    {0x0415, "Cyrillic Ie", "E"},
    {0x041a, "Cyrillic Ka", "K"},
    {0x041c, "Cyrillic Em", "M"},
    {0x041d, "Cyrillic En", "H"},
    {0x041e, "Cyrillic O", "O"},
    {0x0420, "Cyrillic Er", "P"},
    {0x0421, "Cyrillic Es", "C"},
    {0x0422, "Cyrillic Te", "T"},
    {0x0425, "Cyrillic Ha", "X"},
    {0x0430, "Cyrillic a", "a"},
    {0x0435, "Cyrillic ie", "e"},
    {0x043e, "Cyrillic o", "o"},
    {0x0440, "Cyrillic er", "p"},
    {0x0441, "Cyrillic es", "c"},
    {0x0443, "Cyrillic u", "y"},
    {0x0445, "Cyrillic ha", "x"},
    {0x0455, "Cyrillic dze", "s"},
    {0x0456, "Cyrillic i", "i"},
    {0x0458, "Cyrillic je", "j"},
    {0x2000, "en quad", " "},
    {0x2001, "em quad", " "},
    {0x2002, "en space", " "},
    {0x2003, "em space", " "},
    {0x2007, "figure space", " "},
    {0x2009, "thin space", " "},
    {0x200a, "hair space", " "},
    {0x200b, "zero width space", ""},
    {0x200c, "zero width non-joiner", ""},
    {0x200d, "zero width joiner", ""},
    {0x200e, "left-to-right mark", ""},
    {0x200f, "right-to-left mark", ""},
    {0x2010, "hyphen", "-"},
    {0x2011, "non-breaking hyphen", "-"},
    {0x2012, "figure dash", "-"},
    {0x2013, "en dash", "-"},
    {0x2014, "em dash", "-"},
    {0x2018, "left single quotation mark", "'"},
    {0x2019, "right single quotation mark", "'"},
    {0x201c, "left double quotation mark", "\""},
    {0x201d, "right double quotation mark", "\""},
    {0x2028, "line separator", ""},
    {0x2029, "paragraph separator", ""},
    {0x202a, "left-to-right embedding", ""},
    {0x202b, "right-to-left embedding", ""},
    {0x202c, "pop directional formatting", ""},
    {0x202d, "left-to-right override", ""},
    {0x202e, "right-to-left override", ""},
    {0x202f, "narrow no-break space", " "},
    {0x2044, "fraction slash", "/"},
    {0x2060, "word joiner", ""},
    {0x2066, "left-to-right isolate", ""},
    {0x2067, "right-to-left isolate", ""},
    {0x2069, "pop directional isolate", ""},
    {0x2212, "minus sign", "-"},
    {0x2215, "division slash", "/"},
    {0x2236, "ratio", ":"},
    {0x3000, "ideographic space", " "},
    {0x3001, "ideographic comma", ","},
    {0x3002, "ideographic full stop", "."},
    {0xfeff, "byte order mark", ""},
});

constexpr std::string_view kAscii =
    "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
    "{|}~";
/// The block "Halfwidth and Fullwidth Forms" repeats ASCII from ! to ~.
constexpr std::uint32_t kFullwidthFirst = 0xff01;

const Lookalike* findLookalike(std::uint32_t codePoint) {
  const auto* found = std::ranges::lower_bound(kLookalikes, codePoint, {}, &Lookalike::codePoint);
  return found != kLookalikes.end() && found->codePoint == codePoint ? found : nullptr;
}

bool isFullwidth(std::uint32_t codePoint) {
  return codePoint >= kFullwidthFirst && codePoint < kFullwidthFirst + kAscii.size();
}

/// Bytes of the sequence that starts with `lead`, or 0 when none does.
std::size_t sequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

bool isScalarValue(std::uint32_t value, std::size_t length) {
  constexpr std::array<std::uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  return value >= kSmallest[length] && value <= 0x10ffff && !surrogate;
}

}  // namespace

Character decodeCharacter(std::string_view text, std::size_t offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  const std::size_t length = sequenceLength(lead);
  if (length == 1) return {lead, 1};
  if (length == 0 || text.size() - offset < length) return {};
  std::uint32_t value = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[offset + i]);
    if ((byte & 0xc0U) != 0x80U) return {};
    value = (value << 6) | (byte & 0x3fU);
  }
  if (!isScalarValue(value, length)) return {};
  return {value, length};
}

std::string describeCharacter(std::string_view text) {
  const Character character = decodeCharacter(text, 0);
  std::string bytes;
  for (const char c : text.substr(0, character.length)) {
    fmt::format_to(std::back_inserter(bytes), " {:02X}", static_cast<unsigned char>(c));
  }
  const std::string_view noun = character.length == 1 ? "byte" : "bytes";
  if (!character.codePoint) {
    return fmt::format("{}{}", noun, bytes);
  }
  const Lookalike* known = findLookalike(*character.codePoint);
  return fmt::format("U+{:04X} ({}{}{}{})", *character.codePoint, known ? known->name : "",
                     known ? ", " : "", noun, bytes);
}

std::optional<std::string_view> lookalikeOf(std::uint32_t codePoint) {
  if (isFullwidth(codePoint)) {
    return kAscii.substr(codePoint - kFullwidthFirst, 1);
  }
  if (const Lookalike* known = findLookalike(codePoint)) {
    return known->plain;
  }
  return std::nullopt;
}

bool isOddBlank(std::uint32_t codePoint) {
  const Lookalike* known = findLookalike(codePoint);
  return known != nullptr && (known->plain.empty() || known->plain == " ");
}

}  // namespace adit::config
