#include "blocks.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace adit::manual {

std::string withBlock(const std::string& file, std::string_view name, std::string_view content) {
  const std::size_t begin = file.find(fmt::format(" begin {}: made by adit_manual\n", name));
  const std::size_t end = file.find(fmt::format(" end {}\n", name), begin);
  if (begin == std::string::npos || end == std::string::npos) {
    throw std::runtime_error(fmt::format("the marks of \"{}\" are missing", name));
  }
  const std::size_t first = file.find('\n', begin) + 1;
  const std::size_t last = file.rfind('\n', end) + 1;
  return file.substr(0, first) + std::string(content) + file.substr(last);
}

}  // namespace adit::manual
