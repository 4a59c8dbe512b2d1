// What `adit up` changed on the machine beyond links, routes and rules that vanish or are known by
// their protocol number: kept in /run/adit/NAME, so that `adit down` can put it back even when the
// daemon that changed it was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "util/result.hpp"

namespace adit::control {

struct UndoRecord {
  /// Path below /proc/sys to the value before our first write.
  std::map<std::string, std::string> sysctls;
  /// The routing table of our own, 0 for none. Its routes vanish with the interface, its rules do
  /// not.
  std::uint32_t table = 0;
  /// DNS servers were handed to resolvconf.
  bool dns = false;
  /// The Up hooks have run, so the Down hooks have to.
  bool hooksRun = false;

  /// An absent file is an empty record; a damaged one an error that names it.
  static Result<UndoRecord> load(const std::filesystem::path& path);
  [[nodiscard]] Result<void> save(const std::filesystem::path& path) const;
};

}  // namespace adit::control
