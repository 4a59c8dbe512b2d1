// A configuration while it is being read: the model, and where every key of it stood.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/model.hpp"
#include "config/values.hpp"

namespace adit::config {

struct KeySpec;

/// What one section said, wherever its parts stood.
struct SectionKeys {
  Location header;
  /// Some line of it could not be read, so that a missing key proves nothing.
  bool damaged = false;
  /// First mention of each key.
  std::map<const KeySpec*, Location> seen;

  /// Where the key `name` stood first, else the header.
  [[nodiscard]] Location of(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
};

struct PeerDraft {
  PeerConfig peer;
  SectionKeys keys;
  /// Of peer.allowedIps, entry by entry.
  std::vector<Location> prefixLocations;
  /// The public key was there and sound.
  bool hasPublicKey = false;
};

struct InvitationDraft {
  InvitationConfig invitation;
  SectionKeys keys;
};

struct MapDraft {
  MapConfig map;
  SectionKeys keys;
  /// `Listen` was there and sound.
  bool hasListen = false;
  /// `To` as it was written, and where its value stood.
  TargetText target;
  Location targetLocation;
};

/// Sections appear in file order; peers and maps that are wrong in some key are kept, with the
/// other keys, so that every error of a file is found in one run.
struct Draft {
  InterfaceConfig interface;
  SectionKeys interfaceKeys;
  bool hasInterface = false;
  std::vector<Location> addressLocations;
  std::vector<PeerDraft> peers;
  std::vector<InvitationDraft> invitations;
  std::vector<MapDraft> maps;
  TuneConfig tune;
  SectionKeys tuneKeys;
  bool hasTune = false;
};

/// What the handler of one key works with.
struct EntryContext {
  Draft& draft;
  /// The section that the line belongs to, where it is one of these.
  PeerDraft* peer = nullptr;
  InvitationDraft* invitation = nullptr;
  MapDraft* map = nullptr;
  Dialect dialect = Dialect::Adit;
  Diagnostics& diagnostics;
  const KeySpec& spec;
  /// Trimmed, without the comment.
  std::string_view value;
  /// Of the value's first byte.
  Location location;

  [[nodiscard]] Location at(std::size_t offset) const;
  void error(std::size_t offset, std::string message) const;
  void warning(std::size_t offset, std::string message) const;

  /// Stores a value, or reports why it is none.
  template <typename T, typename Target>
  void store(const Value<T>& parsed, Target& target) const {
    if (parsed) {
      target = *parsed;
    } else {
      error(parsed.error().offset, parsed.error().message);
    }
  }
};

}  // namespace adit::config
