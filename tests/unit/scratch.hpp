// Folders for tests, which go away also when a test is killed.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace adit::testing {

/// Removes the folders PREFIX-PID-* of processes that have ended.
inline void removeAbandoned(const std::filesystem::path& parent, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix + "-")) continue;
    pid_t pid = 0;
    const std::string_view rest = std::string_view(name).substr(prefix.size() + 1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    const bool ours = error == std::errc() && end != rest.data() + rest.size() && *end == '-';
    if (ours && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
}

/// A new, empty folder PREFIX-PID-* for this user only. Whoever makes it removes it; one that could
/// not, since it was killed, has the next one of the same prefix do so.
inline std::filesystem::path makeScratch(
    const std::string& prefix,
    const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
  removeAbandoned(parent, prefix);
  std::string name = parent / (prefix + "-" + std::to_string(::getpid()) + "-XXXXXX");
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  return name;
}

}  // namespace adit::testing
