#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace adit::cli {

std::string table(const std::vector<Row>& rows, std::size_t firstNumber) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += i < firstNumber ? fmt::format("{:<{}}  ", row[i], widths[i])
                              : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    text += row.back() + '\n';
  }
  return text;
}

}  // namespace adit::cli
