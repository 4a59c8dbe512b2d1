// Lines of a configuration file: headers, entries, comments. Knows the characters, not the keys'
// meaning.
#pragma once

#include <string_view>
#include <vector>

#include "config/diagnostics.hpp"

namespace adit::config {

/// Longest file and line that are read, in bytes.
inline constexpr std::size_t kMaxFileSize = std::size_t{16} << 20;
inline constexpr std::size_t kMaxLineSize = std::size_t{1} << 20;

enum class LineKind : std::uint8_t {
  /// Nothing, or a comment alone.
  Blank,
  /// `[Name]`; `name` is empty when it could not be read.
  Header,
  /// `Key = Value`; the value may be empty.
  Entry,
  /// Neither; an error was reported.
  Bad,
};

/// One line. The views point into the text that was read.
struct Line {
  LineKind kind = LineKind::Blank;
  unsigned number = 0;
  /// The whole line without its end.
  std::string_view raw;
  std::string_view name;
  unsigned nameColumn = 1;
  std::string_view value;
  unsigned valueColumn = 1;
  /// Offset of the `#` that starts a comment in `raw`, or npos.
  std::size_t comment = std::string_view::npos;
};

/// Splits `text`. Reports what is no text, with its place. The result is empty when nothing of the
/// text can be read at all.
std::vector<Line> lex(std::string_view text, const FileName& file, Diagnostics& diagnostics);

/// Without the spaces and tabs at both ends.
std::string_view trim(std::string_view text);

}  // namespace adit::config
