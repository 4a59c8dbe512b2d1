// The directories that belong to the process that talks to the network.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>

#include "util/result.hpp"

namespace adit::control {

/// What must survive a reboot: /var/lib/adit/NAME, with ADIT_STATE_DIR in place of /var/lib/adit
/// when that is set.
std::filesystem::path stateDirectory(std::string_view interface);
/// What must survive the daemon only: NAME below runtimeDirectory() (paths.hpp).
std::filesystem::path volatileDirectory(std::string_view interface);

/// Makes `directory` (mode 0700) and those above it (mode 0755), and gives it with the files in it
/// to `uid` and `gid`. A symbolic link in its place is an error.
Result<void> makeOwnDirectory(const std::filesystem::path& directory, uid_t uid, gid_t gid);

/// Makes both directories of `interface` for `uid` and `gid`.
Result<void> makeOwnDirectories(std::string_view interface, uid_t uid, gid_t gid);

/// Whether this process can use `directory`; the error names the directory above it that is
/// closed, and the remedy.
Result<void> checkOwnDirectory(const std::filesystem::path& directory);

/// Whether this process can use both directories of `interface`; makes the one that lasts its
/// working directory.
Result<void> enterOwnDirectories(std::string_view interface);

}  // namespace adit::control
