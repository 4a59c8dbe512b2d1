#include "cli/machine.hpp"

#include <net/if.h>

#include <array>

#include "config/parser.hpp"
#include "control/control_client.hpp"
#include "netlink/route.hpp"

namespace adit::cli {
namespace {

/// Stand for the whole Internet where the route to it is asked for (RFC 5737, RFC 3849).
constexpr std::array kAnywhere = {"192.0.2.1", "2001:db8::1"};

control::NetworkFacts factsOf(const control::NamedConfig& named, const control::DeviceView& view,
                              netlink::Routing& routing) {
  control::NetworkFacts facts;
  facts.interface = named.interface;
  facts.interfaceIndex = ::if_nametoindex(named.interface.c_str());
  facts.listenPort = view.device.listenPort;
  for (const char* anywhere : kAnywhere) {
    const auto answer = routing.lookupRoute(*IpAddress::parse(anywhere), view.device.firewallMark);
    if (!answer || answer->local || answer->interface == facts.interfaceIndex) continue;
    std::array<char, IF_NAMESIZE> name{};
    if (facts.defaultInterface.empty() &&
        ::if_indextoname(answer->interface, name.data()) != nullptr) {
      facts.defaultInterface = name.data();
    }
    if (answer->preferredSource) facts.homeAddresses.push_back(*answer->preferredSource);
  }
  return facts;
}

}  // namespace

Result<Machine> machineOf(const std::string& name) {
  auto named = control::resolveConfigName(name);
  if (!named) return tl::unexpected(named.error());
  auto view =
      control::ControlClient::connect(named->interface).and_then([](control::ControlClient client) {
        return client.show(false);
      });
  if (!view) return tl::unexpected(view.error());
  // A daemon that was started for a file elsewhere tells which.
  if (!view->device.configured.files.empty())
    named->file = view->device.configured.files.front().path;
  config::Outcome outcome = config::load(named->file);
  if (!outcome.ok()) {
    return fail("{} cannot be read as it is now: `adit check {}`", named->file.string(),
                named->file.string());
  }
  auto routing = netlink::RouteSocket::open();
  if (!routing) return tl::unexpected(routing.error());
  control::DesiredNetwork desired =
      control::desiredNetwork(*outcome.config, factsOf(*named, *view, **routing));
  return Machine{std::move(*named), std::move(*outcome.config), std::move(*view),
                 std::move(desired)};
}

}  // namespace adit::cli
