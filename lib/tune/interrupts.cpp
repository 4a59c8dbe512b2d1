#include "tune/interrupts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "tune/text.hpp"

namespace adit::tune {
namespace {

bool isLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isNamePart(char c) {
  return isLetter(c) || isDigit(c) || c == '_';
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

/// The trigger ends what the kernel itself writes of a row: "1-edge", "fasteoi", "Level", "Edge".
bool isTrigger(std::string_view word) {
  const std::string text = lower(word);
  return text.ends_with("edge") || text.ends_with("level") || text.ends_with("fasteoi");
}

InterruptRow describe(unsigned number, const std::vector<std::string_view>& fields,
                      std::size_t start) {
  // Without a trigger (some ARM controllers) the last word is the name.
  std::size_t name = fields.empty() ? 0 : fields.size() - 1;
  for (std::size_t i = start; i + 1 < fields.size(); ++i) {
    if (isTrigger(fields[i])) {
      name = i + 1;
      break;
    }
  }
  name = std::max(name, start);
  InterruptRow row{.number = number, .source = {}, .action = {}};
  for (std::size_t i = start; i < fields.size(); ++i) {
    std::string& text = i < name ? row.source : row.action;
    text += (text.empty() ? "" : " ") + std::string(fields[i]);
  }
  return row;
}

/// The last run of letters in front of `text`'s end, blanks and separators skipped.
std::string lastWord(std::string_view text) {
  while (!text.empty() && !isLetter(text.back())) {
    if (isDigit(text.back())) return {};
    text.remove_suffix(1);
  }
  std::size_t start = text.size();
  while (start > 0 && isLetter(text[start - 1])) {
    --start;
  }
  return lower(text.substr(start));
}

}  // namespace

Result<std::vector<InterruptRow>> parseInterrupts(std::string_view text) {
  const auto lines = split(text, '\n');
  const auto header = words(lines.front());
  const auto isCpu = [](std::string_view word) {
    return word.starts_with("CPU") && parseUnsigned(word.substr(3)).has_value();
  };
  if (header.empty() || !std::ranges::all_of(header, isCpu)) {
    return fail("/proc/interrupts: the first line does not name CPUs");
  }
  std::vector<InterruptRow> rows;
  for (const std::string_view line : lines) {
    const auto fields = words(line);
    if (fields.empty() || !fields[0].ends_with(':')) continue;
    const auto number = parseUnsigned(fields[0].substr(0, fields[0].size() - 1));
    if (!number || fields.size() <= header.size() + 1) continue;
    rows.push_back(describe(static_cast<unsigned>(*number), fields, header.size() + 1));
  }
  return rows;
}

bool namesWhole(std::string_view action, std::string_view word) {
  if (word.empty()) return false;
  for (std::size_t at = action.find(word); at != std::string_view::npos;
       at = action.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool startsThere = at == 0 || !isNamePart(action[at - 1]);
    const bool endsThere = end == action.size() || !isNamePart(action[end]);
    if (startsThere && endsThere) return true;
  }
  return false;
}

bool isControlVector(std::string_view action) {
  static constexpr std::array<std::string_view, 25> kWords{
      "config", "async", "misc",  "control", "ctrl", "adminq", "aq",     "mbox", "mailbox",
      "fdir",   "event", "link",  "lsc",     "cmd",  "pages",  "health", "ptp",  "mgmnt",
      "mgmt",   "err",   "error", "mac",     "wol",  "lpi",    "sfty"};
  const std::string text = lower(action.substr(0, action.find('@')));
  std::size_t at = 0;
  while (at < text.size()) {
    if (!isLetter(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && isLetter(text[end])) {
      ++end;
    }
    const std::string_view word = std::string_view(text).substr(at, end - at);
    if (std::ranges::find(kWords, word) != kWords.end()) return true;
    at = end;
  }
  return false;
}

std::optional<unsigned> queueOfVector(std::string_view action) {
  static constexpr std::array<std::string_view, 12> kWords{
      "txrx", "rxtx", "rx", "tx", "input", "output", "comp", "queue", "q", "fp", "blk", "ring"};
  std::string_view text = action.substr(0, action.find('@'));
  while (!text.empty() && !isDigit(text.back()) && !isLetter(text.back())) {
    text.remove_suffix(1);
  }
  std::size_t start = text.size();
  while (start > 0 && isDigit(text[start - 1])) {
    --start;
  }
  if (start == text.size()) return std::nullopt;
  const std::string word = lastWord(text.substr(0, start));
  if (std::ranges::find(kWords, word) == kWords.end()) return std::nullopt;
  const auto queue = parseUnsigned(text.substr(start));
  return queue ? std::optional(static_cast<unsigned>(*queue)) : std::nullopt;
}

}  // namespace adit::tune
