// The file of NAME.d that `adit map add` and `adit map del` write; the person's own are never
// touched.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/drop_in.hpp"
#include "config/model.hpp"
#include "control/paths.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// A mapping as its keys are written; empty ones are left out.
struct MapText {
  std::string listen;
  std::string to;
  std::string source;
  std::vector<std::string> allow;
  std::string rate;
  bool hairpin = false;
  bool overrideListener = false;
};

class MapFile {
 public:
  explicit MapFile(const control::NamedConfig& config);

  [[nodiscard]] DropIn& file() { return file_; }

  /// The whole configuration is judged with the change before anything is written. The error has
  /// every diagnostic, one a line.
  Result<void> add(const MapText& map);
  /// `listen` as in [Map]. A mapping of another file is an error that names its line.
  Result<void> remove(const std::string& listen);
  /// Those that lead to `peer`. One of another file that names the peer is an error, since the
  /// configuration would be wrong without the peer.
  Result<void> removeThoseTo(const config::PeerConfig& peer);

 private:
  using Goes = std::function<bool(const config::MapConfig&)>;
  [[nodiscard]] bool isHere(const config::MapConfig& map) const;
  /// The mappings of this file, but for those that go.
  [[nodiscard]] std::string written(const std::vector<config::MapConfig>& maps,
                                    const Goes& goes) const;
  [[nodiscard]] Result<config::Config> now() const;

  DropIn file_;
};

}  // namespace adit::cli
