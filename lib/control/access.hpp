// What a client of the control socket may do.
#pragma once

#include <cstdint>

namespace adit::control {

enum class Access : std::uint8_t {
  /// Sees what is up, without private and preshared keys. Members of the group `adit`.
  Read,
  /// Sees and changes everything. Root.
  Full,
};

}  // namespace adit::control
