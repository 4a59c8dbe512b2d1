// The command line of `adit` as a whole.
#pragma once

namespace adit::cli {

/// Parses the arguments, runs the command, and gives the exit status.
int run(int argc, const char* const* argv);

}  // namespace adit::cli
