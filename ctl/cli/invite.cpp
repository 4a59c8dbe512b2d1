// invite: one token with which one machine can join.
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/diagnostics.hpp"
#include "cli/drop_in.hpp"
#include "cli/init_network.hpp"
#include "cli/interface_choice.hpp"
#include "cli/invite_file.hpp"
#include "cli/onboarding.hpp"
#include "cli/output.hpp"
#include "cli/qr.hpp"
#include "cli/table.hpp"
#include "config/values.hpp"
#include "control/control_client.hpp"
#include "control/device_enrol_file.hpp"
#include "util/clock.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;
using control::NamedConfig;
using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kLongestLife = 30 * 24h;

struct InviteArguments {
  std::string name;
  std::string interface;
  std::vector<std::string> maps;
  std::vector<std::string> endpoints;
  std::string expires = "24h";
  std::string revoke;
  bool list = false;
  bool qr = false;
  bool json = false;
};

std::chrono::seconds now() {
  return std::chrono::floor<std::chrono::seconds>(SystemClock().realTime());
}

int refuse(bool json, const Error& error) {
  if (json) print(Json{{"ok", false}, {"error", error.message}}.dump(2) + '\n');
  return json ? kFailure : complain(error);
}

/// NUMBER and s, m, h or d.
Result<std::chrono::seconds> lifetimeOf(const std::string& text) {
  constexpr std::array<std::pair<char, std::chrono::seconds>, 4> kUnits{
      {{'s', 1s}, {'m', 1min}, {'h', 1h}, {'d', 24h}}};
  const auto unit = std::ranges::find(kUnits, text.empty() ? '\0' : text.back(),
                                      &std::pair<char, std::chrono::seconds>::first);
  unsigned count = 0;
  const char* last = text.data() + std::max<std::size_t>(text.size(), 1) - 1;
  const auto parsed = std::from_chars(text.data(), last, count);
  const bool number = parsed.ec == std::errc() && parsed.ptr == last && count > 0;
  if (unit == kUnits.end() || !number || count > kLongestLife / unit->second) {
    return fail("--expires {}: write a time of up to 30 days, as in 30m, 24h or 7d", text);
  }
  return count * unit->second;
}

/// The public key of the interface, also where the file does not have it.
Result<crypto::PublicKey> serverKey(const NamedConfig& named, const config::Config& config) {
  if (config.interface.privateKey) return config.interface.privateKey->publicKey();
  const auto view = ControlClient::connect(named.interface).and_then([](ControlClient client) {
    return client.show(false);
  });
  if (view && view->publicKey) return *view->publicKey;
  return fail("the private key of {0} is not in its file: bring it up first, `adit up {0}`",
              named.interface);
}

Result<std::vector<std::string>> endpointsOf(const InviteArguments& arguments,
                                             const config::Config& config) {
  const std::uint16_t port = config.interface.listenPort.value_or(0);
  if (port == 0) {
    return fail("without ListenPort nobody can find this server again; write ListenPort = 51820");
  }
  std::vector<std::string> found;
  for (const std::string& text : arguments.endpoints) {
    auto endpoint = endpointWithPort(text, port);
    if (!endpoint) return tl::unexpected(endpoint.error());
    found.push_back(std::move(*endpoint));
  }
  for (const config::EndpointName& endpoint : config.interface.publicEndpoints) {
    if (arguments.endpoints.empty()) found.push_back(endpoint.toString());
  }
  if (found.empty()) {
    const auto routing = netlink::RouteSocket::open();
    if (!routing) return tl::unexpected(routing.error());
    const auto side = publicSide(**routing, config.interface.publicInterface);
    if (!side) return tl::unexpected(side.error());
    for (const IpAddress& address : side->addresses) {
      found.push_back(Endpoint{address, port, 0}.toString());
    }
    if (found.empty()) {
      return fail(
          "{} has no public address: say where other machines reach this server, by --endpoint "
          "HOST or by PublicEndpoint in its file",
          side->interface);
    }
  }
  if (found.size() > enrol::kMaxEndpoints) {
    return fail("a token holds at most {} endpoints", enrol::kMaxEndpoints);
  }
  return found;
}

/// Nothing where no daemon runs.
Result<bool> reload(const NamedConfig& named) {
  auto client = ControlClient::connect(named.interface);
  if (!client) {
    if (client.error().code == ENOENT) return false;
    return tl::unexpected(client.error());
  }
  return client->reload().map([](const auto&) { return true; });
}

std::string addressText(const config::InvitationConfig& invitation) {
  std::vector<std::string> texts;
  for (const InterfaceAddress& address : invitation.addresses) {
    texts.push_back(address.address.toString());
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

struct Made {
  Invitation invitation;
  std::string token;
  bool running = false;
};

int report(const InviteArguments& arguments, const NamedConfig& named, Made& made) {
  const config::InvitationConfig& config = made.invitation.config;
  const std::string maps = grantsText(config.allowMaps, config.allowThirdParty);
  std::string text;
  if (arguments.json) {
    text = Json{{"ok", true},
                {"name", config.name},
                {"token", made.token},
                {"expires", config::formatUtcTime(config.expires)},
                {"addresses", addressText(config)},
                {"maps", maps},
                {"endpoints", made.invitation.token.endpoints},
                {"file", made.invitation.file.string()},
                {"up", made.running}}
               .dump(2) +
           '\n';
  } else {
    text = fmt::format(
        "{} is invited: {} in the tunnel; ports that it may ask for: {}.\n"
        "On that machine, as root, within {} (until {}):\n\n"
        "  adit join {}\n\n"
        "The token works once, for the first machine that uses it: send it as you would a "
        "password.\n",
        config.name, addressText(config), maps, durationText(config.expires - now() + 1s),
        config::formatUtcTime(config.expires), made.token);
  }
  int status = kSuccess;
  if (arguments.qr && !arguments.json) {
    auto code = qrText(made.token, wantsColor());
    if (code) {
      text += '\n' + *code;
      sodium_memzero(code->data(), code->size());
    } else {
      status = complain(code.error());
    }
  }
  if (print(text) != kSuccess) status = kFailure;
  sodium_memzero(text.data(), text.size());
  sodium_memzero(made.token.data(), made.token.size());
  if (!made.running && !arguments.json) {
    remark(fmt::format("{0} is not up: nobody can join before `adit up {0}`", named.interface));
  }
  return status;
}

Result<Made> make(const InviteArguments& arguments, const NamedConfig& named,
                  const config::Config& config) {
  const auto lifetime = lifetimeOf(arguments.expires);
  if (!lifetime) return tl::unexpected(lifetime.error());
  const auto endpoints = endpointsOf(arguments, config);
  if (!endpoints) return tl::unexpected(endpoints.error());
  const auto server = serverKey(named, config);
  if (!server) return tl::unexpected(server.error());
  crypto::SystemRandom random;
  auto invitation = makeInvitation(
      named, config, *server,
      {arguments.name, fmt::format("{}", fmt::join(arguments.maps, ", ")), *lifetime}, now(),
      random);
  if (!invitation) return tl::unexpected(invitation.error());
  invitation->token.endpoints = *endpoints;
  if (auto written = writeInvitation(named, *invitation); !written) {
    return tl::unexpected(written.error());
  }
  const auto running = reload(named);
  if (!running) {
    ::unlink(invitation->file.c_str());
    return tl::unexpected(running.error());
  }
  std::string token = enrol::encodeToken(invitation->token);
  return Made{std::move(*invitation), std::move(token), *running};
}

int invite(const InviteArguments& arguments, const NamedConfig& named) {
  const auto lock = control::lockPeerFiles(named.file);
  if (!lock) return refuse(arguments.json, lock.error());
  const auto outcome = checkConfig(named.file, Warnings::LeftToDaemon);
  if (!outcome) return kFailure;
  auto made = make(arguments, named, *outcome->config);
  return made ? report(arguments, named, *made) : refuse(arguments.json, made.error());
}

int revoke(const InviteArguments& arguments, const NamedConfig& named) {
  const auto lock = control::lockPeerFiles(named.file);
  if (!lock) return refuse(arguments.json, lock.error());
  const auto outcome = checkConfig(named.file, Warnings::LeftToDaemon);
  if (!outcome) return kFailure;
  const auto revoked = revokeInvitation(named, *outcome->config, arguments.revoke);
  if (!revoked) return refuse(arguments.json, revoked.error());
  if (const auto running = reload(named); !running) return refuse(arguments.json, running.error());
  return print(arguments.json
                   ? Json{{"ok", true}}.dump(2) + '\n'
                   : fmt::format("the invitation of {} is withdrawn\n", arguments.revoke));
}

std::string stateOf(const config::InvitationConfig& invitation) {
  if (invitation.bound) return "joined";
  return invitation.expires > now() ? "open" : "expired";
}

int list(const InviteArguments& arguments, const NamedConfig& named) {
  const auto outcome = checkConfig(named.file, Warnings::LeftToDaemon);
  if (!outcome) return kFailure;
  Json all = Json::array();
  std::vector<Row> rows{{"NAME", "STATE", "UNTIL", "ADDRESSES", "MAPS"}};
  for (const config::InvitationConfig& invitation : outcome->config->invitations) {
    const std::string until = config::formatUtcTime(invitation.expires);
    const std::string maps = grantsText(invitation.allowMaps, invitation.allowThirdParty);
    rows.push_back({invitation.name, stateOf(invitation), until, addressText(invitation), maps});
    all.push_back({{"name", invitation.name},
                   {"state", stateOf(invitation)},
                   {"expires", until},
                   {"addresses", addressText(invitation)},
                   {"maps", maps}});
  }
  if (arguments.json) return print(all.dump(2) + '\n');
  if (rows.size() == 1) return print(fmt::format("{} has no invitations\n", named.interface));
  return print(table(rows));
}

int run(const InviteArguments& arguments) {
  if (::geteuid() != 0) return complain("invite needs root: run it with sudo");
  const auto named = chosenInterface(arguments.interface).and_then(configOf);
  if (!named) return complain(named.error());
  if (arguments.list) return list(arguments, *named);
  if (!arguments.revoke.empty()) return revoke(arguments, *named);
  if (arguments.name.empty()) {
    return complain("whom to invite? Give the other machine a name: `adit invite nas`");
  }
  return invite(arguments, *named);
}

}  // namespace

void addInviteCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<InviteArguments>();
  CLI::App* sub = app.add_subcommand("invite", "Make a token with which one machine can join");
  sub->add_option("NAME", arguments->name, "what the other machine will be called, as in nas");
  sub->add_option("--maps", arguments->maps,
                  "public ports that it may ask for: PROTO/PORT[-PORT], …; also third-party")
      ->allow_extra_args(false);
  sub->add_option("--expires", arguments->expires, "how long the token works; 24h by default");
  sub->add_option("--endpoint", arguments->endpoints,
                  "HOST[:PORT] of this server, in place of the file's PublicEndpoint; may be "
                  "repeated")
      ->allow_extra_args(false);
  sub->add_option("--interface", arguments->interface,
                  "an interface or its file; needed where there are several");
  CLI::Option* list = sub->add_flag("--list", arguments->list, "list the invitations");
  sub->add_option("--revoke", arguments->revoke, "withdraw the open invitation of that name")
      ->excludes(list);
  sub->add_flag("--qr", arguments->qr, "the token as a QR code too");
  sub->add_flag("--json", arguments->json, "one JSON object, with --list an array");
  sub->footer(
      "Writes NAME.d/peer-PEER.conf beside the interface's file and reloads it. Nothing but the\n"
      "token's public half is kept here, so a lost token cannot be shown again.\n"
      "Examples:\n"
      "  adit invite nas --maps tcp/8000-9000,udp/51413\n"
      "  adit invite --list\n"
      "  adit invite --revoke nas");
  sub->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace adit::cli
