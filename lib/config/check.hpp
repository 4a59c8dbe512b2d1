// `adit check FILE`: validates without touching anything and without root.
#pragma once

#include <filesystem>
#include <ostream>

namespace adit::config {

/// Writes every warning and error of the file at `path` to `out`: a line each, and "FILE: ok" when
/// there is no error; or, as JSON, one array of objects with file, line, column, severity ("error"
/// or "warning") and message. Returns the exit code: 0, or 1 where there is an error.
int checkFile(const std::filesystem::path& path, std::ostream& out, bool json);

}  // namespace adit::config
