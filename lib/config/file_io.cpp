#include "config/file_io.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/unique_fd.hpp"

namespace adit::config {
namespace {

constexpr std::size_t kFirstBuffer = std::size_t{64} << 10;

void wipe(std::string& text) {
  sodium_memzero(text.data(), text.size());
}

/// Grows without leaving a copy behind, as std::string's own growth would.
void growTo(std::string& buffer, std::size_t size) {
  std::string larger(size, '\0');
  std::copy(buffer.begin(), buffer.end(), larger.begin());
  wipe(buffer);
  buffer.swap(larger);
}

}  // namespace

FileText::~FileText() {
  wipe(buffer_);
}

Result<FileText> readFile(const std::filesystem::path& path, std::size_t limit, bool regularOnly) {
  // A FIFO without a writer must not hang the program that only wanted a key.
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (regularOnly ? O_NONBLOCK : 0);
  const UniqueFd fd(::open(path.c_str(), flags));
  if (!fd && errno == EACCES) {
    return tl::unexpected(Error{"only its owner may read it; run as root (sudo)", EACCES});
  }
  if (!fd) return failErrno(errno, "cannot open it");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return failErrno(errno, "cannot examine it");
  if (S_ISDIR(status.st_mode)) return fail("it is a folder");
  if (regularOnly && !S_ISREG(status.st_mode)) return fail("it is not a regular file");
  FileText file;
  file.mode_ = status.st_mode;
  const auto known = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  growTo(file.buffer_, S_ISREG(status.st_mode) ? std::min(known, limit) + 1 : kFirstBuffer);
  while (true) {
    if (file.size_ > limit) return fail("it is larger than {} bytes", limit);
    if (file.size_ == file.buffer_.size()) growTo(file.buffer_, file.buffer_.size() * 2);
    const ssize_t got =
        ::read(fd.get(), file.buffer_.data() + file.size_, file.buffer_.size() - file.size_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failErrno(errno, "cannot read it");
    if (got == 0) return file;
    file.size_ += static_cast<std::size_t>(got);
  }
}

bool isOpenToOthers(mode_t mode) {
  return S_ISREG(mode) && (mode & (S_IRWXG | S_IRWXO)) != 0;
}

bool isWritableByOthers(mode_t mode) {
  return S_ISREG(mode) && (mode & (S_IWGRP | S_IWOTH)) != 0;
}

FileStamp stampOf(const std::filesystem::path& path, std::string_view text) {
  // Sound: any object may be read as bytes.
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  return {path, text.size(), crypto::blake2s({crypto::Bytes(bytes, text.size())})};
}

std::string quotedForShell(const std::string& path) {
  const bool plain = std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+@%:,").find(c) != std::string_view::npos;
  });
  if (plain && !path.empty()) return path;
  std::string quoted = "'";
  for (const char c : path) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace adit::config
