#include "cli/output.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace adit::cli {
namespace {

/// ADIT_NAME, else WG_NAME, else empty.
std::string_view setting(const std::string& name) {
  for (const char* prefix : {"ADIT_", "WG_"}) {
    if (const char* value = std::getenv((prefix + name).c_str()); value != nullptr) return value;
  }
  return {};
}

}  // namespace

int print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return kSuccess;
  }
  const int code = errno;
  return code == EPIPE ? kFailure
                       : complain(fmt::format("standard output: {}", std::strerror(code)));
}

int complain(std::string_view message) {
  remark(message);
  return kFailure;
}

int complain(const Error& error) {
  return complain(error.message);
}

void remark(std::string_view text) {
  fmt::print(stderr, "adit: {}\n", text);
}

bool confirmed(std::string_view question) {
  fmt::print(stderr, "{} [y/N] ", question);
  std::string answer;
  return ::isatty(STDIN_FILENO) == 1 && std::getline(std::cin, answer) &&
         (answer == "y" || answer == "yes");
}

void warnOfReadableOutput() {
  struct stat status {};
  if (::fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode) &&
      (status.st_mode & S_IRWXO) != 0) {
    fmt::print(stderr,
               "Warning: writing to world accessible file.\n"
               "Consider setting the umask to 077 and trying again.\n");
  }
}

bool wantsColor() {
  const std::string_view mode = setting("COLOR_MODE");
  if (mode == "always") return true;
  if (mode == "never") return false;
  return ::isatty(STDOUT_FILENO) == 1;
}

bool hidesKeys() {
  return setting("HIDE_KEYS") != "never";
}

}  // namespace adit::cli
