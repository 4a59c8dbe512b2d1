// Files of NAME.d that commands write; the person's own file is never touched.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.hpp"
#include "control/paths.hpp"
#include "util/result.hpp"

namespace adit::cli {

class DropIn {
 public:
  /// `fileName` in the folder of `config`, the interface's file.
  DropIn(std::filesystem::path config, std::string_view fileName);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Empty for a file that is not there.
  [[nodiscard]] Result<std::string> content() const;
  /// The whole configuration, with `content` in this file and before anything is written. The error
  /// has every diagnostic, one a line.
  [[nodiscard]] Result<config::Config> judge(std::string_view content) const;
  /// judge(), then the file as a whole, synced and with mode 0600; no content removes it.
  Result<void> write(std::string_view content);
  /// Puts back what was there before the first write().
  Result<void> restore();

 private:
  Result<void> replace(std::string_view content);

  std::filesystem::path config_;
  std::filesystem::path path_;
  bool changed_ = false;
  std::string before_;
};

/// Every error of `diagnostics`, one a line.
std::string errorsOf(const std::vector<config::Diagnostic>& diagnostics);

/// The file that the daemon was started for, wherever that is; of one that is not up, the file that
/// `adit up` takes.
Result<control::NamedConfig> configOf(const std::string& name);

/// What the daemon makes of changed files; where it is not up, how the change gets applied. Where
/// it refuses, the files are as they were.
Result<std::vector<std::string>> applied(const std::string& interface,
                                         const std::vector<DropIn*>& files);

/// The end of a command that changes files: what was done, and why it was not. JSON has ok, and
/// file and notes or error.
int reportChange(bool json, const std::filesystem::path& file,
                 const std::vector<std::string>& notes);
int refuseChange(bool json, const Error& error);

}  // namespace adit::cli
