// Traffic control, as far as adit needs it: packets that are to come in elsewhere.
#pragma once

#include <cstdint>

#include "util/result.hpp"

namespace adit::netlink {

/// From now on what comes in by the interface `from` comes in by `to` instead, in the network
/// namespace of the calling thread (tc-mirred(8)); it ends with `from`, which must not have an
/// ingress queueing discipline yet. Needs CAP_NET_ADMIN, and cls_u32 and act_mirred of the kernel.
Result<void> redirectIncoming(std::uint32_t from, std::uint32_t to);

}  // namespace adit::netlink
