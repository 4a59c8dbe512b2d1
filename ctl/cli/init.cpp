// init server: the first configuration of a server.
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "cli/commands.hpp"
#include "cli/init_network.hpp"
#include "cli/onboarding.hpp"
#include "cli/output.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "control/paths.hpp"
#include "crypto/key.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0600;

struct InitArguments {
  std::string name = "adit0";
  std::string publicInterface;
  std::vector<std::string> endpoints;
};

/// What the file says.
struct ServerPlan {
  control::NamedConfig named;
  crypto::PrivateKey key = crypto::PrivateKey::generate();
  InterfaceAddress v4;
  InterfaceAddress v6;
  std::uint16_t port = 0;
  /// Empty where the default route names it.
  std::string publicInterface;
  std::vector<std::string> endpoints;
};

InterfaceAddress firstHost(const Prefix& network) {
  return {hostOf(network, 1), network.length()};
}

Result<ServerPlan> plan(const InitArguments& arguments, const control::NamedConfig& named,
                        PublicSide& side) {
  const auto routing = netlink::RouteSocket::open();
  if (!routing) return tl::unexpected(routing.error());
  const auto link = (*routing)->findLink(named.interface);
  if (link && *link) {
    return fail("this machine has an interface {} already; choose another name with --name",
                named.interface);
  }
  auto found = publicSide(**routing, arguments.publicInterface);
  if (!found) return tl::unexpected(found.error());
  side = std::move(*found);
  crypto::SystemRandom random;
  const auto network = freeNetworkV4(**routing, random);
  if (!network) return tl::unexpected(network.error());
  const auto port = freePort();
  if (!port) return tl::unexpected(port.error());
  ServerPlan result;
  result.named = named;
  result.v4 = firstHost(*network);
  result.v6 = firstHost(randomNetworkV6(random));
  result.port = *port;
  if (!arguments.publicInterface.empty() || side.ambiguous) {
    result.publicInterface = side.interface;
  }
  for (const std::string& text : arguments.endpoints) {
    const auto endpoint = endpointWithPort(text, *port);
    if (!endpoint) return tl::unexpected(endpoint.error());
    result.endpoints.push_back(*endpoint);
  }
  return result;
}

std::string fileText(const ServerPlan& plan) {
  const auto now = std::chrono::floor<std::chrono::seconds>(SystemClock().realTime());
  std::string text = fmt::format(
      "# Written by `adit init server` at {}; it is yours from here on.\n"
      "# `adit reload {}` applies a change. Every key stands in adit.conf(5).\n"
      "\n"
      "[Interface]\n"
      "# Only this machine may have it.\n"
      "PrivateKey = {}\n"
      "# The tunnel's own networks, chosen at random so that they meet no other.\n"
      "Address = {}, {}\n"
      "# UDP; the only port that has to be open for the tunnel itself.\n"
      "ListenPort = {}\n",
      config::formatUtcTime(now), plan.named.interface, plan.key.toBase64(), plan.v4.toString(),
      plan.v6.toString(), plan.port);
  if (!plan.publicInterface.empty()) {
    text +=
        fmt::format("# The interface whose ports are mapped.\nPublic = {}\n", plan.publicInterface);
  }
  if (plan.endpoints.empty()) {
    text += fmt::format(
        "# Where other machines reach this one, if that is not its own public address:\n"
        "# PublicEndpoint = server.example:{}\n",
        plan.port);
  } else {
    text += fmt::format("# Where other machines reach this one.\nPublicEndpoint = {}\n",
                        fmt::join(plan.endpoints, ", "));
  }
  text += fmt::format(
      "\n"
      "# Peers that `adit invite` makes and mappings of `adit map add` stand in\n"
      "# {}/, which is read after this file.\n",
      config::dropInFolder(plan.named.file).string());
  return text;
}

Result<void> write(const ServerPlan& plan) {
  std::string text = fileText(plan);
  const config::Outcome outcome = config::parse(text, plan.named.file.string());
  Result<void> written = outcome.ok() ? makeConfigFolder(plan.named.file)
                                      : fail("{}", outcome.diagnostics.front().toString());
  if (written) written = createFile(plan.named.file, text, kFileMode);
  sodium_memzero(text.data(), text.size());
  return written;
}

std::string nextSteps(const ServerPlan& plan, const PublicSide& side) {
  std::vector<std::string> reached = plan.endpoints;
  for (const IpAddress& address : side.addresses) {
    if (plan.endpoints.empty()) reached.push_back(Endpoint{address, plan.port, 0}.toString());
  }
  const std::string& name = plan.named.interface;
  std::string text = fmt::format(
      "{} is written: this server is {} and {} in the tunnel.\n"
      "{}\n\n"
      "Next:\n"
      "  adit up {}\n"
      "  open UDP port {} in the provider's firewall, if it has one\n"
      "  adit invite nas --maps tcp/8000-9000    prints the token for the other machine\n",
      plan.named.file.string(), plan.v4.address.toString(), plan.v6.address.toString(),
      reached.empty()
          ? fmt::format("No address of {} is a public one: tell other machines where to find this "
                        "one, by\nPublicEndpoint in the file or by `adit invite --endpoint HOST`.",
                        side.interface)
          : fmt::format("Other machines reach it at {}.", fmt::join(reached, " and ")),
      name, plan.port);
  return text;
}

int initServer(const InitArguments& arguments) {
  const auto named = control::resolveConfigName(arguments.name);
  if (!named) return complain(named.error());
  if (::geteuid() != 0) return complain("init needs root: run `sudo adit init server`");
  std::error_code ignored;
  const std::string refusal = fmt::format(
      "{} exists already and stays as it is; `adit up {}` brings it up, --name makes another one",
      named->file.string(), named->interface);
  if (fs::exists(named->file, ignored)) return complain(refusal);
  PublicSide side;
  const auto server = plan(arguments, *named, side);
  if (!server) return complain(server.error());
  if (const auto written = write(*server); !written) {
    return written.error().code == EEXIST ? complain(refusal) : complain(written.error());
  }
  return print(nextSteps(*server, side));
}

}  // namespace

void addInitCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<InitArguments>();
  CLI::App* init = app.add_subcommand("init", "Write the first configuration of a server");
  init->require_subcommand(1);
  CLI::App* server =
      init->add_subcommand("server", "Make keys, addresses and a commented file for a server");
  server->add_option("--public", arguments->publicInterface,
                     "the interface whose ports are mapped; default: the one of the default route");
  server->add_option("--endpoint", arguments->endpoints,
                     "HOST[:PORT] where other machines reach this one; may be repeated; default: "
                     "its own public addresses");
  server->add_option("--name", arguments->name, "the interface, adit0 by default");
  server->footer(
      "Writes /etc/adit/NAME.conf, mode 0600. A file that exists is never changed.\n"
      "Examples:\n"
      "  adit init server\n"
      "  adit init server --endpoint server.example");
  server->callback(
      [&action, arguments] { action = [arguments] { return initServer(*arguments); }; });
}

}  // namespace adit::cli
