// Reads configuration files and tells what is wrong with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "config/model.hpp"

namespace adit::cli {

/// When the warnings about a file that can be used are printed.
enum class Warnings : std::uint8_t { Now, LeftToDaemon };

/// A file in adit's dialect, with the files of its NAME.d. Everything that is wrong goes to
/// standard error; nothing is returned when there is an error.
std::optional<config::Outcome> checkConfig(const std::filesystem::path& file,
                                           Warnings warnings = Warnings::Now);

/// A file in wg(8)'s dialect; as above. Where it has keys or sections of wg-quick or adit, the
/// commands that take such a file are named.
std::optional<config::Config> readWireguardFile(const std::string& file);

}  // namespace adit::cli
