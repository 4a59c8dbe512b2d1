// Parts of files that are made, between two marks, each a comment of the file's own kind:
//   # begin NAME: made by adit_manual
//   # end NAME
#pragma once

#include <string>
#include <string_view>

namespace adit::manual {

/// `file` with `content` between the marks of `name`, whole lines. Throws where a mark is missing.
std::string withBlock(const std::string& file, std::string_view name, std::string_view content);

}  // namespace adit::manual
