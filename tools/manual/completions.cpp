#include "completions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace adit::manual {
namespace {

using Words = std::vector<std::string>;

std::string shellQuoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return result + "'";
}

Words wordsOf(const CommandText& command) {
  Words words = command.commands;
  for (const OptionText& option : command.options) {
    words.push_back("--" + option.longName);
  }
  words.emplace_back("--help");
  return words;
}

Words valuedOf(const CommandText& command) {
  Words words;
  for (const OptionText& option : command.options) {
    if (!option.value.empty())
      words.push_back(fmt::format("--{}={}", option.longName, option.value));
  }
  return words;
}

Words argumentsOf(const CommandText& command) {
  Words words;
  for (const ArgumentText& argument : command.arguments) {
    words.push_back(argument.name + (argument.repeats ? "..." : ""));
  }
  return words;
}

std::string descriptionOf(const std::vector<CommandText>& commands, const std::string& path) {
  for (const CommandText& command : commands) {
    if (command.path == path) return command.description;
  }
  return {};
}

/// A function with one case for each command whose line is not empty.
std::string function(const std::string& name, const std::vector<CommandText>& commands,
                     const std::function<std::string(const CommandText&)>& lineOf) {
  std::string text = fmt::format("{}() {{\n  case $1 in\n", name);
  for (const CommandText& command : commands) {
    const std::string line = lineOf(command);
    if (!line.empty()) text += fmt::format("    {}) {} ;;\n", shellQuoted(command.path), line);
  }
  return text + "  esac\n}\n";
}

std::string echoed(const Words& words) {
  return words.empty()
             ? ""
             : fmt::format("echo {}", shellQuoted(fmt::format("{}", fmt::join(words, " "))));
}

/// Colons separate a word from its description in zsh.
std::string described(std::string_view word, std::string_view description) {
  std::string text(word);
  text += ':';
  text += description;
  return shellQuoted(text);
}

std::string zshWords(const std::vector<CommandText>& commands, const CommandText& command) {
  Words words;
  for (const std::string& name : command.commands) {
    const std::string path = command.path.empty() ? name : command.path + ' ' + name;
    words.push_back(described(name, descriptionOf(commands, path)));
  }
  for (const OptionText& option : command.options) {
    words.push_back(described("--" + option.longName, option.description));
  }
  words.push_back(described("--help", "print help"));
  return fmt::format("reply=({})", fmt::join(words, " "));
}

}  // namespace

std::string bashTables(const std::vector<CommandText>& commands) {
  return function("_adit_words_after", commands,
                  [](const CommandText& c) { return echoed(wordsOf(c)); }) +
         function("_adit_valued", commands,
                  [](const CommandText& c) { return echoed(valuedOf(c)); }) +
         function("_adit_arguments", commands,
                  [](const CommandText& c) { return echoed(argumentsOf(c)); });
}

std::string zshTables(const std::vector<CommandText>& commands) {
  return function("_adit_words_after", commands,
                  [&](const CommandText& c) { return zshWords(commands, c); }) +
         function("_adit_valued", commands,
                  [](const CommandText& c) { return echoed(valuedOf(c)); }) +
         function("_adit_arguments", commands,
                  [](const CommandText& c) { return echoed(argumentsOf(c)); });
}

std::string fishTables(const std::vector<CommandText>& commands) {
  std::string text;
  Words paths;
  std::string arguments = "function __adit_arguments\n    switch $argv[1]\n";
  for (const CommandText& command : commands) {
    if (!command.path.empty()) paths.push_back(shellQuoted(command.path));
    const std::string when =
        fmt::format("complete -c adit -n \"__adit_after {}\"", shellQuoted(command.path));
    for (const std::string& name : command.commands) {
      const std::string path = command.path.empty() ? name : command.path + ' ' + name;
      text +=
          fmt::format("{} -a {} -d {}\n", when, name, shellQuoted(descriptionOf(commands, path)));
    }
    for (const OptionText& option : command.options) {
      const std::string value = option.value.empty() ? ""
                                                     : fmt::format(" -x -a \"(__adit_values {})\"",
                                                                   shellQuoted(option.value));
      text += fmt::format("{} -l {}{} -d {}\n", when, option.longName, value,
                          shellQuoted(option.description));
    }
    const Words words = argumentsOf(command);
    if (words.empty()) continue;
    arguments += fmt::format("        case {}\n            echo {}\n", shellQuoted(command.path),
                             shellQuoted(fmt::format("{}", fmt::join(words, " "))));
  }
  return fmt::format("set -g __adit_commands {}\n", fmt::join(paths, " ")) + text + arguments +
         "    end\nend\n";
}

}  // namespace adit::manual
