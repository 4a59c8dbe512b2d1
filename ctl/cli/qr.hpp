// QR codes for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::cli {

/// `content` as a QR code of half blocks, two modules a character, with its quiet zone: 4 modules
/// as the standard has it, or 2 where a terminal of 80 by 24 is too small for that. Light modules
/// are the drawn ones, as a terminal with light text on dark shows them; with `color` they are on
/// every terminal. Fails for an empty content and for one of more than 2953 bytes.
Result<std::string> qrText(std::string_view content, bool color);

}  // namespace adit::cli
