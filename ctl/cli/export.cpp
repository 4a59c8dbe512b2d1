// export: a device that has no adit, such as a phone, becomes a peer.
#include <memory>

#include "cli/client_file.hpp"
#include "cli/commands.hpp"
#include "cli/drop_in.hpp"
#include "cli/invite_file.hpp"
#include "cli/output.hpp"
#include "cli/peer_file.hpp"
#include "cli/qr.hpp"
#include "cli/server.hpp"
#include "config/values.hpp"
#include "config/writer.hpp"
#include "control/device_enrol_file.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

constexpr mode_t kFileMode = 0600;

struct ExportArguments {
  std::string peer;
  std::string interface;
  std::string endpoint;
  std::string allowedIps;
  std::string output;
  bool rotate = false;
  bool qr = false;
};

/// The peer as it will be, and what its file in NAME.d is to be.
struct Device {
  config::PeerConfig peer;
  crypto::PrivateKey privateKey;
  std::filesystem::path file;
  std::string fileText;
};

std::string section(const config::PeerConfig& peer) {
  return config::writeSection(config::Section::Peer, {.peer = &peer});
}

void giveKeys(Device& device) {
  device.peer.publicKey = device.privateKey.publicKey();
  device.peer.presharedKeyFile.clear();
  crypto::SystemRandom().fill(device.peer.presharedKey.emplace().bytes());
}

Result<Device> newDevice(const std::string& name, const Server& server) {
  const auto valid = config::parsePeerName(name);
  if (!valid) return fail("{}: {}", config::shown(name), valid.error().message);
  const auto file = control::peerFile(server.named.file, name);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    return fail("{} is invited: `adit peer remove {}` withdraws that", name, name);
  }
  const auto addresses = freeAddresses(server.config);
  if (!addresses) return tl::unexpected(addresses.error());
  Device device{{}, crypto::PrivateKey::generate(), file, {}};
  device.peer.name = name;
  for (const InterfaceAddress& address : *addresses) {
    device.peer.allowedIps.emplace_back(address.address, address.address.bits());
  }
  giveKeys(device);
  device.fileText = "# Written by `adit export`.\n" + section(device.peer);
  return device;
}

/// `peer` with new keys, in the file of NAME.d that it stands in.
Result<Device> sameDevice(const config::PeerConfig& peer, const std::filesystem::path& config) {
  const auto place = placeOf(peer.location, labelOf(peer), config);
  if (!place) return tl::unexpected(place.error());
  Device device{peer, crypto::PrivateKey::generate(), place->file.path(), {}};
  giveKeys(device);
  device.fileText = withSection(place->text, place->lines, section(device.peer));
  return device;
}

Result<Device> deviceOf(const ExportArguments& arguments, const Server& server) {
  const auto known = peerCalled(server.config, arguments.peer);
  if (!known && !arguments.rotate) return newDevice(arguments.peer, server);
  if (!known) return tl::unexpected(known.error());
  if (arguments.rotate) return sameDevice(*known, server.named.file);
  return fail(
      "{0} is a peer already, and its private key is on the device alone; `adit export {0} "
      "--rotate` gives it new keys, and what it has now stops working",
      arguments.peer);
}

/// What the device sends through the tunnel: the tunnel's own networks unless told otherwise.
Result<std::vector<Prefix>> routesOf(const std::string& text, const config::Config& config) {
  std::vector<Prefix> routes;
  if (text.empty()) {
    for (const InterfaceAddress& address : config.interface.addresses) {
      routes.push_back(address.prefix());
    }
    return routes;
  }
  std::vector<config::ValueError> errors;
  for (const config::Item& item : config::splitList(text, config::Separator::Comma, errors)) {
    const auto prefix = Prefix::parse(item.text);
    if (!prefix) return wrapError(prefix.error(), "--allowed-ips");
    routes.push_back(*prefix);
  }
  if (!errors.empty()) return fail("--allowed-ips: {}", errors.front().message);
  return routes;
}

Result<std::string> fileFor(const ExportArguments& arguments, const Server& server,
                            const Device& device) {
  const auto key = server.publicKey();
  if (!key) return tl::unexpected(key.error());
  const auto endpoint = server.endpoint(arguments.endpoint);
  if (!endpoint) return tl::unexpected(endpoint.error());
  const auto routes = routesOf(arguments.allowedIps, server.config);
  if (!routes) return tl::unexpected(routes.error());
  return clientText({device.privateKey, device.peer.allowedIps, *key, *device.peer.presharedKey,
                     *endpoint, *routes});
}

int show(const ExportArguments& arguments, const std::string& text) {
  if (!arguments.qr) {
    return arguments.output.empty() ? print(text)
                                    : print(fmt::format("{}: written\n", arguments.output));
  }
  const auto code = qrText(text, wantsColor());
  return code ? print(*code) : complain(code.error());
}

/// The device's own file first: no peer is added whose file cannot be had.
Result<std::vector<std::string>> added(const ExportArguments& arguments, const Server& server,
                                       const Device& device, const std::string& text) {
  if (!arguments.output.empty()) {
    const auto made = createFile(arguments.output, text, kFileMode);
    if (!made) return tl::unexpected(made.error());
  }
  DropIn file(server.named.file, device.file.filename().string());
  const auto written = file.write(device.fileText);
  auto notes = written ? applied(server.named.interface, {&file}) : tl::unexpected(written.error());
  std::error_code ignored;
  if (!notes && !arguments.output.empty()) std::filesystem::remove(arguments.output, ignored);
  return notes;
}

int exportPeer(const ExportArguments& arguments) {
  const auto server = Server::find(arguments.interface);
  if (!server) return complain(server.error());
  const auto lock = control::lockPeerFiles(server->named.file);
  if (!lock) return complain(lock.error());
  const auto device = deviceOf(arguments, *server);
  if (!device) return complain(device.error());
  const auto text = fileFor(arguments, *server, *device);
  if (!text) return complain(text.error());
  const auto notes = added(arguments, *server, *device, *text);
  if (!notes) return complain(notes.error());
  for (const std::string& note : *notes) {
    remark(note);
  }
  if (arguments.output.empty()) warnOfReadableOutput();
  return show(arguments, *text);
}

}  // namespace

void addExportCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* sub =
      app.add_subcommand("export", "Add a phone or laptop and print its WireGuard file");
  sub->add_option("PEER", arguments->peer, "a name for it")->required();
  sub->add_option("--interface", arguments->interface,
                  "the server's interface; needed where there are several");
  sub->add_option("--endpoint", arguments->endpoint,
                  "HOST[:PORT] where the device reaches this server");
  sub->add_option("--allowed-ips", arguments->allowedIps,
                  "what the device sends through the tunnel; without it, the tunnel's networks");
  sub->add_flag("--qr", arguments->qr, "a QR code for WireGuard's app in place of the text");
  sub->add_option("--output", arguments->output, "a file to make, of mode 0600");
  sub->add_flag("--rotate", arguments->rotate, "new keys for a device that is a peer already");
  sub->footer(
      "The device gets a free address and fresh keys. This server keeps the public and the "
      "preshared key, in NAME.d/peer-PEER.conf; the private key is in what is printed and nowhere "
      "else, "
      "so it cannot be printed again.\n"
      "Examples:\n"
      "  adit export phone --qr\n"
      "  adit export laptop --output laptop.conf\n"
      "  adit export phone --rotate --qr");
  sub->callback([&action, arguments] { action = [arguments] { return exportPeer(*arguments); }; });
}

}  // namespace adit::cli
