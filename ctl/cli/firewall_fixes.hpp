// What `adit map check --fix` does to the firewalls of others, and `adit down` takes back.
#pragma once

#include <string>
#include <vector>

#include "nat/obstacles.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// Runs the obstacle's command, and notes first how it is undone: root's file
/// /run/adit/NAME.fixes, which survives daemon and reload.
Result<void> applyFix(const std::string& interface, const nat::Obstacle& obstacle);

/// Takes back all that is noted, newest first, and forgets it; goes on after failures and returns
/// them.
std::vector<std::string> undoFixes(const std::string& interface);

}  // namespace adit::cli
