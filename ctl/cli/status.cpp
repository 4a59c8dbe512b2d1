// status: how the interface does, for a person or as one JSON object.
#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/status_text.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"
#include "control/wg_format.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;
using Json = nlohmann::ordered_json;

struct StatusArguments {
  std::string name;
  bool json = false;
};

/// Seconds since each peer's latest handshake, null for never. A clock that was set back since
/// gives 0.
void addAges(Json& device, std::int64_t now) {
  if (!device.contains("peers") || !device["peers"].is_array()) return;
  for (Json& peer : device["peers"]) {
    if (!peer.is_object()) continue;
    const auto latest = peer.find("latest_handshake");
    const bool known = latest != peer.end() && latest->is_number_integer();
    const std::int64_t then = known ? latest->get<std::int64_t>() : 0;
    peer["latest_handshake_age"] = then > 0 ? Json(std::max<std::int64_t>(now - then, 0)) : Json();
  }
}

Result<Json> fetchJson(const std::string& interface) {
  auto device = ControlClient::connect(interface).and_then(
      [](ControlClient client) { return client.status(); });
  if (device) addAges(*device, std::time(nullptr));
  return device;
}

Result<std::string> describe(const std::string& interface, bool json) {
  const auto device = fetchJson(interface);
  if (!device) return tl::unexpected(device.error());
  if (json) return device->dump(2) + '\n';
  return control::viewFromJson(*device).map([](const control::DeviceView& view) {
    return formatStatus(view, std::chrono::seconds(std::time(nullptr)), wantsColor());
  });
}

int listAsJson(const std::vector<std::string>& names) {
  Json devices = Json::array();
  int exitStatus = kSuccess;
  for (const std::string& name : names) {
    if (auto device = fetchJson(name)) {
      devices.push_back(std::move(*device));
    } else {
      exitStatus = complain(device.error());
    }
  }
  return print(devices.dump(2) + '\n') == kSuccess ? exitStatus : kFailure;
}

int status(const StatusArguments& arguments) {
  std::vector<std::string> names;
  if (!arguments.name.empty()) {
    const auto named = control::resolveConfigName(arguments.name);
    if (!named) return complain(named.error());
    names.push_back(named->interface);
  } else {
    auto running = control::runningInterfaces();
    if (!running) return complain(running.error());
    names = std::move(*running);
  }
  if (arguments.json && arguments.name.empty()) return listAsJson(names);
  if (names.empty()) return complain("no interface is up; start one with `adit up NAME`");
  int exitStatus = kSuccess;
  for (const std::string& name : names) {
    const auto text = describe(name, arguments.json);
    if (!text) {
      exitStatus = complain(text.error());
    } else if (print((&name != &names.front() ? "\n" : "") + *text) != kSuccess) {
      return kFailure;
    }
  }
  return exitStatus;
}

}  // namespace

void addStatusCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<StatusArguments>();
  CLI::App* sub = app.add_subcommand(
      "status", "Tell how an interface does: data plane and why, cipher, mappings, warnings");
  sub->add_option("NAME", arguments->name, "an interface or its file; without it, every interface");
  sub->add_flag(
      "--json", arguments->json,
      "one JSON object, or an array of them without NAME; times are seconds, rates bytes, "
      "ages are never negative");
  sub->footer(
      "Exit status 1 when the interface is not up.\n"
      "Examples:\n"
      "  adit status\n"
      "  adit status adit0 --json | jq .backend");
  sub->callback([&action, arguments] { action = [arguments] { return status(*arguments); }; });
}

}  // namespace adit::cli
