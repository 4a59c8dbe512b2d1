// What shells complete of adit's commands: the tables of scripts/completion, whose other parts know
// what names, files and peers there are.
#pragma once

#include <string>
#include <vector>

#include "command_tree.hpp"

namespace adit::manual {

/// Functions of bash that print, for a command: the words that may follow, its options with a
/// value, and its arguments in their order.
std::string bashTables(const std::vector<CommandText>& commands);
/// The same for zsh, where words have a description.
std::string zshTables(const std::vector<CommandText>& commands);
/// Lines of `complete`, by `__adit_after COMMAND`; the commands as $__adit_commands, arguments as
/// `__adit_arguments`.
std::string fishTables(const std::vector<CommandText>& commands);

}  // namespace adit::manual
