#include "roff.hpp"

#include <fmt/format.h>

#include <regex>
#include <vector>

namespace adit::manual {
namespace {

constexpr std::string_view kIndent = "  ";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// What roff would take for something else.
std::string escaped(std::string_view text) {
  std::string result = replaced(std::string(text), "\\", "\\e");
  result = replaced(result, "-", "\\-");
  result = replaced(result, "…", "...");
  result = replaced(result, "×", "x");
  const bool control = result.starts_with('.') || result.starts_with('\'');
  return control ? "\\&" + result : result;
}

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines;
}

}  // namespace

std::string roffLine(std::string_view text) {
  std::string result;
  bool code = false;
  for (const char c : escaped(text)) {
    if (c == '`') {
      result += code ? "\\fP" : "\\fB";
      code = !code;
    } else {
      result += c;
    }
  }
  return result;
}

std::string roffText(std::string_view text) {
  std::string result;
  bool example = false;
  for (const std::string_view line : linesOf(text)) {
    const bool indented = line.starts_with(kIndent);
    if (indented && !example) result += ".PP\n.EX\n";
    if (!indented && example) result += ".EE\n.PP\n";
    const bool heading = line == "Example:" || line == "Examples:";
    if (heading && !example && !result.empty()) result += ".PP\n";
    example = indented;
    result += indented ? escaped(line.substr(kIndent.size())) + '\n' : roffLine(line) + '\n';
  }
  return example ? result + ".EE\n" : result;
}

std::string roffCell(std::string_view markdown) {
  static const std::regex reference(R"( \(see \[[^\]]*\]\([^)]*\)\))");
  static const std::regex link(R"(\[([^\]]*)\]\(#[^)]*\))");
  std::string text = std::regex_replace(std::string(markdown), reference, "");
  text = std::regex_replace(text, link, "$1");
  return roffLine(replaced(text, "\\|", "|"));
}

}  // namespace adit::manual
