// Kernel parameters that several tunnels of a machine need (forwarding, counting connections): only
// the first of them has changed them, and only the last may put them back.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace adit::control {

/// Path below /proc/sys to the value before adit's first write.
using SysctlValues = std::map<std::string, std::string>;

/// What `interface`, which goes, has to put back of `undo` and of what it was left by others that
/// went before: all of it, or, where another tunnel of this network namespace is up, only what is
/// about `interface` itself; the rest is left to that one.
SysctlValues withoutShared(std::string_view interface, SysctlValues undo);

}  // namespace adit::control
