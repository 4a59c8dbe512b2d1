// set, setconf, addconf and syncconf: changes of a running interface, in wg(8)'s words.
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/diagnostics.hpp"
#include "cli/output.hpp"
#include "cli/sources.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"

namespace adit::cli {
namespace {

using control::ConfMode;
using control::ControlClient;
using control::DeviceChange;

int applyTo(ControlClient& client, const DeviceChange& change) {
  const auto notes = client.set(change);
  if (!notes) return complain(notes.error());
  for (const std::string& note : *notes) {
    remark(note);
  }
  return kSuccess;
}

struct SetArguments {
  std::string interface;
  std::vector<std::string> words;
};

int set(const SetArguments& arguments) {
  std::vector<std::string> remarks;
  const auto change = control::changeFromArguments(arguments.words, machineSources(), remarks);
  if (!change) {
    return complain(change.error().message + " (nothing was changed; see `adit set --help`)");
  }
  for (const std::string& text : remarks) {
    remark(text);
  }
  auto client = ControlClient::connect(arguments.interface);
  return client ? applyTo(*client, *change) : complain(client.error());
}

struct ConfArguments {
  std::string interface;
  std::string file;
};

/// The file's change, whole or as the difference to what runs.
enum class ConfCommand : std::uint8_t { Set, Add, Sync };

int applyConf(const ConfArguments& arguments, ConfCommand command) {
  const auto config = readWireguardFile(arguments.file);
  if (!config) return kFailure;
  auto client = ControlClient::connect(arguments.interface);
  if (!client) return complain(client.error());
  const ConfMode mode = command == ConfCommand::Add ? ConfMode::Add : ConfMode::Set;
  auto change = control::changeFromConfig(*config, mode, machineSources());
  if (!change) return complain(change.error());
  if (command == ConfCommand::Sync) {
    const auto running = client->show(true);
    if (!running) return complain(running.error());
    change = control::differenceTo(*running, std::move(*change));
  }
  return applyTo(*client, *change);
}

void addConfCommand(CLI::App& app, Action& action, const char* name, const char* description,
                    const char* footer, ConfCommand command) {
  const auto arguments = std::make_shared<ConfArguments>();
  CLI::App* sub = app.add_subcommand(name, description);
  sub->add_option("INTERFACE", arguments->interface, "an interface that is up")->required();
  sub->add_option("FILE", arguments->file,
                  "a file with wg(8)'s keys alone: PrivateKey, ListenPort, FwMark; PublicKey, "
                  "PresharedKey, Endpoint, AllowedIPs, PersistentKeepalive")
      ->required();
  sub->footer(footer);
  sub->callback([&action, arguments, command] {
    action = [arguments, command] { return applyConf(*arguments, command); };
  });
}

void addSetCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<SetArguments>();
  CLI::App* sub = app.add_subcommand("set", "Change a running interface and its peers");
  sub->add_option("INTERFACE", arguments->interface, "an interface that is up")->required();
  // Everything after the interface is wg(8)'s grammar, in which "-10.0.0.0/8" is no option.
  sub->prefix_command();
  sub->footer(
      "Then any of:\n"
      "  listen-port PORT              UDP port; 0 for any\n"
      "  fwmark MARK                   mark of outgoing datagrams: off, 1234 or 0x4d2\n"
      "  private-key FILE              the key's file; an empty one takes the key away\n"
      "  peer PUBLIC-KEY               starts a peer; any of these may follow:\n"
      "    remove                      take the peer away\n"
      "    preshared-key FILE          an empty file takes the key away\n"
      "    endpoint HOST:PORT          [ADDRESS]:PORT for IPv6\n"
      "    persistent-keepalive SECS   off or 1 to 65535\n"
      "    allowed-ips PREFIX,...      the new list; +PREFIX adds to it, -PREFIX takes from it\n"
      "The whole change is made, or none of it. The configuration file stays as it is.\n"
      "Examples:\n"
      "  adit set adit0 peer KEY allowed-ips 10.10.0.2/32 endpoint vps.example.net:51820\n"
      "  adit set adit0 peer KEY allowed-ips +192.168.7.0/24,-10.10.0.3/32\n"
      "  adit set adit0 peer KEY remove");
  sub->callback([&action, arguments, sub] {
    arguments->words = sub->remaining();
    const auto& words = arguments->words;
    if (std::ranges::find(words, "--help") != words.end()) throw CLI::CallForHelp();
    if (words.empty()) {
      throw CLI::RequiredError("what to set: listen-port, fwmark, private-key or peer");
    }
    action = [arguments] { return set(*arguments); };
  });
}

}  // namespace

void addSetCommands(CLI::App& app, Action& action) {
  addSetCommand(app, action);
  addConfCommand(app, action, "setconf", "Replace the running configuration by a file's",
                 "Peers that the file does not name are removed. For a whole adit or wg-quick file "
                 "use `adit reload`.\nExample:\n  adit setconf adit0 adit0.wg",
                 ConfCommand::Set);
  addConfCommand(app, action, "addconf", "Add a file's peers and values to what runs",
                 "Example:\n  adit addconf adit0 one-more-peer.wg", ConfCommand::Add);
  addConfCommand(app, action, "syncconf",
                 "As setconf, but what is the same is left alone and its sessions go on",
                 "Example:\n  adit syncconf adit0 <(adit strip adit0)", ConfCommand::Sync);
}

}  // namespace adit::cli
