// The file of NAME.d that `adit map add` and `adit map del` write; the person's own are never
// touched.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The whole configuration is judged with the change before anything is written. The error has
  /// every diagnostic, one a line.
  Result<void> add(const MapText& map);
  /// `listen` as in [Map]. A mapping of another file is an error that names its line.
  Result<void> remove(const std::string& listen);
  /// Puts back what was there before add() or remove().
  Result<void> restore();

 private:
  Result<void> write(std::string content);

  std::filesystem::path config_;
  std::filesystem::path path_;
  std::string before_;
};

}  // namespace adit::cli
