// A mapping's ends as the grammar writes them.
#pragma once

#include <string>

#include "config/model.hpp"

namespace adit::config {

/// "[ADDRESS:]PROTO/PORT[-PORT]", the mapping's name in messages and differences.
std::string listenText(const MapConfig& map);
/// "HOST[:PORT]"; the port only where it differs from the listening one.
std::string targetText(const MapConfig& map);

}  // namespace adit::config
