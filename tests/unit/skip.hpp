// A test that needs what this machine does not give is skipped with a line; where nothing may be
// skipped (scripts/test as root, continuous integration) it fails.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <string_view>

namespace adit::testing {

inline void skip(const std::string& why) {
  const char* rule = std::getenv("ADIT_TEST_SKIP");
  if (rule != nullptr && std::string_view(rule) == "forbidden") {
    FAIL("may not be skipped (ADIT_TEST_SKIP=forbidden): " << why);
  }
  WARN("skipped: " << why);
}

}  // namespace adit::testing
