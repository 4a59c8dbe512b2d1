// The JSON form of requests for ports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "control/device_pcp_snapshot.hpp"
#include "util/result.hpp"

namespace adit::control {

/// [{"role":"lease","state":"granted","peer":"nas","protocol":"PCP","listen":"tcp/18080",
///   "target":"10.10.0.2:80","lifetime":3600}, …]; "reason" where there is one.
nlohmann::ordered_json requestsToJson(const std::vector<PortRequestSnapshot>& requests);
/// One of them.
Result<PortRequestSnapshot> requestFromJson(const nlohmann::ordered_json& json);

/// "lease", "refusal", "request"
std::string_view roleName(PortRequestSnapshot::Role role);
/// "asking", "granted", "refused"
std::string_view stateName(PortRequestSnapshot::State state);

}  // namespace adit::control
