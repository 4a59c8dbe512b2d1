// Small readers for the texts of /proc and /sys. Internal to lib/tune.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace adit::tune {

std::string_view trimmed(std::string_view text);
/// Every part, empty ones too; one part where there is no separator.
std::vector<std::string_view> split(std::string_view text, char separator);
/// The words between blanks, tabs and newlines.
std::vector<std::string_view> words(std::string_view text);
/// Decimal digits alone.
std::optional<std::uint64_t> parseUnsigned(std::string_view text);
/// Hexadecimal digits alone.
std::optional<std::uint64_t> parseHex(std::string_view text);

}  // namespace adit::tune
