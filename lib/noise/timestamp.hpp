// TAI64N labels, and the source of our own, which never goes backwards.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "util/clock.hpp"
#include "util/result.hpp"
#include "wire/messages.h"

namespace adit::noise {

/// A TAI64N label (https://cr.yp.to/libtai/tai64.html): what an initiation carries so that an old
/// one cannot be replayed.
struct Tai64n {
  /// 2^62 + seconds since 1970 TAI.
  std::uint64_t seconds = 0;
  /// Below 10^9.
  std::uint32_t nanoseconds = 0;

  using Bytes = std::array<std::uint8_t, ADIT_TIMESTAMP_LENGTH>;

  /// `unixTime` as WireGuard maps it: 10 s of TAI offset, no leap seconds after. Times before 1970
  /// become 1970. The nanoseconds are rounded down to a multiple of 2^24 (about 16.8 ms), so that
  /// a label does not tell the exact state of our clock.
  static Tai64n fromUnix(std::chrono::nanoseconds unixTime);
  /// Big-endian, as on the wire. Any bytes are accepted: a peer's label is only ever compared.
  static Tai64n fromBytes(std::span<const std::uint8_t, ADIT_TIMESTAMP_LENGTH> bytes);
  [[nodiscard]] Bytes toBytes() const;
  /// The next label on the rounded grid that is greater than this one.
  [[nodiscard]] Tai64n next() const;
  /// This label moved ahead by `duration`, which must not be negative.
  [[nodiscard]] Tai64n after(std::chrono::nanoseconds duration) const;
  /// How far this label is ahead of `earlier`; zero when it is not, at most about 292 years.
  [[nodiscard]] std::chrono::nanoseconds since(const Tai64n& earlier) const;

  friend auto operator<=>(const Tai64n&, const Tai64n&) = default;
};

/// Where the mark of a TimestampSource is kept. It must survive a power cut.
class TimestampStore {
 public:
  virtual ~TimestampStore() = default;
  /// Returns only when `mark` is on stable storage (temporary file, fsync, rename, fsync of the
  /// folder). Called before a label up to `mark` is used.
  virtual Result<void> save(const Tai64n& mark) = 0;
};

/// Our own labels: max(now, last + 1), across restarts and steps of the clock.
///
/// Labels are reserved ahead: the stored mark is at least every label that was ever used, so a
/// restart continues above it. A reservation reaches ten minutes beyond the clock, or, when the
/// labels are already ahead of the clock, two seconds (about 120 labels), so that neither flash
/// wears nor quick restarts push the labels far ahead.
class TimestampSource {
 public:
  /// `mark` is what was last stored, if anything.
  TimestampSource(const Clock& clock, TimestampStore& store, std::optional<Tai64n> mark);

  /// A label greater than all before. Fails when the store does; nothing was used then.
  Result<Tai64n> next();

 private:
  const Clock& clock_;
  TimestampStore& store_;
  /// Greatest label that may have been used.
  Tai64n last_;
  /// Labels up to this one are covered by the store.
  Tai64n reserved_;
};

}  // namespace adit::noise
