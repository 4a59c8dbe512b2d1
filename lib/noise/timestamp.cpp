#include "noise/timestamp.hpp"

#include <algorithm>
#include <limits>

namespace adit::noise {
namespace {

/// 2^62, where TAI64 puts 1970 TAI, and the 10 s that TAI was ahead of UTC then.
constexpr std::uint64_t kTaiEpoch = 0x4000000000000000ULL + 10;
constexpr std::uint32_t kNanosecondsPerSecond = 1'000'000'000;
/// The largest power of two below a fiftieth of a second: at 50 initiations per second each still
/// gets a label of its own.
constexpr std::uint32_t kGrid = 1U << 24;
constexpr std::chrono::minutes kReserveAhead{10};
constexpr std::chrono::seconds kReserveAheadOfClock{2};

}  // namespace

Tai64n Tai64n::fromUnix(std::chrono::nanoseconds unixTime) {
  const auto time = std::max(unixTime, std::chrono::nanoseconds::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const auto rest = static_cast<std::uint32_t>((time - seconds).count());
  return {kTaiEpoch + static_cast<std::uint64_t>(seconds.count()), rest & ~(kGrid - 1)};
}

Tai64n Tai64n::fromBytes(std::span<const std::uint8_t, ADIT_TIMESTAMP_LENGTH> bytes) {
  Tai64n label;
  for (std::size_t i = 0; i < 8; ++i) {
    label.seconds = label.seconds << 8 | bytes[i];
  }
  for (std::size_t i = 8; i < 12; ++i) {
    label.nanoseconds = label.nanoseconds << 8 | bytes[i];
  }
  return label;
}

Tai64n::Bytes Tai64n::toBytes() const {
  Bytes bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(seconds >> (56 - 8 * i));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[8 + i] = static_cast<std::uint8_t>(nanoseconds >> (24 - 8 * i));
  }
  return bytes;
}

Tai64n Tai64n::next() const {
  const std::uint64_t grown = std::uint64_t{nanoseconds & ~(kGrid - 1)} + kGrid;
  if (grown < kNanosecondsPerSecond) {
    return {seconds, static_cast<std::uint32_t>(grown)};
  }
  return {seconds + 1, 0};
}

Tai64n Tai64n::after(std::chrono::nanoseconds duration) const {
  const auto total = static_cast<std::uint64_t>(duration.count()) + nanoseconds;
  return {seconds + total / kNanosecondsPerSecond,
          static_cast<std::uint32_t>(total % kNanosecondsPerSecond)};
}

std::chrono::nanoseconds Tai64n::since(const Tai64n& earlier) const {
  if (*this <= earlier) return std::chrono::nanoseconds::zero();
  constexpr std::uint64_t kMostSeconds =
      std::numeric_limits<std::int64_t>::max() / kNanosecondsPerSecond - 10;
  const std::uint64_t whole = std::min(seconds - earlier.seconds, kMostSeconds);
  return std::chrono::seconds(whole) + std::chrono::nanoseconds(nanoseconds) -
         std::chrono::nanoseconds(earlier.nanoseconds);
}

TimestampSource::TimestampSource(const Clock& clock, TimestampStore& store,
                                 std::optional<Tai64n> mark)
    : clock_(clock), store_(store), last_(mark.value_or(Tai64n{})), reserved_(last_) {}

Result<Tai64n> TimestampSource::next() {
  const Tai64n now = Tai64n::fromUnix(clock_.realTime());
  const Tai64n label = std::max(now, last_.next());
  if (label > reserved_) {
    const Tai64n mark = std::max(now.after(kReserveAhead), label.after(kReserveAheadOfClock));
    if (auto saved = store_.save(mark); !saved) {
      return wrapError(saved.error(), "reserving handshake timestamps");
    }
    reserved_ = mark;
  }
  last_ = label;
  return label;
}

}  // namespace adit::noise
