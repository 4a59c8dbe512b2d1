// The command line of `adit` as a whole.
#pragma once

#include "cli/commands.hpp"

namespace adit::cli {

/// Every command with its options and help; the one that is parsed is stored in `action`. Both must
/// outlive the parsing. For the manual pages and completions too.
void buildCommandLine(CLI::App& app, Action& action);

/// Parses the arguments, runs the command, and gives the exit status.
int run(int argc, const char* const* argv);

}  // namespace adit::cli
