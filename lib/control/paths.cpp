#include "control/paths.hpp"

#include <net/if.h>

#include <algorithm>
#include <cstdlib>

namespace adit::control {
namespace {

std::filesystem::path fromEnvironment(const char* variable, const char* standard) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : standard;
}

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_=+.-").find(c) != std::string_view::npos;
}

std::filesystem::path inRuntime(std::string_view interface, std::string_view ending) {
  return runtimeDirectory() / fmt::format("{}{}", interface, ending);
}

}  // namespace

std::filesystem::path runtimeDirectory() {
  return fromEnvironment("ADIT_RUNTIME_DIR", "/run/adit");
}

std::filesystem::path wireguardDirectory() {
  return fromEnvironment("ADIT_WIREGUARD_DIR", "/var/run/wireguard");
}

std::filesystem::path configDirectory() {
  return fromEnvironment("ADIT_CONFIG_DIR", "/etc/adit");
}

std::filesystem::path controlSocket(std::string_view interface) {
  return inRuntime(interface, ".sock");
}

std::filesystem::path pidFile(std::string_view interface) {
  return inRuntime(interface, ".pid");
}

std::filesystem::path logFile(std::string_view interface) {
  return inRuntime(interface, ".log");
}

std::filesystem::path wireguardSocket(std::string_view interface) {
  return wireguardDirectory() / fmt::format("{}.sock", interface);
}

Result<void> checkInterfaceName(std::string_view name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return fail("an interface name has 1 to {} characters; \"{}\" has {}", IFNAMSIZ - 1, name,
                name.size());
  }
  if (!std::ranges::all_of(name, isNameCharacter) || name == "." || name == "..") {
    return fail("\"{}\" is no interface name: letters, digits and _ = + . - only", name);
  }
  return {};
}

Result<NamedConfig> resolveConfigName(std::string_view text) {
  constexpr std::string_view kEnding = ".conf";
  NamedConfig named;
  if (text.find('/') != std::string_view::npos || text.ends_with(kEnding)) {
    named.file = text;
    const std::string base = named.file.filename().string();
    if (!base.ends_with(kEnding)) {
      return fail("{}: a configuration file is called INTERFACE.conf", text);
    }
    named.interface = base.substr(0, base.size() - kEnding.size());
  } else {
    named.interface = text;
    named.file = configDirectory() / fmt::format("{}{}", text, kEnding);
  }
  if (auto valid = checkInterfaceName(named.interface); !valid) {
    return tl::unexpected(valid.error());
  }
  return named;
}

}  // namespace adit::control
