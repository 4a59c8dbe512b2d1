// What the manual pages say of commands, options and keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_tree.hpp"

namespace adit::manual {

/// adit.8: every command with its arguments, options and help.
std::string commandsSection(const std::vector<CommandText>& commands);
/// aditd.8: the options of a program without commands.
std::string optionsSection(const CommandText& program);
/// adit.conf.5: the table of the section [`name`] in docs/configuration.md, which a unit test
/// compares with the parser's own.
std::string keysSection(std::string_view configuration, std::string_view name);

}  // namespace adit::manual
