#include "util/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

#include "util/unique_fd.hpp"

namespace adit {
namespace {

Result<void> writeAll(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(descriptor, content.data(), content.size());
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return failErrno(errno, "write");
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> syncFolder(const std::filesystem::path& folder) {
  const UniqueFd descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor || ::fsync(descriptor.get()) != 0) {
    return failErrno(errno, "cannot sync {}", folder.string());
  }
  return {};
}

Result<std::string> readAll(int descriptor, const std::filesystem::path& path, std::size_t limit) {
  std::string content;
  std::array<char, 16384> buffer;  // NOLINT: filled by read(2)
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) {
      return content;
    }
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return failErrno(errno, "cannot read {}", path.string());
    }
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > limit) {
      return fail("{} is larger than {} bytes", path.string(), limit);
    }
  }
}

/// A file of a random name beside `path`, complete.
Result<std::string> writeBeside(const std::filesystem::path& path, std::string_view content,
                                mode_t mode, Durability durability) {
  std::string temporary = path.string() + ".XXXXXX";
  const UniqueFd descriptor(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!descriptor) {
    return failErrno(errno, "cannot write beside {}", path.string());
  }
  Result<void> result = writeAll(descriptor.get(), content);
  if (result && ::fchmod(descriptor.get(), mode) != 0) {
    result = failErrno(errno, "chmod");
  }
  if (result && durability == Durability::PowerCut && ::fsync(descriptor.get()) != 0) {
    result = failErrno(errno, "fsync");
  }
  if (!result) {
    ::unlink(temporary.c_str());
    return wrapError(result.error(), fmt::format("cannot write {}", path.string()));
  }
  return temporary;
}

}  // namespace

Result<std::string> readFile(const std::filesystem::path& path) {
  const UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) {
    return failErrno(errno, "cannot read {}", path.string());
  }
  return readAll(descriptor.get(), path, std::numeric_limits<std::size_t>::max());
}

Result<std::string> readUntrustedFile(const std::filesystem::path& path, std::size_t limit) {
  const UniqueFd descriptor(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!descriptor) {
    return failErrno(errno, "cannot read {}", path.string());
  }
  struct stat about {};
  if (::fstat(descriptor.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return fail("{} is not a regular file", path.string());
  }
  return readAll(descriptor.get(), path, limit);
}

Result<void> replaceFile(const std::filesystem::path& path, std::string_view content, mode_t mode,
                         Durability durability) {
  const auto temporary = writeBeside(path, content, mode, durability);
  if (!temporary) {
    return tl::unexpected(temporary.error());
  }
  if (::rename(temporary->c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary->c_str());
    return failErrno(code, "cannot write {}: rename", path.string());
  }
  if (durability == Durability::PowerCut) {
    return syncFolder(path.parent_path().empty() ? "." : path.parent_path());
  }
  return {};
}

Result<void> createFile(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  const auto temporary = writeBeside(path, content, mode, Durability::PowerCut);
  if (!temporary) {
    return tl::unexpected(temporary.error());
  }
  // Unlike rename(2) it never takes the place of another file.
  const int code = ::link(temporary->c_str(), path.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary->c_str());
  if (code != 0) {
    return failErrno(code, "cannot make {}", path.string());
  }
  return syncFolder(path.parent_path().empty() ? "." : path.parent_path());
}

}  // namespace adit
