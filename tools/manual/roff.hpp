// Text as man(7) pages hold it.
#pragma once

#include <string>
#include <string_view>

namespace adit::manual {

/// One line of running text: `code` in bold, dashes as they are typed, typographic characters in
/// ASCII.
std::string roffLine(std::string_view text);
/// The help of a command: lines that are indented by two blanks stand as they are, the others flow.
std::string roffText(std::string_view text);
/// A cell of a Markdown table: also [links](#to) and \| are resolved.
std::string roffCell(std::string_view markdown);

}  // namespace adit::manual
