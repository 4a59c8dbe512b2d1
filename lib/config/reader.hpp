// Turns lines into a draft; used by parse() and load().
#pragma once

#include <string_view>

#include "config/diagnostics.hpp"
#include "config/draft.hpp"

namespace adit::config {

/// Adds what `text` says to `draft`. Every call is one file.
void readInto(Draft& draft, std::string_view text, const FileName& file, Dialect dialect,
              Diagnostics& diagnostics);

}  // namespace adit::config
