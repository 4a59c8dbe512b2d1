// Tables of text, as `adit tune` and `adit bench` print them.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace adit::cli {

using Row = std::vector<std::string>;

/// Columns as wide as their widest cell in characters of one byte, those from `firstNumber` on to
/// the right; a row's last cell ends where it ends, so that a row may be shorter. `rows` is not
/// empty, and its first row is a longest one.
std::string table(const std::vector<Row>& rows,
                  std::size_t firstNumber = std::numeric_limits<std::size_t>::max());

}  // namespace adit::cli
