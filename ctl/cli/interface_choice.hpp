// Which interface a command without NAME means.
#pragma once

#include <string>

#include "util/result.hpp"

namespace adit::cli {

/// `given`, else adit0 where that has a file or is up, else the only interface that does. Where
/// there are several the error names them.
Result<std::string> chosenInterface(const std::string& given);

}  // namespace adit::cli
