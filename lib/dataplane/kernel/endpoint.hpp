// The ends of datagrams in messages of adit.ko. Private to dataplane/kernel.
#pragma once

#include <optional>

#include "netlink/attributes.hpp"
#include "util/address.hpp"

namespace adit::dataplane::kernel {

/// Nothing without an address and a port.
std::optional<Endpoint> endpoint(const std::optional<netlink::Attributes>& nest);
/// Unspecified without an address.
LocalAddress localAddress(const std::optional<netlink::Attributes>& nest);

}  // namespace adit::dataplane::kernel
