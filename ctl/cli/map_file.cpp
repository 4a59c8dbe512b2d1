#include "cli/map_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "config/mapping_text.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "config/writer.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileName = "maps.conf";
constexpr std::string_view kHeader =
    "# Written by `adit map`, which keeps nothing else here: your own go into NAME.conf.\n";
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

std::string joined(const std::vector<config::Diagnostic>& diagnostics) {
  std::string text;
  for (const config::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == config::Severity::Error) {
      text += (text.empty() ? "" : "\n") + diagnostic.toString();
    }
  }
  return text;
}

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

Result<std::string> contentOf(const fs::path& path) {
  auto content = readFile(path);
  if (!content && content.error().code == ENOENT) return std::string();
  return content;
}

bool isIn(const fs::path& path, const config::Location& location) {
  return location.file && *location.file == path.string();
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

std::string written(const fs::path& path, const std::vector<config::MapConfig>& maps,
                    const config::MapConfig* without) {
  std::string text;
  for (const config::MapConfig& map : maps) {
    if (&map != without && isIn(path, map.location)) {
      text += '\n' + config::writeSection(config::Section::Map, {.map = &map});
    }
  }
  return text.empty() ? text : std::string(kHeader) + text;
}

}  // namespace

MapFile::MapFile(const control::NamedConfig& config)
    : config_(config.file), path_(config::dropInFolder(config.file) / kFileName) {}

Result<void> MapFile::add(const MapText& map) {
  const auto section = sectionOf(map);
  if (!section) return tl::unexpected(section.error());
  auto before = contentOf(path_);
  if (!before) return tl::unexpected(before.error());
  before_ = std::move(*before);
  const std::string after = before_ + *section;
  const config::Outcome outcome = config::loadWith(config_, path_, after);
  if (!outcome.ok()) return fail("{}", joined(outcome.diagnostics));
  return write(written(path_, outcome.config->maps, nullptr));
}

Result<void> MapFile::remove(const std::string& listen) {
  const auto wanted = canonicalListen(listen);
  if (!wanted) return tl::unexpected(wanted.error());
  auto before = contentOf(path_);
  if (!before) return tl::unexpected(before.error());
  before_ = std::move(*before);
  const config::Outcome outcome = config::load(config_);
  if (!outcome.ok()) return fail("{}", joined(outcome.diagnostics));
  const auto& maps = outcome.config->maps;
  const auto found = std::ranges::find(maps, *wanted, config::listenText);
  if (found == maps.end()) {
    return fail("there is no mapping {}; `adit map list` shows all", *wanted);
  }
  if (!isIn(path_, found->location)) {
    return fail("{} stands in {}:{}; remove it there, and run `adit reload`", *wanted,
                *found->location.file, found->location.line);
  }
  return write(written(path_, maps, &*found));
}

Result<void> MapFile::restore() {
  return write(std::move(before_));
}

Result<void> MapFile::write(std::string content) {
  const fs::path folder = path_.parent_path();
  if (::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return failErrno(errno, "{}", folder.string());
  }
  if (!content.empty()) return replaceFile(path_, content, kFileMode, Durability::PowerCut);
  std::error_code error;
  fs::remove(path_, error);
  return error ? Result<void>(failErrno(error.value(), "{}", path_.string())) : Result<void>{};
}

}  // namespace adit::cli
