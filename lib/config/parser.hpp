// Reads configurations: every error of a file in one run, before anything is touched.
#pragma once

#include <filesystem>
#include <string_view>

#include "config/model.hpp"
#include "util/result.hpp"

namespace adit::config {

/// Reads `text`, calling it `fileName` in messages. Opens no file: keys named by PrivateKeyFile and
/// PresharedKeyFile stay unset.
Outcome parse(std::string_view text, std::string_view fileName, Dialect dialect = Dialect::Adit);

/// Reads the file at `path` and the key files that it names, which are relative to its folder. By
/// Dialect::Adit also PATH.d/*.conf, with PATH without its ".conf", in the order of their names, as
/// if they followed in the same file; a missing folder is none. Warns of secrets that others may
/// read. A file that cannot be read is an error of the outcome.
Outcome load(const std::filesystem::path& path, Dialect dialect = Dialect::Adit);

/// As load(), as if the file `dropIn` of PATH.d held `text`; an empty text is an absent file. To
/// judge a change before it is made.
Outcome loadWith(const std::filesystem::path& path, const std::filesystem::path& dropIn,
                 std::string_view text);

/// PATH.d of PATH.conf.
std::filesystem::path dropInFolder(const std::filesystem::path& path);

/// NAME of /etc/adit/NAME.conf when it can be an interface: 1 to 15 bytes, no `/`, `:`, `%` or
/// blanks.
Result<std::string> interfaceNameOf(const std::filesystem::path& path);
/// The same rule for a name by itself.
Result<void> checkInterfaceName(std::string_view name);

}  // namespace adit::config
