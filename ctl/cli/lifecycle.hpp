// Starting an interface's daemon.
#pragma once

#include <string>

namespace adit::cli {

/// `adit up`: the exit status, after telling what went wrong.
int bringUp(const std::string& argument);

}  // namespace adit::cli
