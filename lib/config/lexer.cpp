#include "config/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/schema.hpp"
#include "config/unicode.hpp"

namespace adit::config {
namespace {

using std::string_view_literals::operator""sv;

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool isPlain(char c) {
  return (c >= ' ' && c <= '~') || c == '\t';
}

/// UTF-16 as editors save it: with a byte order mark, or with a zero in one half of every unit.
bool looksLikeUtf16(std::string_view text) {
  if (text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv)) return true;
  if (text.size() < 4) return false;
  const bool little = text[0] != 0 && text[1] == 0 && text[2] != 0 && text[3] == 0;
  const bool big = text[0] == 0 && text[1] != 0 && text[2] == 0 && text[3] != 0;
  return little || big;
}

/// The part of a line that means something, and how strictly its characters are judged.
struct Body {
  std::string_view text;
  std::size_t comment = kNone;
  Text strictness = Text::Strict;
};

Body bodyOf(std::string_view raw) {
  const std::size_t hash = raw.find('#');
  const std::size_t equals = raw.find('=');
  Body body{raw.substr(0, hash), hash, Text::Strict};
  if (equals == kNone || hash < equals) return body;
  Section section{};
  const KeySpec* spec = findKeyAnywhere(trim(raw.substr(0, equals)), &section);
  if (spec != nullptr) {
    body.strictness = spec->text;
  }
  if (body.strictness == Text::Hook) {
    body.text = raw;
    body.comment = kNone;
  }
  return body;
}

class Lexer {
 public:
  Lexer(const FileName& file, Diagnostics& diagnostics) : file_(file), diagnostics_(diagnostics) {}

  Line next(std::string_view raw, unsigned number) {
    Line line;
    line.number = number;
    number_ = number;
    while (raw.ends_with('\r')) {
      raw.remove_suffix(1);
    }
    line.raw = raw;
    if (raw.size() > kMaxLineSize) {
      return bad(line, 0, fmt::format("the line is longer than {} bytes", kMaxLineSize));
    }
    const Body body = bodyOf(raw);
    line.comment = body.comment;
    if (!checkCharacters(body)) {
      line.kind = LineKind::Bad;
    } else {
      checkComment(raw, body.comment);
      classify(line, body.text);
    }
    if (line.kind != LineKind::Blank) {
      previous_ = line;
    }
    return line;
  }

 private:
  [[nodiscard]] Location at(std::size_t offset) const {
    return {file_, number_, static_cast<unsigned>(offset) + 1};
  }

  Line& bad(Line& line, std::size_t offset, std::string message) {
    diagnostics_.error(at(offset), std::move(message));
    line.kind = LineKind::Bad;
    return line;
  }

  /// Reports the first character that does not belong there; one is enough for a line.
  bool checkCharacters(const Body& body) {
    for (std::size_t i = 0; i < body.text.size();) {
      const Character character = decodeCharacter(body.text, i);
      const bool plain = character.length == 1 && character.codePoint && isPlain(body.text[i]);
      if (!plain && !acceptOdd(body, i, character)) return false;
      i += character.length;
    }
    return true;
  }

  /// Whether a character other than printable ASCII may stand at `offset`; reports it if not.
  bool acceptOdd(const Body& body, std::size_t offset, const Character& character) {
    const std::string what = describeCharacter(body.text.substr(offset));
    if (!character.codePoint) {
      return reject(body, offset, fmt::format("{} is not UTF-8; save the file as UTF-8", what));
    }
    const std::uint32_t codePoint = *character.codePoint;
    if (codePoint < 0x20 || codePoint == 0x7f) {
      if (codePoint == 0) {
        diagnostics_.error(at(offset), "a NUL byte; a configuration is text");
        return false;
      }
      return reject(body, offset,
                    codePoint == '\r' ? std::string("a carriage return inside the line; end lines "
                                                    "with LF or CR LF")
                                      : fmt::format("control character {}; remove it", what));
    }
    if (isOddBlank(codePoint)) {
      return reject(body, offset,
                    fmt::format("{} is not a plain space; remove it or type a space", what));
    }
    if (body.strictness != Text::Strict) return true;
    const auto plain = lookalikeOf(codePoint);
    return reject(
        body, offset,
        plain ? fmt::format("{} only looks like a plain {}; type that instead", what, *plain)
              : fmt::format("{} is not ASCII; only hooks, file names and comments may "
                            "hold such characters",
                            what));
  }

  /// A hook is passed on to the byte, so there a doubtful character is only worth a warning.
  bool reject(const Body& body, std::size_t offset, std::string message) {
    if (body.strictness == Text::Hook && inHookValue(body, offset)) {
      diagnostics_.warning(at(offset), std::move(message));
      return true;
    }
    diagnostics_.error(at(offset), std::move(message));
    return false;
  }

  static bool inHookValue(const Body& body, std::size_t offset) {
    return offset > body.text.find('=');
  }

  void checkComment(std::string_view raw, std::size_t comment) {
    for (std::size_t i = comment; i < raw.size();) {
      const Character character = decodeCharacter(raw, i);
      if (!character.codePoint) {
        diagnostics_.warning(at(i), fmt::format("{} in the comment is not UTF-8; save the file as "
                                                "UTF-8",
                                                describeCharacter(raw.substr(i))));
        return;
      }
      if (*character.codePoint == 0) {
        diagnostics_.error(at(i), "a NUL byte; a configuration is text");
        return;
      }
      i += character.length;
    }
  }

  void classify(Line& line, std::string_view body) {
    const std::string_view text = trim(body);
    if (text.empty()) {
      line.kind = LineKind::Blank;
      return;
    }
    const auto start = static_cast<std::size_t>(text.data() - body.data());
    if (text.front() == ';') {
      bad(line, start, "`;` does not start a comment here; use `#`");
    } else if (text.front() == '[') {
      readHeader(line, text, start);
    } else {
      readEntry(line, body, start);
    }
  }

  void readHeader(Line& line, std::string_view text, std::size_t start) {
    line.kind = LineKind::Header;
    const std::size_t close = text.find(']');
    if (close == kNone) {
      diagnostics_.error(at(start), "the section header does not end; write it as [Name]");
      return;
    }
    const std::string_view inside = text.substr(1, close - 1);
    line.name = trim(inside);
    line.nameColumn = static_cast<unsigned>(start + 2);
    const std::string_view rest = text.substr(close + 1);
    if (line.name.empty()) {
      diagnostics_.error(at(start), "the section header is empty; write it as [Name]");
    } else if (!rest.empty()) {
      const std::size_t skipped = rest.size() - trim(rest).size();
      diagnostics_.error(at(start + close + 1 + skipped),
                         "text after the section header; begin a new line");
    }
  }

  void readEntry(Line& line, std::string_view body, std::size_t start) {
    const std::size_t equals = body.find('=');
    if (equals == kNone) {
      bad(line, start, "expected Key = Value" + continuationHint());
      return;
    }
    line.name = trim(body.substr(0, equals));
    if (line.name.empty()) {
      bad(line, start, "expected Key = Value; there is no key before the `=`");
      return;
    }
    line.kind = LineKind::Entry;
    line.nameColumn = static_cast<unsigned>(start + 1);
    const std::string_view rest = body.substr(equals + 1);
    line.value = trim(rest);
    line.valueColumn = static_cast<unsigned>(
        line.value.empty() ? equals + 2
                           : static_cast<std::size_t>(line.value.data() - body.data()) + 1);
  }

  /// An editor that wraps lines cuts hooks in two.
  [[nodiscard]] std::string continuationHint() const {
    if (previous_.kind != LineKind::Entry) return {};
    Section section{};
    const KeySpec* spec = findKeyAnywhere(previous_.name, &section);
    if (spec == nullptr) return {};
    if (spec->text != Text::Hook && previous_.number + 1 != number_) return {};
    return fmt::format("; if it continues the {} of line {}, join the two lines", spec->name,
                       previous_.number);
  }

  FileName file_;
  Diagnostics& diagnostics_;
  unsigned number_ = 0;
  Line previous_;
};

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == kNone) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<Line> lex(std::string_view text, const FileName& file, Diagnostics& diagnostics) {
  diagnostics.announce(file);
  if (text.size() > kMaxFileSize) {
    diagnostics.error({file, 0, 0}, fmt::format("the file is larger than {} bytes", kMaxFileSize));
    return {};
  }
  if (looksLikeUtf16(text)) {
    diagnostics.error({file, 1, 1}, "the file is not UTF-8 but UTF-16; save it as UTF-8");
    return {};
  }
  Lexer lexer(file, diagnostics);
  std::vector<Line> lines;
  std::size_t position = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  unsigned number = 0;
  while (position < text.size()) {
    const std::size_t end = std::min(text.find('\n', position), text.size());
    lines.push_back(lexer.next(text.substr(position, end - position), ++number));
    position = end + 1;
  }
  return lines;
}

}  // namespace adit::config
