// Reads files that hold secrets.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "config/model.hpp"
#include "util/result.hpp"

namespace adit::config {

/// The bytes of a file, wiped when they go.
class FileText {
 public:
  FileText() = default;
  FileText(FileText&&) noexcept = default;
  FileText& operator=(FileText&&) noexcept = default;
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;
  ~FileText();

  [[nodiscard]] std::string_view text() const { return {buffer_.data(), size_}; }
  /// st_mode of the file.
  [[nodiscard]] mode_t mode() const { return mode_; }

 private:
  friend Result<FileText> readFile(const std::filesystem::path& path, std::size_t limit,
                                   bool regularOnly);
  std::string buffer_;
  std::size_t size_ = 0;
  mode_t mode_ = 0;
};

/// Reads at most `limit` bytes; a larger file is an error. Pipes are read to their end unless
/// `regularOnly`. The error does not name the path, which a caller may not be free to show.
Result<FileText> readFile(const std::filesystem::path& path, std::size_t limit, bool regularOnly);

/// Others than the owner can read or write a file of this mode.
bool isOpenToOthers(mode_t mode);
/// Others than the owner can write it.
bool isWritableByOthers(mode_t mode);

/// What `text`, read from `path`, is compared by.
FileStamp stampOf(const std::filesystem::path& path, std::string_view text);

/// `path` for a shell's command line: as it is, or in single quotes where it needs them.
std::string quotedForShell(const std::string& path);

}  // namespace adit::config
