#include "config/model.hpp"

#include <fmt/format.h>

namespace adit::config {

std::string EndpointName::toString() const {
  const bool brackets = host.find(':') != std::string::npos;
  if (!brackets) {
    return fmt::format("{}:{}", host, port);
  }
  return fmt::format("[{}{}{}]:{}", host, zone.empty() ? "" : "%", zone, port);
}

std::string Diagnostic::toString() const {
  const std::string_view kind = severity == Severity::Error ? "error" : "warning";
  const std::string_view file = location.file ? std::string_view(*location.file) : "configuration";
  if (location.line == 0) {
    return fmt::format("{}: {}: {}", file, kind, message);
  }
  return fmt::format("{}:{}:{}: {}: {}", file, location.line, location.column, kind, message);
}

}  // namespace adit::config
