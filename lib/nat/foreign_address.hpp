// Mappings about an address that this machine does not have.
#pragma once

#include <optional>
#include <string>

#include "nat/conntrack.hpp"
#include "nat/mapping.hpp"

namespace adit::nat {

/// Why no packet can come for a mapping, or nothing: where a provider translates addresses, packets
/// to the public one are delivered to another, which is the one that the machine has.
std::optional<std::string> foreignAddress(const Mapping& mapping, const HostAddresses& host);

}  // namespace adit::nat
