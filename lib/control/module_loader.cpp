#include "control/module_loader.hpp"

#include <sys/capability.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "control/privileged_command.hpp"

namespace adit::control {
namespace {

/// Room for what modprobe says in one line.
constexpr std::size_t kOutputLimit = 512;

struct Words {
  std::string_view text;
  int code;
};
constexpr std::array kWords{
    Words{"not found", ENOENT},
    Words{"can't change directory", ENOENT},
    Words{"Key was rejected by service", EKEYREJECTED},
    Words{"Required key not available", EKEYREJECTED},
    Words{"Operation not permitted", EPERM},
    Words{"Permission denied", EPERM},
    Words{"Exec format error", ENOEXEC},
    Words{"nvalid module format", ENOEXEC},
    // Of another kernel, since all that adit.ko needs is in every kernel that it builds for.
    Words{"nknown symbol", ENOEXEC},
    Words{"disagrees about version of symbol", ENOEXEC},
};

bool mayLoadModules() {
  const cap_t capabilities = cap_get_proc();
  if (capabilities == nullptr) return false;
  cap_flag_value_t value = CAP_CLEAR;
  cap_get_flag(capabilities, CAP_SYS_MODULE, CAP_EFFECTIVE, &value);
  cap_free(capabilities);
  return value == CAP_SET;
}

/// One line of what was printed, without control characters.
std::string firstLine(const Bytes& output) {
  std::string line(output.begin(), std::ranges::find(output, std::uint8_t{'\n'}));
  std::erase_if(line, [](char c) { return c >= 0 && c < ' '; });
  return line;
}

}  // namespace

int moduleErrorCode(std::string_view output, bool mayLoad) {
  const auto found = std::ranges::find_if(kWords, [&](const Words& words) {
    return output.find(words.text) != std::string_view::npos;
  });
  if (found == kWords.end()) return 0;
  return found->code == EPERM && !mayLoad ? EACCES : found->code;
}

Result<void> loadAditModule(const std::string& searchPath, std::chrono::milliseconds timeout) {
  constexpr std::string_view kDoing = "the kernel module adit does not load";
  const std::string program = findProgram("modprobe", searchPath);
  if (program.empty()) return fail("modprobe is not installed (package kmod)");
  const Command command{.arguments = {program, "adit"},
                        .environment = {fmt::format("PATH={}", searchPath)},
                        .input = {},
                        .outputLimit = kOutputLimit,
                        .keepErrors = true,
                        .timeout = timeout};
  const auto result = runCommand(command);
  if (!result) return wrapError(result.error(), kDoing);
  if (result->ok()) return {};
  const std::string words = firstLine(result->output);
  return tl::unexpected(Error{
      fmt::format("{}: {}", kDoing,
                  words.empty() ? "modprobe " + describeEnd(command, *result) : words),
      moduleErrorCode({reinterpret_cast<const char*>(result->output.data()), result->output.size()},
                      mayLoadModules())});
}

}  // namespace adit::control
