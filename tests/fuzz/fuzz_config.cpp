// Any bytes as a configuration file: no crash, the model and the diagnostics agree, and what is
// sound can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/diff.hpp"
#include "config/parser.hpp"
#include "config/writer.hpp"

namespace {

using namespace adit::config;

void require(bool holds) {
  if (!holds) std::abort();
}

bool hasError(const Outcome& outcome) {
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.severity == Severity::Error) return true;
  }
  return false;
}

void readAndWrite(std::string_view text, Dialect dialect) {
  const Outcome outcome = parse(text, "fuzz.conf", dialect);
  require(outcome.ok() != hasError(outcome));
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    require(!diagnostic.toString().empty());
  }
  if (!outcome.ok()) return;
  const std::string canonical = write(*outcome.config, dialect);
  const Outcome again = parse(canonical, "again.conf", dialect);
  require(again.ok());
  require(write(*again.config, dialect) == canonical);
  require(diff(*outcome.config, *again.config).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Sound: any object may be read as bytes.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  readAndWrite(text, Dialect::Adit);
  readAndWrite(text, Dialect::WireGuard);
  return 0;
}
