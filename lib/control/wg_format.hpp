// The texts that wg(8) of wireguard-tools prints for a device, byte for byte, so that what people
// have written round `wg show` works with `adit show`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/control_protocol.hpp"
#include "util/result.hpp"

namespace adit::control {

struct ShowStyle {
  /// ANSI colours.
  bool color = false;
  /// Print "(hidden)" for private and preshared keys.
  bool hideKeys = true;
  /// Wall-clock time since the epoch, for "... ago".
  std::chrono::seconds now{};
};

/// `wg show IFACE`: peers with the latest handshake first. Lines that wg does not have are added
/// at the end of a peer, and only where there is something that WireGuard does not know: a name,
/// a cipher that is not WireGuard's, refused timestamps, an endpoint that is not resolved yet.
std::string formatPretty(const DeviceView& view, const ShowStyle& style);

/// `wg show IFACE FIELD`; `withInterface` puts the name first, as `wg show all FIELD` does. An
/// unknown field is an error that lists the fields.
Result<std::string> formatField(const DeviceView& view, std::string_view field, bool withInterface);

/// The field prints private or preshared keys.
bool fieldShowsKeys(std::string_view field);

/// `wg showconf IFACE`
std::string formatConf(const DeviceView& view);

/// "2 minutes, 3 seconds"; empty for 0. A year has 365 days.
std::string formatDuration(std::chrono::seconds duration, bool color = false);
/// "2 minutes, 3 seconds ago", "Now", or wg's remark for a time that is still to come.
std::string formatAgo(std::chrono::seconds now, std::chrono::seconds then, bool color = false);
/// "1.20 MiB": powers of 1024 with two decimals, whole bytes below 1 KiB.
std::string formatBytes(std::uint64_t bytes, bool color = false);

}  // namespace adit::control
