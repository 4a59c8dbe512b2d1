// modprobe(8) of adit.ko, and what its failures mean. For the process that has the right to.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::control {

/// Loads the module `adit`, the only one that is ever asked for. The error's code says what is in
/// the way: ENOENT not installed; EKEYREJECTED no signature that the kernel trusts; EPERM the
/// kernel takes no modules; EACCES this process may not load any; ENOEXEC built for another kernel;
/// 0 for anything else, with modprobe's words.
Result<void> loadAditModule(const std::string& searchPath, std::chrono::milliseconds timeout);

/// The code for what modprobe printed. kmod and busybox agree on most of the words, which are those
/// of strerror(3) in the C locale. `mayLoad`: the process that ran it has CAP_SYS_MODULE.
int moduleErrorCode(std::string_view output, bool mayLoad);

}  // namespace adit::control
