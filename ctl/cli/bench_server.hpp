// bench server: the other side of `adit bench PEER`.
#pragma once

#include "cli/commands.hpp"

namespace adit::cli {

void addBenchServer(CLI::App* bench, Action& action);

}  // namespace adit::cli
