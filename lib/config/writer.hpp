// Writes configurations: whole ones in canonical form, and changes into a person's own file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "config/schema.hpp"
#include "util/result.hpp"

namespace adit::config {

/// The whole configuration in canonical form; parse() of it gives the same. Defaults are left out,
/// and so are lists with nothing in them. Holds secrets. By Dialect::WireGuard only what wg(8)
/// understands, with the keys themselves also where files hold them.
std::string write(const Config& config, Dialect dialect = Dialect::Adit);

/// One section of it, header included.
std::string writeSection(Section section, const SectionView& view, Dialect dialect = Dialect::Adit);

/// What save() could and could not do.
struct SaveReport {
  /// The file was written; false when it said everything already.
  bool written = false;
  /// What `wanted` says and the file does not after this, in the words of diff(): changes to what
  /// files of NAME.d or key files say, and addresses in place of the file's host names.
  std::vector<std::string> notSaved;
};

/// Brings the main file of `loaded` in line with `wanted`, as `adit save` does. Keys whose meaning
/// has not changed keep their lines as they are: comments, order, keys written unclamped. An
/// endpoint that the file gives by host name keeps it where `wanted` has an address. Endpoints of
/// `wanted` must be configured ones, never learned ones. `loaded` must come from load() and be
/// ok(). Fails without touching the file when it changed since it was loaded; else replaces it as a
/// whole, with mode 0600.
Result<SaveReport> save(const Outcome& loaded, const Config& wanted);

}  // namespace adit::config
