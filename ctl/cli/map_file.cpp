#include "cli/map_file.hpp"

#include <algorithm>

#include "cli/peer_file.hpp"
#include "config/diagnostics.hpp"
#include "config/mapping_text.hpp"
#include "config/values.hpp"
#include "config/writer.hpp"

namespace adit::cli {
namespace {

constexpr std::string_view kFileName = "maps.conf";
constexpr std::string_view kHeader =
    "# Written by `adit map`, which keeps nothing else here: your own go into NAME.conf.\n";

/// One line each: no argument begins another line or a comment.
Result<std::string> sectionOf(const MapText& map) {
  std::string text = "\n[Map]\n";
  Result<void> sound;
  const auto line = [&](std::string_view key, const std::string& value) {
    const bool plain =
        std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != '#'; });
    if (!plain) sound = fail("{}: a value has printable characters, and no #", key);
    if (!value.empty()) text += fmt::format("{} = {}\n", key, value);
  };
  line("Listen", map.listen);
  line("To", map.to);
  line("Source", map.source);
  for (const std::string& network : map.allow) {
    line("Allow", network);
  }
  line("Rate", map.rate);
  line("Hairpin", map.hairpin ? "on" : "");
  line("Override", map.overrideListener ? "yes" : "");
  return sound.map([&] { return text; });
}

/// "18080/tcp" as "tcp/18080".
Result<std::string> canonicalListen(const std::string& text) {
  const auto listen = config::parseListen(text);
  if (!listen) return fail("{}: {}", text, listen.error().message);
  config::MapConfig map;
  map.protocol = listen->match.tcp && listen->match.udp ? config::MapConfig::Protocol::Both
                 : listen->match.tcp                    ? config::MapConfig::Protocol::Tcp
                                                        : config::MapConfig::Protocol::Udp;
  map.listenAddress = listen->address;
  map.firstPort = listen->match.ports.first;
  map.lastPort = listen->match.ports.last;
  return config::listenText(map);
}

tl::unexpected<Error> standsElsewhere(const config::MapConfig& map) {
  return fail("{} stands in {}:{}; remove it there, and run `adit reload`", config::listenText(map),
              *map.location.file, map.location.line);
}

}  // namespace

MapFile::MapFile(const control::NamedConfig& config) : file_(config.file, kFileName) {}

Result<void> MapFile::add(const MapText& map) {
  const auto section = sectionOf(map);
  if (!section) return tl::unexpected(section.error());
  const auto before = file_.content();
  if (!before) return tl::unexpected(before.error());
  const auto after = file_.judge(*before + *section);
  if (!after) return tl::unexpected(after.error());
  return file_.write(written(after->maps, [](const auto&) { return false; }));
}

Result<void> MapFile::remove(const std::string& listen) {
  const auto wanted = canonicalListen(listen);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto config = now();
  if (!config) return tl::unexpected(config.error());
  const auto found = std::ranges::find(config->maps, *wanted, config::listenText);
  if (found == config->maps.end()) {
    return fail("there is no mapping {}; `adit map list` shows all", *wanted);
  }
  if (!isHere(*found)) return standsElsewhere(*found);
  return file_.write(
      written(config->maps, [&](const config::MapConfig& map) { return &map == &*found; }));
}

Result<void> MapFile::removeThoseTo(const config::PeerConfig& peer) {
  const auto config = now();
  if (!config) return tl::unexpected(config.error());
  const auto goes = [&](const config::MapConfig& map) { return leadsTo(map, peer); };
  if (std::ranges::none_of(config->maps, goes)) return {};
  for (const config::MapConfig& map : config->maps) {
    const bool byName = config::equalIgnoringCase(map.targetHost, peer.name);
    if (byName && !isHere(map)) return standsElsewhere(map);
  }
  return file_.write(written(config->maps, goes));
}

bool MapFile::isHere(const config::MapConfig& map) const {
  return map.location.file && *map.location.file == file_.path().string();
}

std::string MapFile::written(const std::vector<config::MapConfig>& maps, const Goes& goes) const {
  std::string text;
  for (const config::MapConfig& map : maps) {
    if (isHere(map) && !goes(map)) {
      text += '\n' + config::writeSection(config::Section::Map, {.map = &map});
    }
  }
  return text.empty() ? text : std::string(kHeader) + text;
}

Result<config::Config> MapFile::now() const {
  const auto content = file_.content();
  return content ? file_.judge(*content) : tl::unexpected(content.error());
}

}  // namespace adit::cli
