#include "pages.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "roff.hpp"

namespace adit::manual {
namespace {

std::string usageOf(const CommandText& command) {
  std::string usage = fmt::format("\\fB{}\\fP", roffLine(command.path));
  for (const ArgumentText& argument : command.arguments) {
    usage += fmt::format(
        argument.required ? fmt::runtime(" \\fI{}\\fP{}") : fmt::runtime(" [\\fI{}\\fP]{}"),
        roffLine(argument.name), argument.repeats ? "..." : "");
  }
  return usage + (command.options.empty() ? "" : " [\\fIOPTION\\fP]...");
}

std::string item(const std::string& term, std::string_view description) {
  return fmt::format(".TP\n{}\n{}\n", term, roffLine(description));
}

std::string optionItem(const OptionText& option) {
  const std::string value =
      option.value.empty() ? "" : fmt::format(" \\fI{}\\fP", roffLine(option.value));
  return item(fmt::format("\\fB{}\\fP{}", roffLine(option.names), value), option.description);
}

/// The cells of "| `KEY` | `VALUE` | DEFAULT | MEANING |".
std::vector<std::string> cellsOf(std::string_view row) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < row.size(); ++i) {
    const bool separator = row[i] == '|' && row[i - 1] != '\\';
    if (separator) cells.push_back(cell.substr(1, cell.size() - 2));
    cell = separator ? std::string() : cell + row[i];
  }
  return cells;
}

std::string keyItem(std::string_view row) {
  const std::vector<std::string> cells = cellsOf(row);
  if (cells.size() != 4) throw std::runtime_error("not a row of four cells: " + std::string(row));
  return fmt::format(".TP\n{} = {}\n{}\n.br\nDefault: {}.\n", roffCell(cells[0]),
                     roffCell(cells[1]), roffCell(cells[3]), roffCell(cells[2]));
}

}  // namespace

std::string commandsSection(const std::vector<CommandText>& commands) {
  std::string text;
  for (const CommandText& command : commands) {
    // What only groups commands says nothing that they do not.
    const bool group = !command.commands.empty() && command.arguments.empty() &&
                       command.options.empty() && command.footer.empty();
    if (command.path.empty() || group) continue;
    text += fmt::format(".SS \"{}\"\n{}\n.PP\n{}.\n", command.path, usageOf(command),
                        roffLine(command.description));
    for (const ArgumentText& argument : command.arguments) {
      text += item(fmt::format("\\fI{}\\fP", roffLine(argument.name)), argument.description);
    }
    for (const OptionText& option : command.options) {
      text += optionItem(option);
    }
    if (!command.footer.empty()) text += ".PP\n" + roffText(command.footer);
  }
  return text;
}

std::string optionsSection(const CommandText& program) {
  std::string text;
  for (const ArgumentText& argument : program.arguments) {
    text += item(fmt::format("\\fI{}\\fP", roffLine(argument.name)), argument.description);
  }
  for (const OptionText& option : program.options) {
    text += optionItem(option);
  }
  return text + item("\\fB\\-h, \\-\\-help\\fP", "Print help and exit");
}

std::string keysSection(std::string_view configuration, std::string_view name) {
  const std::size_t start = configuration.find(fmt::format("\n## [{}]\n", name));
  if (start == std::string_view::npos) throw std::runtime_error("no section " + std::string(name));
  std::string_view section = configuration.substr(start + 1);
  section = section.substr(0, section.find("\n## "));
  std::string text;
  for (std::size_t at = section.find("\n| `"); at != std::string_view::npos;
       at = section.find("\n| `", at + 1)) {
    const std::string_view rest = section.substr(at + 1);
    text += keyItem(rest.substr(0, rest.find('\n')));
  }
  return text;
}

}  // namespace adit::manual
