// show and showconf: what wg(8) prints, from the daemons' answers.
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "control/control_client.hpp"
#include "control/wg_format.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;
using control::DeviceView;

struct ShowArguments {
  std::string target;
  std::string field;
  bool json = false;
};

Result<DeviceView> fetch(const std::string& interface, bool keys) {
  return ControlClient::connect(interface).and_then(
      [&](ControlClient client) { return client.show(keys); });
}

Result<std::string> describe(const std::string& interface, const std::string& field,
                             bool withInterface) {
  const bool keys = field.empty() ? !hidesKeys() : control::fieldShowsKeys(field);
  const auto view = fetch(interface, keys);
  if (!view) return tl::unexpected(view.error());
  if (!field.empty()) return control::formatField(*view, field, withInterface);
  return control::formatPretty(*view, {.color = wantsColor(),
                                       .hideKeys = hidesKeys(),
                                       .now = std::chrono::seconds(std::time(nullptr))});
}

int showInterfaces() {
  const auto names = control::runningInterfaces();
  if (!names) return complain(names.error());
  if (names->empty()) return kSuccess;
  return print(fmt::format("{}\n", fmt::join(*names, " ")));
}

int showEvery(const std::string& field) {
  const auto names = control::runningInterfaces();
  if (!names) return complain(names.error());
  int status = kSuccess;
  bool first = true;
  for (const std::string& name : *names) {
    const auto text = describe(name, field, true);
    if (!text) {
      status = complain(text.error());
      continue;
    }
    const bool separated = !first && field.empty();
    first = false;
    if (print((separated ? "\n" : "") + *text) != kSuccess) return kFailure;
  }
  return status;
}

Result<nlohmann::ordered_json> fetchJson(const std::string& interface) {
  return ControlClient::connect(interface).and_then(
      [](ControlClient client) { return client.status(); });
}

int showJson(const ShowArguments& arguments) {
  if (!arguments.field.empty()) return complain("--json gives all fields; leave the field out");
  if (!arguments.target.empty() && arguments.target != "all") {
    const auto device = fetchJson(arguments.target);
    return device ? print(device->dump(2) + '\n') : complain(device.error());
  }
  const auto names = control::runningInterfaces();
  if (!names) return complain(names.error());
  auto devices = nlohmann::ordered_json::array();
  int status = kSuccess;
  for (const std::string& name : *names) {
    if (auto device = fetchJson(name)) {
      devices.push_back(std::move(*device));
    } else {
      status = complain(device.error());
    }
  }
  return print(devices.dump(2) + '\n') == kSuccess ? status : kFailure;
}

int show(const ShowArguments& arguments) {
  if (arguments.target == "interfaces") {
    if (!arguments.field.empty()) return complain("`show interfaces` takes no field");
    return showInterfaces();
  }
  if (arguments.json) return showJson(arguments);
  if (arguments.target.empty() || arguments.target == "all") return showEvery(arguments.field);
  const auto text = describe(arguments.target, arguments.field, false);
  return text ? print(*text) : complain(text.error());
}

int showConf(const std::string& interface) {
  const auto view = fetch(interface, true);
  return view ? print(control::formatConf(*view)) : complain(view.error());
}

}  // namespace

int showAll() {
  return showEvery({});
}

void addShowCommands(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ShowArguments>();
  CLI::App* showCommand = app.add_subcommand("show", "Show interfaces, as wg(8) does");
  showCommand->add_option("INTERFACE", arguments->target,
                          "an interface, `all` (the default), or `interfaces` for their names");
  showCommand->add_option(
      "FIELD", arguments->field,
      "public-key, private-key, listen-port, fwmark, peers, preshared-keys, endpoints, "
      "allowed-ips, latest-handshakes, transfer, persistent-keepalive or dump; for scripts, in "
      "wg(8)'s formats. With `all` each line starts with the interface");
  showCommand->add_flag("--json", arguments->json,
                        "one JSON object (with `all` an array of them); never with keys");
  showCommand->footer(
      "Environment: WG_COLOR_MODE=always|never|auto, WG_HIDE_KEYS=never|always (or ADIT_...).\n"
      "Examples:\n"
      "  adit show\n"
      "  adit show adit0 latest-handshakes\n"
      "  adit show all dump");
  showCommand->callback(
      [&action, arguments] { action = [arguments] { return show(*arguments); }; });

  const auto interface = std::make_shared<std::string>();
  CLI::App* confCommand = app.add_subcommand(
      "showconf", "Print the running state as a file for setconf, private keys included");
  confCommand->add_option("INTERFACE", *interface, "an interface that is up")->required();
  confCommand->footer("Example:\n  umask 077; adit showconf adit0 > adit0.wg");
  confCommand->callback(
      [&action, interface] { action = [interface] { return showConf(*interface); }; });
}

}  // namespace adit::cli
