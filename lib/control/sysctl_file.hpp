// Reading files below /proc/sys/net, and writing those of an allow list.
#pragma once

#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::control {

inline constexpr const char* kSysctlRoot = "/proc/sys";

/// Whether adit may ever write this file. `path` is relative to /proc/sys
/// ("net/ipv4/conf/eth0/rp_filter"): below net/, no empty, "." or ".." component, and a last
/// component of the allow list. The error names the path.
Result<void> checkSysctl(std::string_view path);

/// The value without its newline. ENOENT: this kernel, container or interface does not have it.
/// `root` is kSysctlRoot except in tests.
Result<std::string> readSysctlFile(const std::string& root, const std::string& path);

/// Writes `value` unless the file has it already, and returns the old value without its newline.
/// An absent, read-only or refusing file is an error that
/// names the remedy, and has errno in `code`.
Result<std::string> writeSysctlFile(const std::string& root, const std::string& path,
                                    const std::string& value);

}  // namespace adit::control
