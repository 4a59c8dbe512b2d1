#include "config/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/lexer.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

constexpr std::string_view kUseReload =
    "this command takes the tunnel's own keys alone; `adit strip NAME` prints these, and "
    "`adit reload NAME` applies a whole file";

/// Keys of other programs' dialects, and what to do instead.
struct Foreign {
  std::string_view name;
  std::string_view advice;
};
constexpr auto kForeign = std::to_array<Foreign>({
    {"Jc", "AmneziaWG's obfuscation is not part of WireGuard; remove the key"},
    {"Jmin", "AmneziaWG's obfuscation is not part of WireGuard; remove the key"},
    {"Jmax", "AmneziaWG's obfuscation is not part of WireGuard; remove the key"},
    {"FriendlyName", "write Name"},
    {"Hostname", "write Endpoint"},
    {"PostDn", "write PostDown"},
    {"DynamicHostname", "host names are looked up again by themselves; remove the key"},
});

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view format) {
  const std::string_view close = closest(name, candidates);
  return close.empty() ? std::string() : fmt::format(fmt::runtime(format), close);
}

/// Where a person finds the value of a key.
std::string sourceOf(std::string_view name) {
  if (name == "PrivateKey") return ", the output of `adit genkey`";
  if (name == "PublicKey") return ", what `adit pubkey` prints on the peer";
  if (name == "PresharedKey") return ", the output of `adit genpsk`";
  return {};
}

class Reader {
 public:
  Reader(Draft& draft, const FileName& file, Dialect dialect, Diagnostics& diagnostics)
      : draft_(draft), file_(file), dialect_(dialect), diagnostics_(diagnostics) {}

  void read(const Line& line) {
    switch (line.kind) {
      case LineKind::Blank:
        break;
      case LineKind::Bad:
        if (keys_ != nullptr) keys_->damaged = true;
        break;
      case LineKind::Header:
        openSection(line);
        break;
      case LineKind::Entry:
        readEntry(line);
        break;
    }
  }

 private:
  [[nodiscard]] Location at(const Line& line, unsigned column) const {
    return {file_, line.number, column};
  }

  void openSection(const Line& line) {
    closeSection();
    sawHeader_ = true;
    if (line.name.empty()) return;
    const Location here = at(line, line.nameColumn);
    const Section* section = findSection(line.name);
    if (section == nullptr) {
      const std::string_view meant = closest(line.name, sectionNames());
      diagnostics_.error(
          here,
          fmt::format("unknown section{}{}", named(line.name, !meant.empty()),
                      meant.empty() ? "; the sections are [Interface], [Peer], [Map] and [Tune]"
                                    : fmt::format("; did you mean [{}]?", meant)));
      section = findSection(meant);
      if (section == nullptr) return;
    }
    const bool known = *section == Section::Interface || *section == Section::Peer;
    if (dialect_ == Dialect::WireGuard && !known) {
      diagnostics_.error(
          here, fmt::format("[{}] does not belong here: {}", sectionName(*section), kUseReload));
      return;
    }
    startSection(*section, here);
  }

  void closeSection() {
    section_.reset();
    keys_ = nullptr;
    peer_ = nullptr;
    invitation_ = nullptr;
    map_ = nullptr;
  }

  void startSection(Section section, const Location& here) {
    section_ = section;
    switch (section) {
      case Section::Interface:
        startOnly(draft_.interfaceKeys, draft_.hasInterface, draft_.interface.location, here);
        break;
      case Section::Tune:
        startOnly(draft_.tuneKeys, draft_.hasTune, draft_.tune.location, here);
        break;
      case Section::Peer:
        peer_ = &draft_.peers.emplace_back();
        peer_->peer.location = here;
        keys_ = &peer_->keys;
        keys_->header = here;
        break;
      case Section::Invitation:
        invitation_ = &draft_.invitations.emplace_back();
        invitation_->invitation.location = here;
        keys_ = &invitation_->keys;
        keys_->header = here;
        break;
      case Section::Map:
        map_ = &draft_.maps.emplace_back();
        map_->map.location = here;
        keys_ = &map_->keys;
        keys_->header = here;
        break;
    }
  }

  /// [Interface] and [Tune] stand once in a file; a file of NAME.d may add keys to them.
  void startOnly(SectionKeys& keys, bool& exists, Location& location, const Location& here) {
    keys_ = &keys;
    if (!exists) {
      exists = true;
      keys.header = here;
      location = here;
    } else if (keys.header.file == here.file) {
      diagnostics_.error(here, fmt::format("[{}] stands already on {}; put its keys there",
                                           sectionName(*section_), reference(keys.header, here)));
    }
  }

  void readEntry(const Line& line) {
    const Location here = at(line, line.nameColumn);
    if (!section_) {
      if (!sawHeader_) {
        sawHeader_ = true;
        diagnostics_.error(here, "a key before the first section; begin with [Interface]");
      }
      return;
    }
    const KeySpec* spec = findKey(*section_, line.name);
    if (spec == nullptr) {
      keys_->damaged = true;
      diagnostics_.error(here, unknownKey(line));
      return;
    }
    if (dialect_ == Dialect::WireGuard && !spec->wireguard) {
      diagnostics_.error(here, fmt::format("{} does not belong here: {}", spec->name, kUseReload));
      return;
    }
    const auto [first, fresh] = keys_->seen.emplace(spec, here);
    if (!fresh && spec->repeat == Repeat::Once) {
      diagnostics_.error(here, fmt::format("{} stands already on {}; it has one value", spec->name,
                                           reference(first->second, here)));
      return;
    }
    if (valueIsSound(*spec, line)) {
      spec->parse({draft_, peer_, invitation_, map_, dialect_, diagnostics_, *spec, line.value,
                   at(line, line.valueColumn)});
    }
  }

  /// What is wrong with a value whatever its key.
  bool valueIsSound(const KeySpec& spec, const Line& line) {
    const Location here = at(line, line.valueColumn);
    if (line.value.empty()) {
      // Generators write empty hooks; they do nothing.
      if (spec.text != Text::Hook) {
        const bool required = spec.fallback.starts_with("required");
        diagnostics_.error(
            here, fmt::format("{} has no value; write {} = {}{}", spec.name, spec.name, spec.syntax,
                              required ? "" : ", or leave the line out"));
      }
      return false;
    }
    if (spec.text != Text::Strict) return true;
    if (line.value.front() == '"' || line.value.front() == '\'') {
      diagnostics_.error(here, "values are written without quotes");
      return false;
    }
    if (line.value.front() == '<') {
      diagnostics_.error(here, fmt::format("this only stands for a value; write {} in its place{}",
                                           spec.syntax, sourceOf(spec.name)));
      return false;
    }
    const std::size_t semicolon = line.value.find(';');
    if (semicolon != std::string_view::npos && spec.repeat != Repeat::List) {
      diagnostics_.error(at(line, line.valueColumn + static_cast<unsigned>(semicolon)),
                         "`;` does not start a comment here; use `#`");
      return false;
    }
    return true;
  }

  [[nodiscard]] std::string unknownKey(const Line& line) const {
    const std::string_view name = line.name;
    const std::string_view section = sectionName(*section_);
    Section other{};
    if (const KeySpec* spec = findKeyAnywhere(name, &other)) {
      return fmt::format("{} belongs into [{}], not into [{}]", spec->name, sectionName(other),
                         section);
    }
    for (const Foreign& foreign : kForeign) {
      if (equalIgnoringCase(foreign.name, name)) {
        return fmt::format("{} is not a key of [{}]: {}", foreign.name, section, foreign.advice);
      }
    }
    std::string hint = suggestion(name, keyNames(*section_), "; did you mean {}?");
    for (const std::string_view elsewhere : sectionNames()) {
      if (!hint.empty()) break;
      hint = suggestion(name, keyNames(*findSection(elsewhere)),
                        fmt::format("; did you mean {{}} of [{}]?", elsewhere));
    }
    const bool close = !hint.empty();
    if (!close && line.value.empty()) {
      // The second half of a key ends in the `=` that padded it.
      hint = "; if the line continues the one above it, join the two";
    } else if (!close) {
      hint =
          fmt::format("; the keys of [{}] are {}", section, fmt::join(keyNames(*section_), ", "));
    }
    return fmt::format("unknown key{} in [{}]{}", named(name, close), section, hint);
  }

  /// A name near a known one is a word that was mistyped, not a piece of a key.
  static std::string named(std::string_view name, bool nearKnown) {
    return nearKnown || isShowable(name) ? fmt::format(" \"{}\"", name) : std::string();
  }

  Draft& draft_;
  FileName file_;
  Dialect dialect_;
  Diagnostics& diagnostics_;
  bool sawHeader_ = false;
  std::optional<Section> section_;
  /// The open section's; null when there is none.
  SectionKeys* keys_ = nullptr;
  PeerDraft* peer_ = nullptr;
  InvitationDraft* invitation_ = nullptr;
  MapDraft* map_ = nullptr;
};

}  // namespace

void readInto(Draft& draft, std::string_view text, const FileName& file, Dialect dialect,
              Diagnostics& diagnostics) {
  Reader reader(draft, file, dialect, diagnostics);
  for (const Line& line : lex(text, file, diagnostics)) {
    reader.read(line);
  }
}

}  // namespace adit::config
