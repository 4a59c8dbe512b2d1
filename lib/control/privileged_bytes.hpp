// The bytes of what goes between the two processes: they may hold keys.
#pragma once

#include "util/wiping.hpp"

namespace adit::control {

using Bytes = WipedBytes;

}  // namespace adit::control
