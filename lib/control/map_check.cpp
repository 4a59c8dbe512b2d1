#include "control/map_check.hpp"

#include "control/desired.hpp"
#include "nat/prerequisites.hpp"

namespace adit::control {

Result<void> checkMappings(const std::string& interface, const config::Config& config) {
  nat::RulesetSpec spec;
  spec.interface = interface;
  spec.ownPort = config.interface.listenPort.value_or(0);
  for (const InterfaceAddress& address : config.interface.addresses) {
    spec.tunnelAddresses.push_back(address.address);
  }
  spec.mappings = resolvedMappings(config.maps);
  const auto listeners = nat::localListeners();
  if (!listeners) {
    return {};
  }
  const std::vector<Error> conflicts = nat::listenerConflicts(spec, *listeners);
  return conflicts.empty() ? Result<void>{} : tl::unexpected(conflicts.front());
}

}  // namespace adit::control
