// The transport cipher suites of docs/protocol.md: their numbers, names and limits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "wire/messages.h"

namespace adit::crypto {

enum class Suite : std::uint8_t {
  ChaCha20Poly1305 = ADIT_SUITE_CHACHA20_POLY1305,
  Aes256Gcm = ADIT_SUITE_AES_256_GCM,
  Aes128Gcm = ADIT_SUITE_AES_128_GCM,
};

inline constexpr std::array kSuites{Suite::ChaCha20Poly1305, Suite::Aes256Gcm, Suite::Aes128Gcm};

/// "chacha20-poly1305", "aes-256-gcm", "aes-128-gcm".
std::string_view suiteName(Suite suite);
std::optional<Suite> suiteFromName(std::string_view name);
std::optional<Suite> suiteFromWire(std::uint8_t id);

}  // namespace adit::crypto
