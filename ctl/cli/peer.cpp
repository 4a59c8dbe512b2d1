// peer list, remove and rotate.
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/drop_in.hpp"
#include "cli/map_file.hpp"
#include "cli/output.hpp"
#include "cli/peer_file.hpp"
#include "cli/peer_list.hpp"
#include "cli/peer_rotate.hpp"
#include "cli/server.hpp"
#include "config/diagnostics.hpp"
#include "config/mapping_text.hpp"
#include "control/device_enrol_file.hpp"

namespace adit::cli {
namespace {

struct PeerArguments {
  std::string peer;
  std::string interface;
  bool yes = false;
  bool json = false;
};

int list(const PeerArguments& arguments) {
  const auto server = Server::find(arguments.interface);
  if (!server) return complain(server.error());
  const std::vector<PeerRow> rows = peerRows(*server);
  const std::chrono::seconds now(std::time(nullptr));
  return print(arguments.json ? peersAsJson(rows, now).dump(2) + '\n' : peersAsText(rows, now));
}

/// A peer, its invitation, or both: what stands under one name.
struct Removal {
  std::string name;
  std::optional<config::PeerConfig> peer;
  /// Headers of the sections.
  std::vector<config::Location> sections;
  /// The mappings that lead to the peer.
  std::vector<std::string> maps;
};

Result<Removal> removalOf(const config::Config& config, const std::string& name) {
  Removal removal{name, std::nullopt, {}, {}};
  const auto peer = peerCalled(config, name);
  if (peer) {
    removal.peer = *peer;
    removal.name = labelOf(*peer);
    removal.sections.push_back(peer->location);
  }
  for (const config::InvitationConfig& invitation : config.invitations) {
    if (config::equalIgnoringCase(invitation.name, removal.name)) {
      removal.sections.push_back(invitation.location);
    }
  }
  for (const config::MapConfig& map : config.maps) {
    if (peer && leadsTo(map, *peer)) removal.maps.push_back(config::listenText(map));
  }
  if (removal.sections.empty()) return tl::unexpected(peer.error());
  return removal;
}

/// The sections' file in NAME.d without them.
Result<PeerPlace> withoutSections(const Removal& removal, const std::filesystem::path& config) {
  auto place = placeOf(removal.sections.front(), removal.name, config);
  if (!place) return place;
  std::vector<unsigned> headers;
  for (const config::Location& section : removal.sections) {
    if (*section.file != place->file.path().string()) {
      return fail("{} stands in {}:{} too; remove it there first", removal.name, *section.file,
                  section.line);
    }
    headers.push_back(section.line);
  }
  // From below, so that the lines above keep their numbers.
  std::ranges::sort(headers, std::greater{});
  for (const unsigned header : headers) {
    place->text = withoutSection(place->text, sectionAt(place->text, header));
  }
  return place;
}

std::string question(const Removal& removal) {
  return fmt::format("Remove {} {}{}{}?", removal.peer ? "peer" : "the invitation of", removal.name,
                     removal.maps.empty() ? "" : " and its mappings ",
                     fmt::join(removal.maps, ", "));
}

/// Both files, the mappings first: a mapping to a peer that does not exist is an error.
Result<std::vector<std::string>> removed(const Server& server, const Removal& removal,
                                         PeerPlace& place) {
  MapFile maps(server.named);
  const auto taken = removal.peer ? maps.removeThoseTo(*removal.peer) : Result<void>{};
  if (!taken) return tl::unexpected(taken.error());
  if (const auto written = place.file.write(place.text); !written) {
    const auto restored = maps.file().restore();
    return tl::unexpected(restored ? written.error() : restored.error());
  }
  return applied(server.named.interface, {&maps.file(), &place.file});
}

struct RemovalPlan {
  Server server;
  Removal removal;
  PeerPlace place;
};

Result<RemovalPlan> planRemoval(const PeerArguments& arguments) {
  auto server = Server::find(arguments.interface);
  if (!server) return tl::unexpected(server.error());
  auto removal = removalOf(server->config, arguments.peer);
  if (!removal) return tl::unexpected(removal.error());
  auto place = withoutSections(*removal, server->named.file);
  if (!place) return tl::unexpected(place.error());
  return RemovalPlan{std::move(*server), std::move(*removal), std::move(*place)};
}

int remove(const PeerArguments& arguments) {
  auto plan = planRemoval(arguments);
  if (!plan) return refuseChange(arguments.json, plan.error());
  if (!arguments.yes && !confirmed(question(plan->removal))) {
    return refuseChange(arguments.json, Error{"nothing was changed; --yes removes without asking"});
  }
  const auto lock = control::lockPeerFiles(plan->server.named.file);
  if (!lock) return refuseChange(arguments.json, lock.error());
  // Somebody may have joined while the person thought.
  plan = planRemoval(arguments);
  if (!plan) return refuseChange(arguments.json, plan.error());
  const auto notes = removed(plan->server, plan->removal, plan->place);
  return notes ? reportChange(arguments.json, plan->place.file.path(), *notes)
               : refuseChange(arguments.json, notes.error());
}

CLI::App* addCommand(CLI::App& peer, Action& action, const char* name, const char* description,
                     const std::shared_ptr<PeerArguments>& arguments,
                     int (*command)(const PeerArguments&)) {
  CLI::App* sub = peer.add_subcommand(name, description);
  sub->add_option("--interface", arguments->interface,
                  "an interface or its file; needed where there are several");
  sub->add_flag("--json", arguments->json, "as JSON");
  sub->callback([&action, arguments, command] {
    action = [arguments, command] { return command(*arguments); };
  });
  return sub;
}

}  // namespace

void addPeerCommands(CLI::App& app, Action& action) {
  CLI::App* peer = app.add_subcommand("peer", "List, remove and rotate peers");
  peer->require_subcommand(1);
  const auto listing = std::make_shared<PeerArguments>();
  addCommand(*peer, action, "list", "List peers, their addresses, traffic and mappings", listing,
             list)
      ->footer("Example:\n  adit peer list --json | jq '.[].name'");
  const auto removing = std::make_shared<PeerArguments>();
  CLI::App* remove = addCommand(*peer, action, "remove",
                                "Remove a peer, its invitation, and the mappings that lead to it",
                                removing, cli::remove);
  remove->add_option("PEER", removing->peer, "its name or public key")->required();
  remove->add_flag("--yes", removing->yes, "do not ask");
  remove->footer(
      "Only what stands in NAME.d is removed. Of a peer or a mapping in your own file the lines to "
      "delete are named.\n"
      "Example:\n"
      "  adit peer remove phone");
  const auto rotating = std::make_shared<RotateArguments>();
  CLI::App* rotate = peer->add_subcommand("rotate", "Give a session a new preshared key");
  rotate->add_option("PEER", rotating->peer, "its name or public key")->required();
  rotate->add_option("--interface", rotating->interface,
                     "an interface or its file; needed where there are several");
  rotate->add_option("--key", rotating->key, "the key that the other side has made; - for input");
  rotate->footer(
      "In two steps, since both sides need the key: here, which makes it and prints what to do on "
      "the other side, and there, with --key. The session that is up goes on meanwhile. Only the "
      "line with the key is changed, also in your own file. A phone or laptop without adit: `adit "
      "export PEER --rotate`.\n"
      "Examples:\n"
      "  adit peer rotate nas\n"
      "  adit peer rotate server --key -\n"
      "  adit peer rotate server | ssh root@10.77.3.1 adit peer rotate nas --key -");
  rotate->callback([&action, rotating] { action = [rotating] { return rotatePeer(*rotating); }; });
}

}  // namespace adit::cli
