// The machine's side of parsing a change: files and names.
#pragma once

#include <filesystem>

#include "control/wg_format_change.hpp"

namespace adit::cli {

/// A key file, or a pipe, of at most 4096 bytes. Errors name the path.
Result<std::string> readFile(const std::string& path);

/// "192.0.2.1:51820", "[2001:db8::1]:51820" or "vps.example.net:51820". A name that the resolver
/// cannot answer yet is asked for again, WG_ENDPOINT_RESOLUTION_RETRIES times (15, or "infinity").
Result<Endpoint> resolveEndpoint(std::string_view text);

control::ChangeSources machineSources();

}  // namespace adit::cli
