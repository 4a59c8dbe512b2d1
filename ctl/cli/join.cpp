// join: from a token to a tunnel that is up.
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "cli/init_network.hpp"
#include "cli/join_file.hpp"
#include "cli/join_network.hpp"
#include "cli/lifecycle.hpp"
#include "cli/onboarding.hpp"
#include "cli/output.hpp"
#include "config/values.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"
#include "enrol/token.hpp"
#include "util/clock.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;
using control::NamedConfig;
using enrol::Verdict;
using namespace std::chrono_literals;

/// For the first handshake of the finished tunnel.
constexpr auto kHandshakePatience = 15s;

struct JoinArguments {
  std::string token;
  std::string name = "adit0";
  unsigned seconds = 30;
  bool leaveDown = false;
};

std::chrono::seconds now() {
  return std::chrono::floor<std::chrono::seconds>(SystemClock().realTime());
}

/// All that comes, where it is not typed; a token may be broken into lines.
std::string readToken() {
  constexpr std::size_t kEnough = 8192;
  std::string text;
  if (::isatty(STDIN_FILENO) == 1) {
    remark("paste the token, then press Enter");
    std::getline(std::cin, text);
    return text;
  }
  text.reserve(kEnough);
  for (int c = std::getchar(); c != EOF && text.size() < kEnough; c = std::getchar()) {
    text += static_cast<char>(c);
  }
  return text;
}

/// The text of the argument, or for "-" of standard input, where no shell keeps it.
Result<enrol::Token> tokenOf(std::string& argument) {
  std::string text = argument == "-" ? readToken() : argument;
  auto token = enrol::decodeToken(text);
  sodium_memzero(text.data(), text.size());
  sodium_memzero(argument.data(), argument.size());
  return token;
}

Result<void> checkExpiry(const enrol::Token& token) {
  if (now() < token.expires) return {};
  return fail(
      "the token has expired, at {} (this machine's clock says {}); ask for a new one: `adit "
      "invite {}` on the server",
      config::formatUtcTime(token.expires), config::formatUtcTime(now()), token.name);
}

/// Why the server does not let this machine in.
std::string refusalText(Verdict verdict, const enrol::Token& token) {
  switch (verdict) {
    case Verdict::Taken:
      return fmt::format(
          "the token has been used already, by another machine: if that was not you, remove the "
          "peer {} on the server; for this machine ask for a new token, by another name",
          token.name);
    case Verdict::Expired:
      return fmt::format("the token has expired; ask for a new one: `adit invite {}` on the server",
                         token.name);
    case Verdict::Withdrawn:
      return fmt::format(
          "the invitation was withdrawn; ask for a new one: `adit invite {}` on the "
          "server",
          token.name);
    case Verdict::Accepted:
    case Verdict::NotNow:
      break;
  }
  return "the server's answer makes no sense";
}

/// Waits for the first handshake of an interface that is up.
bool hasHandshake(const std::string& interface) {
  const auto until = std::chrono::steady_clock::now() + kHandshakePatience;
  while (std::chrono::steady_clock::now() < until) {
    const auto view = ControlClient::connect(interface).and_then(
        [](ControlClient client) { return client.show(false); });
    if (view && !view->device.peers.empty() && view->device.peers.front().lastHandshake != 0ns) {
      return true;
    }
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

/// The command that opens a port, with one that the server grants.
std::string nextStep(const std::string& interface, const enrol::Answer& answer) {
  const std::string grants = grantsText(answer.grants, answer.thirdParty);
  const auto tcp = std::ranges::find(answer.grants, true, &enrol::Grant::tcp);
  const std::string address = answer.addresses.front().address.toString();
  if (answer.grants.empty()) {
    return fmt::format(
        "The server grants this machine no ports of its own choice: its owner maps them there, "
        "with `adit map add`.\n");
  }
  const bool udpOnly = tcp == answer.grants.end();
  return fmt::format(
      "Ports of the server that this machine may ask for: {}.\n"
      "Next, here, for a service on this machine's port {}:\n"
      "  adit map add {} {}/{} {}:{}\n",
      grants, udpOnly ? answer.grants.front().first : 80, interface, udpOnly ? "udp" : "tcp",
      udpOnly ? answer.grants.front().first : tcp->first,
      answer.addresses.front().address.isV6() ? "[" + address + "]" : address,
      udpOnly ? answer.grants.front().first : 80);
}

int bringJoinedUp(const NamedConfig& named, const std::string& argument, const Joined& joined) {
  remark(fmt::format("bringing {} up …", named.interface));
  if (bringUp(argument) != kSuccess) {
    return complain(
        fmt::format("{} is written; `adit up {}` tries again", named.file.string(), argument));
  }
  if (!hasHandshake(named.interface)) {
    return complain(fmt::format(
        "{} is up, but the server has not answered within {} s; `adit doctor {}` looks for the "
        "reason",
        named.interface, kHandshakePatience.count(), named.interface));
  }
  return print(fmt::format("{} is up and the server answers.\n{}", named.interface,
                           nextStep(named.interface, joined.answer)));
}

/// A server must not take over networks of this machine by the addresses that it gives out.
Result<void> checkAnswer(const enrol::Answer& answer) {
  auto routing = netlink::RouteSocket::open();
  if (!routing) return tl::unexpected(routing.error());
  return checkOffered(**routing, answer.addresses);
}

int finish(const JoinArguments& arguments, const NamedConfig& named, const enrol::Token& token,
           JoinKeyFile& keyFile, const Joined& joined) {
  if (auto checked = checkAnswer(joined.answer); !checked) {
    keyFile.remove();
    return complain(fmt::format(
        "{}; with another Address there, its owner runs `adit peer remove {}` and invites again",
        checked.error().message, token.name));
  }
  if (auto written = writeJoinedConfig(named.file, token, keyFile.key(), joined); !written) {
    return complain(written.error());
  }
  keyFile.remove();
  std::vector<std::string> addresses;
  for (const InterfaceAddress& address : joined.answer.addresses) {
    addresses.push_back(address.address.toString());
  }
  const int printed = print(
      fmt::format("{} is written: this machine is {} in the tunnel; the server calls it {}.\n",
                  named.file.string(), fmt::join(addresses, " and "), token.name));
  if (printed != kSuccess) return printed;
  if (arguments.leaveDown) {
    return print(fmt::format("Next: adit up {}\n", arguments.name));
  }
  return bringJoinedUp(named, arguments.name, joined);
}

int join(JoinArguments& arguments) {
  const auto named = control::resolveConfigName(arguments.name);
  if (!named) return complain(named.error());
  const auto token = tokenOf(arguments.token);
  if (!token) return complain(token.error());
  if (::geteuid() != 0) return complain("join needs root: run it with sudo");
  if (const auto valid = checkExpiry(*token); !valid) return complain(valid.error());
  std::error_code ignored;
  if (std::filesystem::exists(named->file, ignored)) {
    return complain(fmt::format(
        "{} exists already and stays as it is; --name, as in `adit join --name adit1 …`, makes "
        "another interface",
        named->file.string()));
  }
  auto keyFile = JoinKeyFile::open(named->file, *token);
  if (!keyFile) return complain(keyFile.error());
  const auto joined = askToJoin(
      *token, *keyFile,
      {std::chrono::seconds(arguments.seconds), [](const std::string& text) { remark(text); }});
  if (!joined) return complain(joined.error());
  if (joined->answer.verdict != Verdict::Accepted) {
    // No later try with this key can do better.
    keyFile->remove();
    return complain(refusalText(joined->answer.verdict, *token));
  }
  return finish(arguments, *named, *token, *keyFile, *joined);
}

}  // namespace

void addJoinCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<JoinArguments>();
  CLI::App* sub = app.add_subcommand("join", "Join a server with the token of its `adit invite`");
  sub->add_option("TOKEN", arguments->token,
                  "the token, or - to read it from standard input, where no shell keeps it")
      ->required();
  sub->add_option("--name", arguments->name, "the interface, adit0 by default");
  sub->add_option("--timeout", arguments->seconds, "seconds to try; 30 by default")
      ->check(CLI::Range(1U, 3600U));
  sub->add_flag("--no-up", arguments->leaveDown, "write the file, and leave the interface down");
  sub->footer(
      "Makes the private key on this machine, agrees with the server over its tunnel port, writes\n"
      "/etc/adit/NAME.conf and brings it up. A join that was interrupted goes on when it is run\n"
      "again with the same token.\n"
      "Examples:\n"
      "  adit join adit1_…\n"
      "  adit join -");
  sub->callback([&action, arguments] { action = [arguments] { return join(*arguments); }; });
}

}  // namespace adit::cli
