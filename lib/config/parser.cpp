#include "config/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/checker.hpp"
#include "config/file_io.hpp"
#include "config/lexer.hpp"
#include "config/reader.hpp"
#include "config/schema.hpp"
#include "config/values.hpp"

namespace adit::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".conf";
/// Generous for one key, a line end and an editor's leftovers.
constexpr std::size_t kMaxKeyFileSize = 4096;

/// Where the text itself was at fault, a missing section is no news.
void requireInterface(const Draft& draft, const FileName& file, Dialect dialect,
                      Diagnostics& diagnostics) {
  if (dialect == Dialect::Adit && !draft.hasInterface && !diagnostics.hasErrors()) {
    diagnostics.error({file, 1, 1}, "there is no [Interface] section; the file needs one");
  }
}

/// Reads a configuration and everything that it names.
class Loader {
 public:
  explicit Loader(Dialect dialect) : dialect_(dialect) {}
  /// With `text` in place of the drop-in file `path`.
  Loader(fs::path path, std::string_view text)
      : dialect_(Dialect::Adit), replacedFile_(std::move(path)), replacement_(text) {}

  Outcome load(const fs::path& path) {
    main_ = std::make_shared<const std::string>(path.string());
    diagnostics_.announce(main_);
    bool readable = readConfig(path, main_);
    // Without the file itself the rest of its family tells nothing.
    if (dialect_ == Dialect::Adit && readable) {
      warnAboutName(path);
      for (const fs::path& dropIn : dropInsOf(path)) {
        readable =
            readConfig(dropIn, std::make_shared<const std::string>(dropIn.string())) && readable;
      }
      readKeyFiles();
    }
    if (readable) requireInterface(draft_, main_, dialect_, diagnostics_);
    Outcome outcome =
        readable ? finish(draft_, dialect_, diagnostics_) : Outcome{{}, diagnostics_.take(), {}};
    outcome.files = std::move(stamps_);
    return outcome;
  }

 private:
  /// Whether there was a text to judge.
  bool readConfig(const fs::path& path, const FileName& name) {
    if (!replacedFile_.empty() && path == replacedFile_) {
      readInto(draft_, replacement_, name, dialect_, diagnostics_);
      return true;
    }
    const auto file = readFile(path, kMaxFileSize, false);
    if (!file) {
      diagnostics_.error({name, 0, 0}, file.error().message);
      return false;
    }
    readInto(draft_, file->text(), name, dialect_, diagnostics_);
    stamps_.push_back(stampOf(path, file->text()));
    warnAboutMode(name, file->mode());
    return true;
  }

  /// A key file's own mode is judged where it is read.
  void warnAboutMode(const FileName& name, mode_t mode) {
    if (!isOpenToOthers(mode)) return;
    if (const auto secret = firstSecretOf(name)) {
      diagnostics_.warning(*secret, fmt::format("others can read this file and its keys (mode "
                                                "{:04o}); run: chmod 600 {}",
                                                mode & 07777U, quotedForShell(*name)));
    } else if (isWritableByOthers(mode)) {
      diagnostics_.warning({name, 0, 0},
                           fmt::format("others can change this file, and with its hooks whatever "
                                       "root can (mode {:04o}); run: chmod go-w {}",
                                       mode & 07777U, quotedForShell(*name)));
    }
  }

  [[nodiscard]] std::optional<Location> firstSecretOf(const FileName& name) const {
    std::vector<const SectionKeys*> sections{&draft_.interfaceKeys};
    for (const PeerDraft& peer : draft_.peers) {
      sections.push_back(&peer.keys);
    }
    for (const auto& invitation : draft_.invitations) {
      sections.push_back(&invitation.keys);
    }
    for (const SectionKeys* keys : sections) {
      for (const auto& [spec, location] : keys->seen) {
        if (spec->secret && location.file == name) return location;
      }
    }
    return std::nullopt;
  }

  void warnAboutName(const fs::path& path) {
    if (const auto name = interfaceNameOf(path); !name) {
      diagnostics_.warning({main_, 0, 0}, name.error().message);
    }
  }

  std::vector<fs::path> dropInsOf(const fs::path& path) {
    if (path.extension() != kSuffix) return {};
    const fs::path folder = config::dropInFolder(path);
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& file = entry->path();
      if (file.extension() == kSuffix && !file.filename().string().starts_with('.') &&
          file != replacedFile_) {
        files.push_back(file);
      }
    }
    if (!replacement_.empty()) files.push_back(replacedFile_);
    if (error && error != std::errc::no_such_file_or_directory) {
      diagnostics_.error({std::make_shared<const std::string>(folder.string()), 0, 0},
                         fmt::format("cannot read the folder: {}", error.message()));
    }
    std::ranges::sort(files);
    return files;
  }

  void readKeyFiles() {
    InterfaceConfig& interface = draft_.interface;
    if (!interface.privateKeyFile.empty()) {
      withKeyIn(interface.privateKeyFile, draft_.interfaceKeys.of("PrivateKeyFile"),
                [&](std::string_view text) {
                  if (auto key = crypto::PrivateKey::fromBase64(text)) {
                    interface.privateKey = std::move(*key);
                  }
                });
    }
    for (PeerDraft& peer : draft_.peers) {
      if (peer.peer.presharedKeyFile.empty()) continue;
      withKeyIn(peer.peer.presharedKeyFile, peer.keys.of("PresharedKeyFile"),
                [&](std::string_view text) {
                  if (auto key = crypto::presharedKeyFromBase64(text)) {
                    peer.peer.presharedKey = std::move(*key);
                  }
                });
    }
  }

  /// Calls `use` with the sound text of the key in the file that `at` names.
  template <typename Use>
  void withKeyIn(const std::string& written, const Location& at, Use use) {
    const fs::path path = fs::path(*at.file).parent_path() / written;
    const auto file = readFile(path, kMaxKeyFileSize, true);
    if (!file) {
      diagnostics_.error(
          at, fmt::format("the key file{}: {}", shownPath(written, path), file.error().message));
      return;
    }
    std::string_view text = file->text();
    while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) {
      text.remove_suffix(1);
    }
    if (const auto bad = checkKeyText(text)) {
      const std::string_view message =
          text.empty() ? "it is empty" : std::string_view(bad->message);
      diagnostics_.error(at, fmt::format("the key file {}: {}", path.string(), message));
      return;
    }
    use(text);
    if (isOpenToOthers(file->mode())) {
      diagnostics_.warning(at, fmt::format("others can read the key file (mode {:04o}); run: chmod "
                                           "600 {}",
                                           file->mode() & 07777U, quotedForShell(path.string())));
    }
  }

  /// A path whose folder exists is one; anything else may be a key in the wrong place.
  static std::string shownPath(const std::string& written, const fs::path& path) {
    std::error_code error;
    const bool inFolder =
        fs::path(written).has_parent_path() && fs::is_directory(path.parent_path(), error);
    const bool show = (inFolder && isShowable(path.filename().string())) || isShowable(written);
    return show ? " " + path.string() : std::string();
  }

  Dialect dialect_;
  fs::path replacedFile_;
  std::string_view replacement_;
  FileName main_;
  Draft draft_;
  Diagnostics diagnostics_;
  std::vector<FileStamp> stamps_;
};

}  // namespace

Outcome parse(std::string_view text, std::string_view fileName, Dialect dialect) {
  const auto file = std::make_shared<const std::string>(fileName);
  Draft draft;
  Diagnostics diagnostics;
  readInto(draft, text, file, dialect, diagnostics);
  requireInterface(draft, file, dialect, diagnostics);
  return finish(draft, dialect, diagnostics);
}

fs::path dropInFolder(const fs::path& path) {
  fs::path folder = path;
  return folder.replace_extension(".d");
}

Outcome loadWith(const fs::path& path, const fs::path& dropIn, std::string_view text) {
  return Loader(dropIn, text).load(path);
}

Outcome load(const std::filesystem::path& path, Dialect dialect) {
  return Loader(dialect).load(path);
}

Result<std::string> interfaceNameOf(const std::filesystem::path& path) {
  if (path.extension() != kSuffix) {
    return fail("the file is not called NAME.conf, with NAME for the interface");
  }
  const std::string name = path.stem().string();
  if (const auto good = checkInterfaceName(name); !good) {
    return fail("the file's name is NAME.conf with NAME for the interface: {}",
                good.error().message);
  }
  return name;
}

Result<void> checkInterfaceName(std::string_view name) {
  const auto parsed = parseInterfaceName(name);
  if (!parsed) return fail("{}", parsed.error().message);
  return {};
}

}  // namespace adit::config
