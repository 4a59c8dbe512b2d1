// The changes that wg(8) of wireguard-tools can say: the arguments of `set`, and the files of
// `setconf`, `addconf` and `syncconf`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.hpp"
#include "control/control_protocol.hpp"
#include "control/device_api.hpp"
#include "util/result.hpp"

namespace adit::control {

/// What parsing needs from the machine, injected for tests.
struct ChangeSources {
  /// The text of a key file. Empty (as /dev/null) takes the key away.
  std::function<Result<std::string>(const std::string& path)> readFile;
  /// HOST:PORT to an address; names are looked up.
  std::function<Result<Endpoint>(std::string_view text)> resolve;
};

/// The arguments after `set IFACE`:
///   [listen-port PORT] [fwmark MARK] [private-key FILE]
///   [peer KEY [remove] [preshared-key FILE] [endpoint HOST:PORT]
///    [persistent-keepalive SECONDS] [allowed-ips [+|-]PREFIX[,[+|-]PREFIX]...]]...
/// `allowed-ips` replaces the list unless an entry of it has a sign. Errors name the argument and
/// never repeat a key. Remarks, such as masked host bits, are appended to `remarks`.
Result<DeviceChange> changeFromArguments(std::span<const std::string> arguments,
                                         const ChangeSources& sources,
                                         std::vector<std::string>& remarks);

enum class ConfMode : std::uint8_t {
  /// The device becomes what the file says.
  Set,
  /// What the file does not say stays.
  Add,
};

/// A checked file of Dialect::WireGuard.
Result<DeviceChange> changeFromConfig(const config::Config& config, ConfMode mode,
                                      const ChangeSources& sources);

/// Turns a change of ConfMode::Set into one that leaves alone what `running` (asked with keys)
/// already has, so that the sessions of unchanged peers go on.
DeviceChange differenceTo(const DeviceView& running, DeviceChange wanted);

/// The key in the text of a key file: 44 characters of base64 with blanks after them, or nothing
/// at all, which gives a key of zeros.
Result<Secret<32>> parseKeyFile(std::string_view text);

}  // namespace adit::control
