// A report as one page that needs nothing else: style, charts and data are in it.
#pragma once

#include <string>

#include "bench/model.hpp"

namespace adit::bench {

/// HTML 5 that is also well-formed XML. It loads nothing and runs nothing; what --json prints is in
/// the element "adit-bench". `before`, where it is given, is compared with.
std::string reportToHtml(const Report& report, const Report* before);

}  // namespace adit::bench
