// Runs aditd.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "util/result.hpp"

namespace adit::cli {

/// The program: ADITD where it is set, else beside adit, in the build tree's ../daemon, in
/// ../sbin, or on PATH.
Result<std::filesystem::path> findDaemon();

/// Runs it with `arguments` and gives its exit status. Its messages go to our standard error.
Result<int> runDaemon(const std::vector<std::string>& arguments);

}  // namespace adit::cli
