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

std::string Diagnostic::place() const {
  const std::string_view file = location.file ? std::string_view(*location.file) : "configuration";
  return location.line == 0 ? fmt::format("{}: ", file)
                            : fmt::format("{}:{}:{}: ", file, location.line, location.column);
}

std::string Diagnostic::toString() const {
  const std::string_view kind = severity == Severity::Error ? "error" : "warning";
  return fmt::format("{}{}: {}", place(), kind, message);
}

}  // namespace adit::config
