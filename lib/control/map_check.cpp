#include "control/map_check.hpp"

#include <algorithm>
#include <iterator>

#include "control/desired.hpp"
#include "nat/claims.hpp"
#include "nat/prerequisites.hpp"

namespace adit::control {

Result<void> checkMappings(const std::string& interface, const config::Config& config) {
  nat::RulesetSpec spec;
  spec.interface = interface;
  spec.ownPort = config.interface.listenPort.value_or(0);
  for (const InterfaceAddress& address : config.interface.addresses) {
    spec.tunnelAddresses.push_back(address.address);
  }
  spec.mappings = mappingsBySide(config).translated;
  if (spec.mappings.empty()) {
    return {};
  }
  if (!config.interface.publicInterface.empty()) {
    spec.publicInterfaces.push_back(config.interface.publicInterface);
  }
  std::vector<Error> conflicts;
  if (const auto listeners = nat::localListeners()) {
    conflicts = nat::listenerConflicts(spec, *listeners);
  }
  if (const auto claims = nat::claimsOfOthers(interface)) {
    std::ranges::move(nat::claimConflicts(spec, *claims), std::back_inserter(conflicts));
  }
  return conflicts.empty() ? Result<void>{} : tl::unexpected(conflicts.front());
}

}  // namespace adit::control
