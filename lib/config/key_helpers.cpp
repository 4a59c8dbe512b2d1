#include "config/key_helpers.hpp"

namespace adit::config {

void storePath(const EntryContext& c, std::string& target) {
  if (!checkKeyText(c.value)) {
    c.error(0, "this is a key where the path of a file with a key belongs");
    return;
  }
  target = c.value;
}

std::optional<std::size_t> unbalancedQuote(std::string_view command) {
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const char quote = open ? command[*open] : '\0';
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) open.reset();
    } else if (c == '\'' || c == '"') {
      open = i;
    } else if (c == '#' && (i == 0 || command[i - 1] == ' ' || command[i - 1] == '\t')) {
      break;
    }
  }
  return open;
}

}  // namespace adit::config
