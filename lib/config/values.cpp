#include "config/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "config/diagnostics.hpp"
#include "config/lexer.hpp"

namespace adit::config {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::size_t kKeyTextSize = 44;

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isHexDigit(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool isBase64Digit(char c) {
  return isDigit(c) || isLetter(c) || c == '+' || c == '/';
}
bool isNameCharacter(char c) {
  return isDigit(c) || isLetter(c) || c == '-' || c == '_';
}

template <typename... Args>
tl::unexpected<ValueError> wrong(std::size_t offset, fmt::format_string<Args...> format,
                                 Args&&... args) {
  return tl::unexpected(ValueError{offset, fmt::format(format, std::forward<Args>(args)...)});
}

/// The elements between the commas of `value`, blanks trimmed.
std::vector<Item> splitAtCommas(std::string_view value) {
  std::vector<Item> items;
  std::size_t start = 0;
  while (start <= value.size()) {
    const std::size_t end = std::min(value.find(',', start), value.size());
    const std::string_view piece = value.substr(start, end - start);
    const std::string_view text = trim(piece);
    const std::size_t skipped =
        text.empty() ? 0 : static_cast<std::size_t>(text.data() - piece.data());
    items.push_back({text, start + skipped});
    start = end + 1;
  }
  return items;
}

std::vector<Item> splitAtBlanks(const Item& item) {
  std::vector<Item> items;
  std::size_t start = 0;
  while (start < item.text.size()) {
    const std::size_t end = std::min(item.text.find_first_of(" \t", start), item.text.size());
    items.push_back({item.text.substr(start, end - start), item.offset + start});
    start = std::min(item.text.find_first_not_of(" \t", end), item.text.size());
  }
  return items;
}

/// Digits of either base; `digits` has no prefix.
std::optional<std::uint64_t> readDigits(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (digits.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> readDecimal(std::string_view digits) {
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return readDigits(digits, 10);
}

}  // namespace

std::vector<Item> splitList(std::string_view value, Separator separator,
                            std::vector<ValueError>& errors) {
  std::vector<Item> items;
  const std::vector<Item> pieces = splitAtCommas(value);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Item& piece = pieces[i];
    if (piece.text.empty()) {
      const bool last = i + 1 == pieces.size();
      // The last one is named by the comma that promised it.
      errors.push_back({last && piece.offset > 0 ? piece.offset - 1 : piece.offset,
                        last ? "the list ends in a comma; remove it or add an element"
                             : "an empty element in the list; remove one comma"});
    } else if (const auto at = piece.text.find(';'); at != kNone) {
      errors.push_back({piece.offset + at,
                        "`;` neither separates a list nor starts a comment; use "
                        "`,` or `#`"});
    } else if (separator == Separator::CommaOrBlank) {
      std::ranges::copy(splitAtBlanks(piece), std::back_inserter(items));
    } else if (const auto blank = piece.text.find_first_of(" \t"); blank != kNone) {
      errors.push_back(
          {piece.offset + blank, "a blank inside an element; separate elements by commas"});
    } else {
      items.push_back(piece);
    }
  }
  return items;
}

Value<std::uint64_t> parseNumber(std::string_view text, std::uint64_t minimum,
                                 std::uint64_t maximum, std::string_view what) {
  const auto number = readDecimal(text);
  if (!number || *number < minimum || *number > maximum) {
    return wrong(0, "{} is not {}; write a number of {} to {}", shown(text), what, minimum,
                 maximum);
  }
  return *number;
}

Value<std::uint32_t> parseNumber32(std::string_view text, std::string_view what) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const auto number = hex ? readDigits(text.substr(2), 16) : readDecimal(text);
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) {
    return wrong(0,
                 "{} is not {}; write a decimal number, or a hexadecimal one after 0x, of at most "
                 "32 bits",
                 shown(text), what);
  }
  return static_cast<std::uint32_t>(*number);
}

Value<bool> parseSwitch(std::string_view text) {
  for (const std::string_view yes : {"on", "yes", "true"}) {
    if (equalIgnoringCase(text, yes)) return true;
  }
  for (const std::string_view no : {"off", "no", "false"}) {
    if (equalIgnoringCase(text, no)) return false;
  }
  return wrong(0, "{} is neither on nor off", shown(text));
}

Value<std::uint16_t> parsePort(std::string_view text) {
  const auto number = parseNumber(text, 1, 65535, "a port");
  if (!number) return tl::unexpected(number.error());
  return static_cast<std::uint16_t>(*number);
}

Value<PortRange> parsePortRange(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parsePort(trim(text.substr(0, dash)));
  if (!first) return tl::unexpected(first.error());
  if (dash == kNone) return PortRange{*first, *first};
  const auto last = parsePort(trim(text.substr(dash + 1)));
  if (!last) return wrong(dash + 1, "{}", last.error().message);
  if (*last < *first) {
    return wrong(0, "the range {}-{} is reversed; write {}-{}", *first, *last, *last, *first);
  }
  return PortRange{*first, *last};
}

std::string_view protocolName(bool tcp, bool udp) {
  return tcp && udp ? "tcp+udp" : tcp ? "tcp" : "udp";
}

Value<ProtocolPorts> parseProtocolPorts(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == kNone) {
    return wrong(0, "{} lacks a protocol or a port; write tcp/PORT, udp/PORT or tcp+udp/PORT",
                 shown(text));
  }
  const bool protocolFirst = isLetter(text.front());
  const std::size_t protocolAt = protocolFirst ? 0 : slash + 1;
  const std::size_t portsAt = protocolFirst ? slash + 1 : 0;
  const std::string_view before = trim(text.substr(0, slash));
  const std::string_view after = trim(text.substr(slash + 1));
  const std::string protocol = lowered(protocolFirst ? before : after);
  ProtocolPorts result;
  result.tcp = protocol == "tcp" || protocol == "tcp+udp" || protocol == "udp+tcp";
  result.udp = protocol == "udp" || protocol == "tcp+udp" || protocol == "udp+tcp";
  if (!result.tcp && !result.udp) {
    return wrong(protocolAt, "{} is not a protocol; write tcp, udp or tcp+udp", shown(protocol));
  }
  const auto ports = parsePortRange(protocolFirst ? after : before);
  if (!ports) return wrong(portsAt + ports.error().offset, "{}", ports.error().message);
  result.ports = *ports;
  return result;
}

Value<IpAddress> parseAddress(std::string_view text) {
  if (text.find('%') != kNone) {
    return wrong(text.find('%'), "a zone does not belong here; write the address alone");
  }
  const auto address = IpAddress::parse(text);
  if (!address) {
    return wrong(0, "{} is not an IPv4 or IPv6 address", shown(text));
  }
  return *address;
}

Value<InterfaceAddress> parseInterfaceAddress(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parseAddress(text.substr(0, slash));
  if (!address) return tl::unexpected(address.error());
  if (slash == kNone) return InterfaceAddress{*address, address->bits()};
  const std::string_view length = text.substr(slash + 1);
  const auto number = readDecimal(length);
  if (!number || *number > address->bits()) {
    return wrong(slash + 1, "{} is not a prefix length; write a number of 0 to {}", shown(length),
                 address->bits());
  }
  return InterfaceAddress{*address, static_cast<unsigned>(*number)};
}

Value<Prefix> parsePrefix(std::string_view text, bool* hadHostBits) {
  const auto parsed = parseInterfaceAddress(text);
  if (!parsed) return tl::unexpected(parsed.error());
  const Prefix prefix = parsed->prefix();
  *hadHostBits = prefix.address() != parsed->address;
  return prefix;
}

Value<std::string> parseDomainName(std::string_view text) {
  constexpr std::size_t kLongestName = 253;
  constexpr std::size_t kLongestLabel = 63;
  const std::string_view name = text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
  if (name.empty() || name.size() > kLongestName) {
    return wrong(0, "a host name has 1 to {} characters", kLongestName);
  }
  std::size_t start = 0;
  while (start <= name.size()) {
    const std::size_t end = std::min(name.find('.', start), name.size());
    const std::string_view label = name.substr(start, end - start);
    if (label.empty() || label.size() > kLongestLabel) {
      return wrong(start, "a part of a host name has 1 to {} characters", kLongestLabel);
    }
    const auto odd = std::ranges::find_if_not(label, isNameCharacter);
    if (odd != label.end() || label.front() == '-' || label.back() == '-') {
      const auto at = static_cast<std::size_t>(odd == label.end() ? 0 : odd - label.begin());
      return wrong(start + at, "{} is not a host name; it is made of letters, digits, - and .",
                   shown(text));
    }
    start = end + 1;
  }
  const std::string_view last = name.substr(name.rfind('.') == kNone ? 0 : name.rfind('.') + 1);
  if (std::ranges::all_of(last, isDigit)) {
    return wrong(0, "{} is neither an address nor a host name", shown(text));
  }
  return std::string(text);
}

Value<std::string> parsePeerName(std::string_view text) {
  constexpr std::size_t kLongestName = 63;
  if (text.size() > kLongestName) {
    return wrong(0, "a peer's name has at most {} characters", kLongestName);
  }
  const auto odd =
      std::ranges::find_if_not(text, [](char c) { return isNameCharacter(c) || c == '.'; });
  if (IpAddress::parse(text)) {
    return wrong(0, "{} is an address; a peer's name must not look like one", shown(text));
  }
  if (odd != text.end()) {
    return wrong(static_cast<std::size_t>(odd - text.begin()),
                 "a peer's name is made of letters, digits, -, _ and .");
  }
  if (std::ranges::all_of(text, [](char c) { return isDigit(c) || c == '.'; })) {
    return wrong(0, "{} looks like an address or a port; give the name a letter", shown(text));
  }
  return std::string(text);
}

Value<std::string> parseInterfaceName(std::string_view text) {
  constexpr std::size_t kLongestName = 15;
  if (text.empty() || text.size() > kLongestName) {
    return wrong(0, "an interface name has 1 to {} bytes, not {}", kLongestName, text.size());
  }
  const auto odd = std::ranges::find_if(
      text, [](char c) { return c <= ' ' || c == 0x7f || c == '/' || c == ':' || c == '%'; });
  if (odd != text.end()) {
    return wrong(static_cast<std::size_t>(odd - text.begin()),
                 "an interface name holds no blanks and none of / : %");
  }
  if (text == "." || text == "..") {
    return wrong(0, "\"{}\" cannot be an interface name", text);
  }
  return std::string(text);
}

std::optional<ValueError> checkKeyText(std::string_view text) {
  if (text == "(none)" || text == "(hidden)") {
    return ValueError{0, fmt::format("\"{}\" stands for a key that is not shown; write the key "
                                     "itself",
                                     text)};
  }
  if (text.size() == 64 && std::ranges::all_of(text, isHexDigit)) {
    return ValueError{0, "the key is written in hexadecimal; write it as 44 characters of base64"};
  }
  const auto odd =
      static_cast<std::size_t>(std::ranges::find_if_not(text, isBase64Digit) - text.begin());
  if (odd < text.size() && text[odd] != '=') {
    const bool urlSafe = text[odd] == '-' || text[odd] == '_';
    return ValueError{odd, urlSafe ? "the key is written in URL-safe base64; write + for - and / "
                                     "for _"
                                   : "a character that is not base64 inside the key"};
  }
  if (odd + 1 == kKeyTextSize && text.size() > kKeyTextSize) {
    return ValueError{kKeyTextSize, "characters after the end of the key; it has 44"};
  }
  if (text.size() != kKeyTextSize) {
    const std::string_view hint =
        text.size() + 1 == kKeyTextSize && odd == text.size() ? "; its final = is missing" : "";
    return ValueError{
        0, fmt::format("a key has 44 characters of base64, this one has {}{}", text.size(), hint)};
  }
  if (odd + 1 != kKeyTextSize || !crypto::PublicKey::fromBase64(text)) {
    return ValueError{std::min(odd, kKeyTextSize - 2),
                      "the key does not end as 32 bytes in base64 do; a character was mistyped"};
  }
  return std::nullopt;
}

}  // namespace adit::config
