#include "cli/server.hpp"

#include "cli/drop_in.hpp"
#include "cli/init_network.hpp"
#include "cli/interface_choice.hpp"
#include "cli/onboarding.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "control/control_client.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;

/// The first public address of the interface that faces the Internet.
std::optional<std::string> publicAddress(const config::Config& config, std::uint16_t port) {
  const auto routing = netlink::RouteSocket::open();
  if (!routing || port == 0) return std::nullopt;
  const auto side = publicSide(**routing, config.interface.publicInterface);
  if (!side || side->addresses.empty()) return std::nullopt;
  return Endpoint{side->addresses.front(), port, 0}.toString();
}

}  // namespace

Result<Server> Server::find(const std::string& interface) {
  const auto chosen = chosenInterface(interface);
  if (!chosen) return tl::unexpected(chosen.error());
  auto named = configOf(*chosen);
  if (!named) return tl::unexpected(named.error());
  config::Outcome outcome = config::load(named->file);
  if (!outcome.ok()) return fail("{}", errorsOf(outcome.diagnostics));
  auto view = ControlClient::connect(named->interface).and_then([](ControlClient client) {
    return client.show(false);
  });
  return Server{std::move(*named), std::move(*outcome.config),
                view ? std::optional(std::move(*view)) : std::nullopt};
}

Result<crypto::PublicKey> Server::publicKey() const {
  if (view && view->publicKey) return *view->publicKey;
  if (config.interface.privateKey) return config.interface.privateKey->publicKey();
  return fail("{0} has no private key in its file, and is not up: `adit up {0}` first",
              named.interface);
}

Result<config::EndpointName> Server::endpoint(const std::string& given) const {
  std::uint16_t port = config.interface.listenPort.value_or(0);
  if (port == 0 && view) port = view->device.listenPort;
  if (given.empty() && !config.interface.publicEndpoints.empty()) {
    return config.interface.publicEndpoints.front();
  }
  const auto text = given.empty() ? publicAddress(config, port) : given;
  if (!text) {
    return fail(
        "no address of this machine is a public one: say where the device reaches it, by "
        "--endpoint HOST, or by PublicEndpoint in {}",
        named.file.string());
  }
  const auto whole = endpointWithPort(*text, port);
  if (!whole) return wrapError(whole.error(), "--endpoint");
  const auto endpoint = config::parseEndpoint(*whole);
  if (!endpoint) return fail("--endpoint {}: {}", *text, endpoint.error().message);
  return *endpoint;
}

}  // namespace adit::cli
