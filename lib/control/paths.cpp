#include "control/paths.hpp"

#include <cstdlib>

#include "config/parser.hpp"

namespace adit::control {
namespace {

std::filesystem::path fromEnvironment(const char* variable, const char* standard) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : standard;
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

std::filesystem::path helperSocket(std::string_view interface) {
  return inRuntime(interface, ".helper");
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

Result<NamedConfig> resolveConfigName(std::string_view text) {
  constexpr std::string_view kEnding = ".conf";
  NamedConfig named;
  if (text.find('/') != std::string_view::npos || text.ends_with(kEnding)) {
    const auto interface = config::interfaceNameOf(text);
    if (!interface) return wrapError(interface.error(), text);
    named.interface = *interface;
    named.file = text;
  } else {
    if (auto valid = config::checkInterfaceName(text); !valid) {
      return fail("\"{}\": {}", text, valid.error().message);
    }
    named.interface = text;
    named.file = configDirectory() / fmt::format("{}{}", text, kEnding);
  }
  return named;
}

}  // namespace adit::control
