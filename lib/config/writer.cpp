#include "config/writer.hpp"

#include <fmt/format.h>

#include <iterator>

#include "config/schema.hpp"

namespace adit::config {
namespace {

/// The tunnel's own settings, with the keys in place of the files that hold them.
Config withKeysInPlace(const Config& config) {
  Config result = config;
  result.interface.privateKeyFile.clear();
  result.interface.privateKeyCommand.clear();
  for (PeerConfig& peer : result.peers) {
    peer.presharedKeyFile.clear();
  }
  return result;
}

bool isTuned(const TuneConfig& tune) {
  return tune.profile != TuneConfig::Profile::Off || !tune.settings.empty();
}

}  // namespace

std::string writeSection(Section section, const SectionView& view, Dialect dialect) {
  std::string out = fmt::format("[{}]\n", sectionName(section));
  for (const KeySpec& spec : keysOf(section)) {
    if (dialect == Dialect::WireGuard && !spec.wireguard) continue;
    for (const std::string& value : spec.format(view)) {
      fmt::format_to(std::back_inserter(out), "{} = {}\n", spec.name, value);
    }
  }
  return out;
}

std::string write(const Config& config, Dialect dialect) {
  const bool whole = dialect == Dialect::Adit;
  const Config shown = whole ? config : withKeysInPlace(config);
  std::string out = writeSection(Section::Interface, {.interface = &shown.interface}, dialect);
  for (const PeerConfig& peer : shown.peers) {
    out += '\n' + writeSection(Section::Peer, {.peer = &peer}, dialect);
  }
  if (!whole) return out;
  for (const InvitationConfig& invitation : shown.invitations) {
    out += '\n' + writeSection(Section::Invitation, {.invitation = &invitation}, dialect);
  }
  for (const MapConfig& map : shown.maps) {
    out += '\n' + writeSection(Section::Map, {.map = &map}, dialect);
  }
  if (isTuned(shown.tune)) {
    out += '\n' + writeSection(Section::Tune, {.tune = &shown.tune}, dialect);
  }
  return out;
}

}  // namespace adit::config
