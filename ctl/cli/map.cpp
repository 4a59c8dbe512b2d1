// map list, add and del.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/drop_in.hpp"
#include "cli/machine.hpp"
#include "cli/map_check.hpp"
#include "cli/map_file.hpp"
#include "cli/output.hpp"
#include "config/values.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"
#include "control/wg_format.hpp"
#include "nat/foreign_address.hpp"

namespace adit::cli {
namespace {

using control::ControlClient;
using control::MapSnapshot;
using Json = nlohmann::ordered_json;

struct ChangeArguments {
  std::string name;
  MapText map;
  bool json = false;
};

struct ListArguments {
  std::string name;
  bool json = false;
};

/// A mapping on an address that this server does not have would never see a packet. Where the
/// tunnel is down nobody knows yet which it will have.
Result<void> hasAddress(const std::string& name, const std::string& listen) {
  const auto text = config::parseListen(listen);
  const auto machine = text && text->address ? machineOf(name) : tl::unexpected(Error{});
  if (!machine) return {};
  const auto host = nat::hostAddresses(machine->named.interface);
  for (const nat::Mapping& mapping : machine->desired.maps.translated) {
    const auto foreign = host && mapping.listenAddress == text->address
                             ? nat::foreignAddress(mapping, *host)
                             : std::nullopt;
    if (foreign) return fail("{}: {}", listen, *foreign);
  }
  return {};
}

/// As applied(), for a mapping that was added.
Result<std::vector<std::string>> appliedIfOurs(const ChangeArguments& arguments,
                                               const std::string& interface, MapFile& file) {
  if (const auto ours = hasAddress(arguments.name, arguments.map.listen); !ours) {
    if (const auto restored = file.file().restore(); !restored)
      return tl::unexpected(restored.error());
    return tl::unexpected(ours.error());
  }
  return applied(interface, {&file.file()});
}

int change(const ChangeArguments& arguments, bool adds) {
  const auto named = configOf(arguments.name);
  if (!named) return complain(named.error());
  MapFile file(*named);
  const auto changed = adds ? file.add(arguments.map) : file.remove(arguments.map.listen);
  if (!changed) return refuseChange(arguments.json, changed.error());
  const auto notes = adds ? appliedIfOurs(arguments, named->interface, file)
                          : applied(named->interface, {&file.file()});
  return notes ? reportChange(arguments.json, file.file().path(), *notes)
               : refuseChange(arguments.json, notes.error());
}

std::string trafficText(const MapSnapshot& map) {
  if (!map.usage) return "-";
  return fmt::format("{} connections, {} in, {} out", map.usage->connections,
                     control::formatBytes(map.usage->bytesIn),
                     control::formatBytes(map.usage->bytesOut));
}

std::string formatTable(const std::vector<MapSnapshot>& maps) {
  std::vector<std::array<std::string, 5>> rows{{"LISTEN", "TO", "SOURCE", "TRAFFIC", "STATE"}};
  for (const MapSnapshot& map : maps) {
    rows.push_back({map.listen, map.target, map.source, trafficText(map),
                    fmt::format("{}{}{}", map.active ? "active" : "inactive",
                                map.reason.empty() ? "" : ": ", map.reason)});
  }
  std::array<std::size_t, 5> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += row.back() + '\n';
  }
  return text;
}

Result<std::string> listed(const std::string& interface, Json& all) {
  const auto device = ControlClient::connect(interface).and_then(
      [](ControlClient client) { return client.status(); });
  if (!device) return tl::unexpected(device.error());
  for (Json map : device->value("maps", Json::array())) {
    map["interface"] = interface;
    all.push_back(std::move(map));
  }
  return control::viewFromJson(*device).map([&](const control::DeviceView& view) {
    return view.device.maps.empty()
               ? fmt::format("{} has no mappings\n", interface)
               : fmt::format("{}:\n{}", interface, formatTable(view.device.maps));
  });
}

int list(const ListArguments& arguments) {
  std::vector<std::string> names;
  if (arguments.name.empty()) {
    auto running = control::runningInterfaces();
    if (!running) return complain(running.error());
    names = std::move(*running);
  } else {
    const auto named = control::resolveConfigName(arguments.name);
    if (!named) return complain(named.error());
    names.push_back(named->interface);
  }
  Json all = Json::array();
  std::string text;
  for (const std::string& name : names) {
    const auto part = listed(name, all);
    if (!part) return complain(part.error());
    text += *part;
  }
  return print(arguments.json ? all.dump(2) + '\n' : text);
}

void addListCommand(CLI::App& map, Action& action) {
  const auto arguments = std::make_shared<ListArguments>();
  CLI::App* sub = map.add_subcommand("list", "List mappings, their state and what they carried");
  sub->add_option("NAME", arguments->name, "an interface or its file; without it, all that are up");
  sub->add_flag("--json", arguments->json, "one JSON array");
  sub->footer("Example:\n  adit map list adit0");
  sub->callback([&action, arguments] { action = [arguments] { return list(*arguments); }; });
}

void addAddCommand(CLI::App& map, Action& action) {
  const auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* sub = map.add_subcommand("add", "Map a port, at once and for good");
  sub->add_option("NAME", arguments->name, "an interface or its file")->required();
  sub->add_option("LISTEN", arguments->map.listen, "[ADDRESS:]PROTO/PORT[-PORT]")->required();
  sub->add_option("TO", arguments->map.to, "PEER[:PORT] or ADDRESS[:PORT]")->required();
  sub->add_option("--source", arguments->map.source, "preserve or masquerade");
  sub->add_option("--allow", arguments->map.allow, "a client network; may be repeated");
  sub->add_option("--rate", arguments->map.rate, "as in 200mbit, for each direction");
  sub->add_flag("--hairpin", arguments->map.hairpin, "also for the server and the tunnel's side");
  sub->add_flag("--override", arguments->map.overrideListener, "also over a local listener");
  sub->add_flag("--json", arguments->json, "one JSON object");
  sub->footer(
      "Written to NAME.d/maps.conf beside the interface's file, which itself is never changed. On "
      "a\n"
      "NAS, for a service of its own, the server is asked for the port.\n"
      "Examples:\n"
      "  adit map add adit0 tcp/443 nas\n"
      "  adit map add adit0 udp/5000-5009 nas:6000 --source masquerade");
  sub->callback(
      [&action, arguments] { action = [arguments] { return change(*arguments, true); }; });
}

void addDelCommand(CLI::App& map, Action& action) {
  const auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* sub = map.add_subcommand("del", "Remove a mapping that `adit map add` made");
  sub->add_option("NAME", arguments->name, "an interface or its file")->required();
  sub->add_option("LISTEN", arguments->map.listen, "[ADDRESS:]PROTO/PORT[-PORT]")->required();
  sub->add_flag("--json", arguments->json, "one JSON object");
  sub->footer("Example:\n  adit map del adit0 tcp/443");
  sub->callback(
      [&action, arguments] { action = [arguments] { return change(*arguments, false); }; });
}

void addCheckCommand(CLI::App& map, Action& action) {
  const auto arguments = std::make_shared<MapCheckArguments>();
  CLI::App* sub = map.add_subcommand(
      "check", "Try mappings with a stranger's packet, and name what is in the way");
  sub->add_option("NAME", arguments->name, "an interface or its file")->required();
  sub->add_option("LISTEN", arguments->listen, "one mapping; without it, all");
  sub->add_flag(
      "--fix", arguments->fix,
      "let other firewalls (ufw, firewalld, Docker, iptables, nftables) pass what mappings "
      "need, after asking; `adit down` takes it back");
  sub->add_flag("--yes", arguments->yes, "do not ask");
  sub->add_flag("--json", arguments->json, "one JSON object");
  sub->footer(
      "Exit status 1 when a mapping does not work. Whether packets reach this server at all, past\n"
      "the provider's own firewall, can only be tried from outside.\n"
      "Example:\n"
      "  adit map check adit0 --fix");
  sub->callback([&action, arguments] { action = [arguments] { return mapCheck(*arguments); }; });
}

}  // namespace

void addMapCommands(CLI::App& app, Action& action) {
  CLI::App* map = app.add_subcommand("map", "List, add, remove and check mappings");
  map->require_subcommand(1);
  addListCommand(*map, action);
  addAddCommand(*map, action);
  addDelCommand(*map, action);
  addCheckCommand(*map, action);
}

}  // namespace adit::cli
