#include "crypto/suite.hpp"

namespace adit::crypto {
namespace {

constexpr std::array<std::string_view, ADIT_SUITE_COUNT> kNames{"chacha20-poly1305", "aes-256-gcm",
                                                                "aes-128-gcm"};

}  // namespace

std::string_view suiteName(Suite suite) {
  return kNames.at(static_cast<std::size_t>(suite));
}

std::optional<Suite> suiteFromName(std::string_view name) {
  for (const Suite suite : kSuites) {
    if (suiteName(suite) == name) {
      return suite;
    }
  }
  return std::nullopt;
}

std::optional<Suite> suiteFromWire(std::uint8_t id) {
  if (id >= ADIT_SUITE_COUNT) {
    return std::nullopt;
  }
  return static_cast<Suite>(id);
}

}  // namespace adit::crypto
