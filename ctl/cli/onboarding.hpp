// What `adit init`, `adit invite` and `adit join` share.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.hpp"
#include "enrol/messages.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// HOST:PORT of HOST[:PORT]; an IPv6 address may stand without brackets where it has no port.
Result<std::string> endpointWithPort(const std::string& text, std::uint16_t port);

/// Makes the folder of a configuration file with mode 0700 where there is none.
Result<void> makeConfigFolder(const std::filesystem::path& file);

/// "2 days", "24 hours", "1 minute": whole units, rounded down.
std::string durationText(std::chrono::seconds duration);

/// The value of AllowMaps; "none" where there are none.
std::string grantsText(const std::vector<config::PortGrant>& grants, bool thirdParty);
std::string grantsText(const std::vector<enrol::Grant>& grants, bool thirdParty);

}  // namespace adit::cli
