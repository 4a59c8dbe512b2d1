// Collects what is wrong with a configuration, and shows text of it without showing keys.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.hpp"

namespace adit::config {

/// The name of one file, shared by all locations in it.
using FileName = std::shared_ptr<const std::string>;

class Diagnostics {
 public:
  void error(Location location, std::string message);
  void warning(Location location, std::string message);
  [[nodiscard]] bool hasErrors() const;
  /// Everything so far: by file in the order of first mention, then by line and column.
  [[nodiscard]] std::vector<Diagnostic> take();
  /// Fixes the place of `file` in the order of take().
  void announce(const FileName& file);

 private:
  [[nodiscard]] std::size_t fileIndex(const FileName& file) const;

  std::vector<FileName> files_;
  std::vector<Diagnostic> diagnostics_;
};

/// "line 7", or "FILE:7" when `there` is in another file than `here`.
std::string reference(const Location& there, const Location& here);

/// `text` in quotes when it is short, printable and holds nothing that could be a piece of a key
/// (8 or more characters of base64 in a row, unless they make a number or a lower-case word); else
/// `instead`. Every piece of a file goes through this on its way into a message.
std::string shown(std::string_view text, std::string_view instead = "this value");

/// Whether shown() would show `text`.
bool isShowable(std::string_view text);

/// The one of `candidates` that `name` was probably meant to be, or an empty view. Case, blanks
/// and dashes do not count.
std::string_view closest(std::string_view name, const std::vector<std::string_view>& candidates);

bool equalIgnoringCase(std::string_view a, std::string_view b);
std::string lowered(std::string_view text);

}  // namespace adit::config
