// Where a running interface's files are. One daemon serves one interface, and all of its files
// carry the interface's name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::control {

/// /run/adit, or what the environment variable ADIT_RUNTIME_DIR says.
std::filesystem::path runtimeDirectory();
/// /var/run/wireguard, or what ADIT_WIREGUARD_DIR says; wg(8) only looks at the former.
std::filesystem::path wireguardDirectory();
/// /etc/adit, or what ADIT_CONFIG_DIR says.
std::filesystem::path configDirectory();

/// The socket of the control protocol (control_protocol.hpp).
std::filesystem::path controlSocket(std::string_view interface);
/// Where the helper waits for its worker, when both are units of systemd.
std::filesystem::path helperSocket(std::string_view interface);
std::filesystem::path pidFile(std::string_view interface);
std::filesystem::path logFile(std::string_view interface);
/// The socket of WireGuard's cross-platform protocol (uapi.hpp).
std::filesystem::path wireguardSocket(std::string_view interface);

/// What a person names on the command line: the interface, or the path of its file.
struct NamedConfig {
  std::string interface;
  std::filesystem::path file;
};

/// `text` with a slash or the ending ".conf" is a path whose stem names the interface; anything
/// else is an interface, whose file is in configDirectory(). The file may be absent.
Result<NamedConfig> resolveConfigName(std::string_view text);

}  // namespace adit::control
