// docs/configuration.md and the table of keys say the same.
#include "config/schema.hpp"
#include "config/test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;

namespace {

std::string documentation() {
  return readWhole(std::filesystem::path(ADIT_SOURCE_DIR) / "docs/configuration.md");
}

/// As a cell of a Markdown table holds it.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '|' ? "\\|" : std::string(1, c);
  }
  return escaped;
}

}  // namespace

TEST_CASE("documentation: every key with its value and default, in its section") {
  const std::string text = documentation();
  for (const std::string_view name : sectionNames()) {
    const std::size_t start = text.find("\n## [" + std::string(name) + "]\n");
    REQUIRE(start != std::string::npos);
    const std::string section = text.substr(start, text.find("\n## ", start + 1) - start);
    for (const KeySpec& spec : keysOf(*findSection(name))) {
      CHECK_THAT(section, Contains("\n| `" + std::string(spec.name) + "` | `" + cell(spec.syntax) +
                                   "` | " + cell(spec.fallback) + " | "));
    }
  }
}

TEST_CASE("documentation: the examples are sound") {
  const std::string text = documentation();
  unsigned examples = 0;
  for (std::size_t at = text.find("```ini\n"); at != std::string::npos;
       at = text.find("```ini\n", at + 1)) {
    const std::size_t start = at + 7;
    parseClean(text.substr(start, text.find("```", start) - start));
    ++examples;
  }
  CHECK(examples == 2);
}
