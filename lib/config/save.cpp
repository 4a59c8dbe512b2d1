// `adit save`: changes inside a person's own file.
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/checker.hpp"
#include "config/diff.hpp"
#include "config/file_io.hpp"
#include "config/lexer.hpp"
#include "config/mapping_text.hpp"
#include "config/reader.hpp"
#include "config/writer.hpp"
#include "util/file.hpp"

namespace adit::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// One section of the file: its lines, and what they meant when they were loaded.
struct FileSection {
  Section kind = Section::Interface;
  std::size_t header = 0;
  /// The last line with an entry, or the header.
  std::size_t last = 0;
  std::map<const KeySpec*, std::vector<std::size_t>> entries;
  SectionView loaded;
};

/// The lines of a file while they are being changed.
class LineEditor {
 public:
  explicit LineEditor(std::string_view text) {
    Diagnostics ignored;
    lines_ = lex(text, std::make_shared<const std::string>(), ignored);
    mark_ = text.starts_with(kByteOrderMark);
    end_ = text.find("\r\n") == std::string_view::npos ? "\n" : "\r\n";
    original_ = text;
    edits_.resize(lines_.size());
  }

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

  /// Puts `value` in place of the line's own; what stands around it stays.
  void setValue(std::size_t index, std::string_view value) {
    const Line& line = lines_[index];
    const std::size_t start = line.valueColumn - 1;
    edits_[index].replacement = fmt::format("{}{}{}", line.raw.substr(0, start), value,
                                            line.raw.substr(start + line.value.size()));
  }

  /// Removes the entry of a line; a comment behind it stays.
  void removeEntry(std::size_t index) {
    const Line& line = lines_[index];
    if (line.comment == std::string_view::npos) {
      edits_[index].removed = true;
    } else {
      edits_[index].replacement = std::string(line.raw.substr(line.comment));
    }
  }

  void removeLines(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) {
      edits_[i].removed = true;
    }
  }

  void insertAfter(std::size_t index, std::string text) {
    edits_[index].following.push_back(std::move(text));
  }

  void append(std::string text) { appended_.push_back(std::move(text)); }

  [[nodiscard]] std::string text() const {
    if (!changed()) return std::string(original_);
    std::string out(mark_ ? kByteOrderMark : std::string_view());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Edit& edit = edits_[i];
      if (!edit.removed) {
        out += edit.replacement ? std::string_view(*edit.replacement) : lines_[i].raw;
        out += end_;
      }
      for (const std::string& line : edit.following) {
        out += line;
        out += end_;
      }
    }
    for (const std::string& section : appended_) {
      out += end_;
      for (const char c : section) {
        out += c == '\n' ? end_ : std::string_view(&c, 1);
      }
    }
    return out;
  }

 private:
  struct Edit {
    bool removed = false;
    std::optional<std::string> replacement;
    std::vector<std::string> following;
  };

  [[nodiscard]] bool changed() const {
    return !appended_.empty() || std::ranges::any_of(edits_, [](const Edit& edit) {
      return edit.removed || edit.replacement || !edit.following.empty();
    });
  }

  std::string_view original_;
  std::vector<Line> lines_;
  std::vector<Edit> edits_;
  std::vector<std::string> appended_;
  bool mark_ = false;
  std::string_view end_;
};

/// Pairs the sections of the main file with the configuration that was loaded from it: peers and
/// mappings of the main file come first there, in the same order.
std::vector<FileSection> sectionsOf(const std::vector<Line>& lines, const Config& config) {
  std::vector<FileSection> sections;
  std::size_t peers = 0;
  std::size_t invitations = 0;
  std::size_t maps = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.kind == LineKind::Header) {
      FileSection& section = sections.emplace_back();
      section.kind = *findSection(line.name);
      section.header = section.last = i;
      section.loaded = {.interface = &config.interface, .tune = &config.tune};
      if (section.kind == Section::Peer) section.loaded.peer = &config.peers.at(peers++);
      if (section.kind == Section::Invitation) {
        section.loaded.invitation = &config.invitations.at(invitations++);
      }
      if (section.kind == Section::Map) section.loaded.map = &config.maps.at(maps++);
    } else if (line.kind == LineKind::Entry) {
      FileSection& section = sections.back();
      section.entries[findKey(section.kind, line.name)].push_back(i);
      section.last = i;
    }
  }
  return sections;
}

class Saver {
 public:
  Saver(std::string_view text, const Config& loaded, const Config& wanted)
      : editor_(text), loaded_(loaded), wanted_(wanted) {}

  std::string run() {
    std::set<crypto::PublicKey> peers;
    std::set<std::string> maps;
    for (const FileSection& section : sectionsOf(editor_.lines(), loaded_)) {
      if (const auto view = wantedView(section)) {
        update(section, *view);
      } else {
        editor_.removeLines(section.header, section.last);
      }
    }
    appendNew();
    return editor_.text();
  }

 private:
  /// What the section shall say, or nothing when it shall go.
  [[nodiscard]] std::optional<SectionView> wantedView(const FileSection& section) const {
    switch (section.kind) {
      case Section::Interface:
      case Section::Tune:
        return SectionView{.interface = &wanted_.interface, .tune = &wanted_.tune};
      case Section::Peer:
        if (const PeerConfig* peer = findPeer(wanted_, *section.loaded.peer)) {
          return SectionView{.peer = peer};
        }
        return std::nullopt;
      case Section::Invitation:
        return section.loaded;
      case Section::Map:
        if (const MapConfig* map = findMap(wanted_, *section.loaded.map)) {
          return SectionView{.map = map};
        }
        return std::nullopt;
    }
    return std::nullopt;
  }

  static const PeerConfig* findPeer(const Config& config, const PeerConfig& peer) {
    const auto found = std::ranges::find(config.peers, peer.publicKey, &PeerConfig::publicKey);
    return found == config.peers.end() ? nullptr : &*found;
  }

  static const MapConfig* findMap(const Config& config, const MapConfig& map) {
    const auto found = std::ranges::find_if(
        config.maps, [&](const MapConfig& other) { return listenText(other) == listenText(map); });
    return found == config.maps.end() ? nullptr : &*found;
  }

  void update(const FileSection& section, const SectionView& view) {
    for (const KeySpec& spec : keysOf(section.kind)) {
      const std::vector<std::string> values = spec.format(view);
      if (values == spec.format(section.loaded) || keepsHostName(spec, section, view)) continue;
      const auto found = section.entries.find(&spec);
      const std::vector<std::size_t> none;
      updateKey(section, spec, found == section.entries.end() ? none : found->second, values);
    }
  }

  static bool keepsHostName(const KeySpec& spec, const FileSection& section,
                            const SectionView& view) {
    return spec.name == "Endpoint" && section.loaded.peer->endpoint && view.peer->endpoint &&
           !section.loaded.peer->endpoint->literal && view.peer->endpoint->literal;
  }

  void updateKey(const FileSection& section, const KeySpec& spec,
                 const std::vector<std::size_t>& places, const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i < values.size()) {
        editor_.setValue(places[i], values[i]);
      } else {
        editor_.removeEntry(places[i]);
      }
    }
    for (std::size_t i = places.size(); i < values.size(); ++i) {
      editor_.insertAfter(places.empty() ? section.last : places.back(),
                          fmt::format("{} = {}", spec.name, values[i]));
    }
  }

  void appendNew() {
    for (const PeerConfig& peer : wanted_.peers) {
      if (findPeer(loaded_, peer) == nullptr) {
        editor_.append(writeSection(Section::Peer, {.peer = &peer}));
      }
    }
    for (const MapConfig& map : wanted_.maps) {
      if (findMap(loaded_, map) == nullptr) {
        editor_.append(writeSection(Section::Map, {.map = &map}));
      }
    }
    const bool tuned =
        wanted_.tune.profile != TuneConfig::Profile::Off || !wanted_.tune.settings.empty();
    if (tuned && loaded_.tune.location.line == 0) {
      editor_.append(writeSection(Section::Tune, {.tune = &wanted_.tune}));
    }
  }

  LineEditor editor_;
  const Config& loaded_;
  const Config& wanted_;
};

/// The files of a configuration, as they are now.
Result<std::vector<FileText>> readUnchanged(const std::vector<FileStamp>& stamps) {
  std::vector<FileText> texts;
  for (const FileStamp& stamp : stamps) {
    auto file = readFile(stamp.path, kMaxFileSize, false);
    if (!file) return wrapError(file.error(), stamp.path.string());
    if (stampOf(stamp.path, file->text()) != stamp) {
      return fail("{} changed since it was loaded; run `adit reload` first, then save",
                  stamp.path.string());
    }
    texts.push_back(std::move(*file));
  }
  return texts;
}

/// What the files would mean with `text` in place of the first one. Keys in files are taken from
/// `loaded`, since they are not written.
Result<Config> meaningOf(const std::string& text, const std::vector<FileText>& files,
                         const Outcome& loaded) {
  Draft draft;
  Diagnostics diagnostics;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto name = std::make_shared<const std::string>(loaded.files[i].path.string());
    readInto(draft, i == 0 ? std::string_view(text) : files[i].text(), name, Dialect::Adit,
             diagnostics);
  }
  if (!draft.interface.privateKeyFile.empty()) {
    draft.interface.privateKey = loaded.config->interface.privateKey;
  }
  for (PeerDraft& peer : draft.peers) {
    const auto old =
        std::ranges::find(loaded.config->peers, peer.peer.publicKey, &PeerConfig::publicKey);
    if (!peer.peer.presharedKeyFile.empty() && old != loaded.config->peers.end()) {
      peer.peer.presharedKey = old->presharedKey;
    }
  }
  Outcome outcome = finish(draft, Dialect::Adit, diagnostics);
  if (outcome.ok()) return std::move(*outcome.config);
  const auto bad = std::ranges::find(outcome.diagnostics, Severity::Error, &Diagnostic::severity);
  return fail("the file would not be valid afterwards: {}", bad->message);
}

}  // namespace

Result<SaveReport> save(const Outcome& loaded, const Config& wanted) {
  const auto files = readUnchanged(loaded.files);
  if (!files) return tl::unexpected(files.error());
  std::string text = Saver(files->front().text(), *loaded.config, wanted).run();
  SaveReport report;
  const auto meaning = meaningOf(text, *files, loaded);
  if (!meaning) return tl::unexpected(meaning.error());
  report.notSaved = diff(*meaning, wanted).lines();
  Result<void> result;
  if (text != files->front().text()) {
    result = replaceFile(loaded.files.front().path, text, S_IRUSR | S_IWUSR, Durability::PowerCut);
    report.written = result.has_value();
  }
  sodium_memzero(text.data(), text.size());
  if (!result) return tl::unexpected(result.error());
  return report;
}

}  // namespace adit::config
