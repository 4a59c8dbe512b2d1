// WireGuard's cross-platform configuration protocol (wireguard.com/xplatform), as text in and
// text out, so that wg(8) can show and set an adit interface.
//
// A request is lines up to an empty one. "get=1" asks for everything; "set=1" is followed by
// KEY=VALUE lines: the device's first, then each peer's from its public_key on. Keys are 64
// hexadecimal digits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "control/device_api.hpp"

namespace adit::control {

/// Bytes of one request, which some 30,000 peers fit in. A longer one is refused with -EMSGSIZE.
inline constexpr std::size_t kMaxUapiRequest = std::size_t{8} << 20;

/// Answers one request, with or without its empty line. The answer ends in "errno=N" and an empty
/// line: 0, or a negative errno value, which is what wg(8) of wireguard-tools turns into a message
/// and what wireguard-go sends. A request with any wrong line changes nothing (-EINVAL, or -EPROTO
/// for a line without "=").
std::string handleUapi(std::string_view request, DeviceApi& device);

/// The lines of a "set=1" request without its first: for tests and for logging what was wrong.
/// The error never repeats a value.
Result<DeviceChange> parseUapiSet(std::string_view lines);

}  // namespace adit::control
