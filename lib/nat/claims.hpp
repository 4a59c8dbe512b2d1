// What other tunnels of this host map already.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nat/mapping.hpp"
#include "util/result.hpp"

namespace adit::nat {

/// A port range of the public side that the table of another tunnel translates.
struct Claim {
  std::string tunnel;
  Protocol protocol = Protocol::Tcp;
  /// Only this address; nothing is all of one family.
  std::optional<IpAddress> listenAddress;
  bool v6 = false;
  std::uint16_t firstPort = 0;
  std::uint16_t lastPort = 0;
  /// Public NICs of that tunnel; empty where they are not known.
  std::vector<std::string> publicInterfaces;
};

/// The mappings in the kernel's tables `inet adit_*`, but for the table of `interface`: of the
/// network namespace of the calling thread, whoever runs those tunnels.
Result<std::vector<Claim>> claimsOfOthers(std::string_view interface);

/// The claims in the listing of one table.
std::vector<Claim> claimsOfListing(std::string_view tunnel, const nlohmann::json& listing);

/// One error for each mapping that would take a port from another tunnel and does not say Override.
/// Where `spec` names no public NIC it may be any.
std::vector<Error> claimConflicts(const RulesetSpec& spec, const std::vector<Claim>& claims);

}  // namespace adit::nat
