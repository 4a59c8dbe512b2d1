// What `adit up` changed on the machine beyond links, routes and rules that vanish or are known by
// their protocol number: kept in /run/adit/NAME, so that `adit down` can put it back even when the
// daemon that changed it was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/route.hpp"
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
  /// One line for each thing that load() and checkTable() left out; not saved.
  std::vector<std::string> refused;

  /// An absent file is an empty record; a damaged one an error that names it. The file belongs to
  /// the process that talks to the network, and root acts on it in `adit down`: so what adit cannot
  /// have written for `interface` is left out, and named in `refused`.
  static Result<UndoRecord> load(const std::filesystem::path& path, std::string_view interface);
  /// Forgets a table that holds routes of another interface of ours, whose rules must stay.
  void checkTable(netlink::Routing& routing, std::uint32_t interfaceIndex);
  [[nodiscard]] Result<void> save(const std::filesystem::path& path) const;
};

}  // namespace adit::control
