// What changed between two configurations, in words.
#pragma once

#include <string>
#include <vector>

#include "config/model.hpp"

namespace adit::config {

struct Change {
  enum class Kind : std::uint8_t { Added, Removed, Changed } kind = Kind::Changed;
  Section section = Section::Interface;
  /// "interface", "peer nas", "map tcp/443", "tune".
  std::string subject;
  /// The key, for a change inside the section; empty where the whole section came or went.
  std::string key;
  /// "peer nas: AllowedIPs: added 192.0.2.0/24". Never a secret.
  std::string text;
};

struct Diff {
  std::vector<Change> changes;
  [[nodiscard]] bool empty() const { return changes.empty(); }
  /// The texts alone.
  [[nodiscard]] std::vector<std::string> lines() const;
};

/// What turns `before` into `after`. Peers are the same when their public keys are, mappings when
/// they listen on the same ports. Private keys are compared by their public keys, so a key written
/// unclamped is no change. Order and place in files mean nothing. A prefix that moves between peers
/// is said to be taken from the one that had it.
Diff diff(const Config& before, const Config& after);

}  // namespace adit::config
