// The commands of a program as its parser knows them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace adit::manual {

struct OptionText {
  /// "--json", "-v, --version"
  std::string names;
  /// The long one without its dashes.
  std::string longName;
  /// What its value is called, or a choice as "auto|kernel"; empty for a flag.
  std::string value;
  std::string description;
};

struct ArgumentText {
  std::string name;
  std::string description;
  bool required = false;
  bool repeats = false;
};

struct CommandText {
  /// "map add"; empty for the program itself.
  std::string path;
  std::string description;
  std::string footer;
  std::vector<OptionText> options;
  std::vector<ArgumentText> arguments;
  std::vector<std::string> commands;
};

/// The program and all below it, each before its own commands, in the parser's order. --help is
/// left out, and so is a help text that is only inherited.
std::vector<CommandText> commandsOf(const CLI::App& program);

}  // namespace adit::manual
