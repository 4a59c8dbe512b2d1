// What wg(8) understands of an adit or wg-quick file.
#pragma once

#include <string>
#include <vector>

#include "config/model.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// The lines of the loaded files that wg(8) knows, comments included. A key that is in a file of
/// its own is written in its place. `remarks` gets what could not be carried over.
Result<std::string> stripToWireguard(const config::Outcome& loaded,
                                     std::vector<std::string>& remarks);

}  // namespace adit::cli
