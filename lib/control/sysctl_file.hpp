// Writing one file below /proc/sys/net, of an allow list.
#pragma once

#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::control {

/// Whether adit may ever write this file. `path` is relative to /proc/sys
/// ("net/ipv4/conf/eth0/rp_filter"): below net/, no empty, "." or ".." component, and a last
/// component of the allow list. The error names the path.
Result<void> checkSysctl(std::string_view path);

/// Writes `value` unless the file has it already, and returns the old value without its newline.
/// `root` is "/proc/sys" except in tests. An absent, read-only or refusing file is an error that
/// names the remedy, and has errno in `code`.
Result<std::string> writeSysctlFile(const std::string& root, const std::string& path,
                                    const std::string& value);

}  // namespace adit::control
