// Which keys a peer already had, so that none is ever used from counter 0 twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "noise/types.hpp"

namespace adit::dataplane::user {

/// Remembers keyed fingerprints of the last 16 sessions' keys, never the keys.
class KeyHistory {
 public:
  KeyHistory();
  ~KeyHistory();
  KeyHistory(const KeyHistory&) = delete;
  KeyHistory& operator=(const KeyHistory&) = delete;

  /// False when a remembered session sent or received with one of these keys; else remembers them.
  bool add(const noise::SessionKeys& keys);

 private:
  static constexpr std::size_t kSessions = 16;
  using Fingerprint = std::array<std::uint8_t, 16>;

  [[nodiscard]] Fingerprint fingerprint(const Secret<32>& key) const;

  std::array<std::uint8_t, 32> fingerprintKey_;
  /// Of both directions of each session.
  std::array<Fingerprint, 2 * kSessions> known_{};
  std::size_t count_ = 0;
};

}  // namespace adit::dataplane::user
