#include "control/privileged_directories.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "control/paths.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {
namespace {

Result<void> makeParents(const std::filesystem::path& directory) {
  std::filesystem::path made;
  for (const auto& component : directory.parent_path()) {
    made /= component;
    if (::mkdir(made.c_str(), 0755) != 0 && errno != EEXIST) {
      return failErrno(errno, "{} cannot be made", made.string());
    }
  }
  return {};
}

/// Files of an earlier worker that ran as another user. A hard link may lead to somebody else's
/// file, so only what has one name changes hands.
void giveFiles(int directory, uid_t uid, gid_t gid) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      ::fdopendir(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), ::closedir);
  if (!entries) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    const UniqueFd file(::openat(directory, entry->d_name,
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat about {};
    if (file && ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 1 &&
        ::fchown(file.get(), uid, gid) != 0) {
      return;
    }
  }
}

}  // namespace

std::filesystem::path stateDirectory(std::string_view interface) {
  const char* base = std::getenv("ADIT_STATE_DIR");
  const bool given = base != nullptr && *base != '\0';
  return std::filesystem::absolute(given ? base : "/var/lib/adit") / interface;
}

std::filesystem::path volatileDirectory(std::string_view interface) {
  return std::filesystem::absolute(runtimeDirectory()) / interface;
}

Result<void> makeOwnDirectory(const std::filesystem::path& directory, uid_t uid, gid_t gid) {
  if (auto parents = makeParents(directory); !parents) return parents;
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failErrno(errno, "{} cannot be made", directory.string());
  }
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (!opened || ::fstat(opened.get(), &about) != 0) {
    return failErrno(errno, "{} must be a directory", directory.string());
  }
  if (about.st_uid != uid || about.st_gid != gid) {
    if (::fchown(opened.get(), uid, gid) != 0) {
      return failErrno(errno, "{} cannot be given to user {}", directory.string(), uid);
    }
    giveFiles(opened.get(), uid, gid);
  }
  if ((about.st_mode & 07777) != 0700 && ::fchmod(opened.get(), 0700) != 0) {
    return failErrno(errno, "{} cannot be made private", directory.string());
  }
  return {};
}

Result<void> makeOwnDirectories(std::string_view interface, uid_t uid, gid_t gid) {
  if (auto made = makeOwnDirectory(stateDirectory(interface), uid, gid); !made) return made;
  return makeOwnDirectory(volatileDirectory(interface), uid, gid);
}

Result<void> checkOwnDirectory(const std::filesystem::path& directory) {
  if (::access(directory.c_str(), R_OK | W_OK | X_OK) == 0) return {};
  const int code = errno;
  std::filesystem::path reached;
  for (const auto& component : directory.parent_path()) {
    reached /= component;
    if (::access(reached.c_str(), X_OK) != 0) {
      return failErrno(code, "{} is out of reach for user {}; let it pass: chmod a+x {}",
                       directory.string(), ::geteuid(), reached.string());
    }
  }
  return failErrno(code, "{} is not usable by user {}", directory.string(), ::geteuid());
}

Result<void> enterOwnDirectories(std::string_view interface) {
  const std::filesystem::path lasting = stateDirectory(interface);
  if (auto usable = checkOwnDirectory(lasting); !usable) return usable;
  if (auto usable = checkOwnDirectory(volatileDirectory(interface)); !usable) return usable;
  if (::chdir(lasting.c_str()) != 0) return failErrno(errno, "{}", lasting.string());
  return {};
}

}  // namespace adit::control
