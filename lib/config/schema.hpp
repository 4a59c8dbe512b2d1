// The keys of the grammar: one table that the parser, the writer, the differences and the
// suggestions are driven by.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/draft.hpp"
#include "config/model.hpp"

namespace adit::config {

enum class Repeat : std::uint8_t {
  /// A second one is an error.
  Once,
  /// Comma-separated; repeats accumulate.
  List,
  /// One value a line; repeats accumulate.
  EachLine,
};

enum class Text : std::uint8_t {
  /// Printable ASCII.
  Strict,
  /// UTF-8; `#` starts a comment all the same.
  Free,
  /// Shell text, kept to the byte; `#` belongs to it.
  Hook,
};

/// One section of a finished configuration.
struct SectionView {
  const InterfaceConfig* interface = nullptr;
  const PeerConfig* peer = nullptr;
  const InvitationConfig* invitation = nullptr;
  const MapConfig* map = nullptr;
  const TuneConfig* tune = nullptr;
};

struct KeySpec {
  std::string_view name;
  Repeat repeat = Repeat::Once;
  Text text = Text::Strict;
  /// wg(8) knows it in this section.
  bool wireguard = false;
  /// Its value is a secret; no message and no difference shows it.
  bool secret = false;
  /// What a value looks like, in the words of docs/configuration.md.
  std::string_view syntax;
  /// What holds without it, in the words of docs/configuration.md.
  std::string_view fallback;
  void (*parse)(const EntryContext& context) = nullptr;
  /// The lines that say what `view` holds; none for the default.
  std::vector<std::string> (*format)(const SectionView& view) = nullptr;
};

/// In the order in which the writer puts them.
std::span<const KeySpec> keysOf(Section section);
const KeySpec* findKey(Section section, std::string_view name);
/// The section that knows `name`, asked in the order of Section.
const KeySpec* findKeyAnywhere(std::string_view name, Section* section);
std::vector<std::string_view> keyNames(Section section);

std::string_view sectionName(Section section);
const Section* findSection(std::string_view name);
std::vector<std::string_view> sectionNames();

/// The tables, each beside its handlers.
std::span<const KeySpec> interfaceKeys();
std::span<const KeySpec> peerKeys();
std::span<const KeySpec> invitationKeys();
std::span<const KeySpec> mapKeys();
std::span<const KeySpec> tuneKeys();

}  // namespace adit::config
