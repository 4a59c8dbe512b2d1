// Peers as files say them, and the files of NAME.d that hold one each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/drop_in.hpp"
#include "config/model.hpp"
#include "crypto/key.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// The lines of one section, from its header to the last one that is neither blank nor a comment.
struct SectionLines {
  unsigned first = 0;
  unsigned last = 0;
};
/// Of the section whose header stands in line `header` of `text`.
SectionLines sectionAt(std::string_view text, unsigned header);

/// `text` with `section` in place of these lines, or without them. Where no other section is left,
/// what remains goes too.
std::string withoutSection(std::string_view text, const SectionLines& lines);
std::string withSection(std::string_view text, const SectionLines& lines, std::string_view section);

/// By name, whatever its case, or by public key.
Result<config::PeerConfig> peerCalled(const config::Config& config, const std::string& name);

/// Its name, else its public key.
std::string labelOf(const config::PeerConfig& peer);

/// A peer in a file of NAME.d.
struct PeerPlace {
  DropIn file;
  /// What the file holds, and the peer's part of it.
  std::string text;
  SectionLines lines;
};
/// Of the section at `location`, which `name` is the peer of. One that stands in the interface's
/// own file, `config`, is an error that names the lines.
Result<PeerPlace> placeOf(const config::Location& location, const std::string& name,
                          const std::filesystem::path& config);

/// Whether a mapping leads to the peer: by its name, or to an address that is the peer's alone.
bool leadsTo(const config::MapConfig& map, const config::PeerConfig& peer);

}  // namespace adit::cli
