// Whole files: read, and replaced so that a power cut leaves the old or the new one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit {

/// The whole file. ENOENT and the like in the error's code.
Result<std::string> readFile(const std::filesystem::path& path);

/// A file that somebody with fewer rights may have put there: it must be a regular one, by itself
/// and not by a link, of at most `limit` bytes. Never waits, as for the writer of a pipe.
Result<std::string> readUntrustedFile(const std::filesystem::path& path, std::size_t limit);

enum class Durability : std::uint8_t {
  /// Survives the death of the process.
  Process,
  /// Survives a power cut: file and folder are synced before this returns.
  PowerCut,
};

/// Writes a temporary file beside `path` and renames it over `path`.
Result<void> replaceFile(const std::filesystem::path& path, std::string_view content, mode_t mode,
                         Durability durability);

/// As replaceFile() with Durability::PowerCut for a file that is not there yet; EEXIST, with
/// nothing changed, where it is.
Result<void> createFile(const std::filesystem::path& path, std::string_view content, mode_t mode);

}  // namespace adit
