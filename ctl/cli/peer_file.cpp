#include "cli/peer_file.hpp"

#include <algorithm>
#include <memory>

#include "config/lexer.hpp"
#include "config/parser.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

using config::Line;
using config::LineKind;

std::vector<Line> linesOf(std::string_view text) {
  config::Diagnostics ignored;
  return config::lex(text, std::make_shared<const std::string>(), ignored);
}

}  // namespace

SectionLines sectionAt(std::string_view text, unsigned header) {
  SectionLines lines{header, header};
  for (const Line& line : linesOf(text)) {
    if (line.number <= header) continue;
    if (line.kind == LineKind::Header) break;
    if (line.kind != LineKind::Blank) lines.last = line.number;
  }
  return lines;
}

std::string withoutSection(std::string_view text, const SectionLines& lines) {
  std::string rest = withSection(text, lines, "");
  const auto all = linesOf(rest);
  const bool empty =
      std::ranges::all_of(all, [](const Line& line) { return line.kind == LineKind::Blank; });
  return empty ? std::string() : rest;
}

std::string withSection(std::string_view text, const SectionLines& lines,
                        std::string_view section) {
  std::string result;
  for (const Line& line : linesOf(text)) {
    if (line.number == lines.first) result += section;
    if (line.number >= lines.first && line.number <= lines.last) continue;
    result += line.raw;
    result += '\n';
  }
  return result;
}

Result<config::PeerConfig> peerCalled(const config::Config& config, const std::string& name) {
  const auto isIt = [&](const config::PeerConfig& peer) {
    return config::equalIgnoringCase(peer.name, name) || peer.publicKey.toBase64() == name;
  };
  const auto found = std::ranges::find_if(config.peers, isIt);
  if (found == config.peers.end()) {
    return fail("there is no peer {}; `adit peer list` shows all",
                config::shown(name, "like this"));
  }
  return *found;
}

std::string labelOf(const config::PeerConfig& peer) {
  return peer.name.empty() ? peer.publicKey.toBase64() : peer.name;
}

Result<PeerPlace> placeOf(const config::Location& location, const std::string& name,
                          const std::filesystem::path& config) {
  const std::filesystem::path path(*location.file);
  const auto text = adit::readFile(path);
  if (!text) return tl::unexpected(text.error());
  const SectionLines lines = sectionAt(*text, location.line);
  if (path.parent_path() != config::dropInFolder(config)) {
    return fail(
        "{} stands in {}, lines {} to {}, which is your own file: edit it, and run `adit reload "
        "{}`",
        name, path.string(), lines.first, lines.last, path.stem().string());
  }
  return PeerPlace{DropIn(config, path.filename().string()), *text, lines};
}

bool leadsTo(const config::MapConfig& map, const config::PeerConfig& peer) {
  if (!peer.name.empty() && config::equalIgnoringCase(map.targetHost, peer.name)) return true;
  return std::ranges::any_of(map.targets, [&](const IpAddress& target) {
    return std::ranges::find(peer.allowedIps, Prefix(target, target.bits())) !=
           peer.allowedIps.end();
  });
}

}  // namespace adit::cli
