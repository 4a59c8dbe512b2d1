// Which cipher suite two adits use: the in-tunnel control message, the choice, and what an
// initiator tries while nobody answers. docs/protocol.md, "Choosing the suite".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "crypto/suite.hpp"
#include "util/result.hpp"

namespace adit::noise {

/// A set of suites.
class SuiteSet {
 public:
  constexpr SuiteSet() = default;
  static constexpr SuiteSet all() { return SuiteSet((1U << ADIT_SUITE_COUNT) - 1); }
  static constexpr SuiteSet only(crypto::Suite suite) { return SuiteSet(bit(suite)); }
  [[nodiscard]] constexpr bool contains(crypto::Suite suite) const {
    return (bits_ & bit(suite)) != 0;
  }
  constexpr void add(crypto::Suite suite) { bits_ |= bit(suite); }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  /// The lowest id; the set must not be empty.
  [[nodiscard]] crypto::Suite lowest() const;
  friend constexpr bool operator==(const SuiteSet&, const SuiteSet&) = default;

 private:
  explicit constexpr SuiteSet(unsigned bits) : bits_(bits) {}
  static constexpr unsigned bit(crypto::Suite suite) { return 1U << static_cast<unsigned>(suite); }
  unsigned bits_ = 0;
};

/// By suite number, megabytes per second on one core.
using SuiteSpeeds = std::array<std::uint32_t, ADIT_SUITE_COUNT>;

/// What one side allows and how fast its data plane does it. Speeds of suites that are not
/// allowed mean nothing.
struct SuiteOffer {
  SuiteSet allowed;
  SuiteSpeeds speeds{};
  friend bool operator==(const SuiteOffer&, const SuiteOffer&) = default;
};

struct ControlMessage {
  SuiteOffer offer;
  /// The sender has no message of the receiver yet and asks for one.
  bool wantsAnswer = false;
};

std::vector<std::uint8_t> encodeControl(const ControlMessage& message);
/// Fails on a truncated message, an unknown version, or one without an offer; unknown records and
/// unknown suites are skipped. Never reads beyond `message`.
Result<ControlMessage> decodeControl(std::span<const std::uint8_t> message);

/// The common suite whose slower side is fastest; differences under 20 % are ties and go to the
/// lower id. Symmetric in its arguments. Nothing when no suite is common.
std::optional<crypto::Suite> chooseSuite(const SuiteOffer& a, const SuiteOffer& b);

/// Unanswered initiations in a row after which a remembered suite is given up.
inline constexpr unsigned kUnansweredLimit = 3;
/// Control messages to a peer that has never answered one.
inline constexpr unsigned kControlSends = 3;

/// The suite of the next initiation after `unanswered` ones in a row. `preferred` is asked three
/// times if it is not the lowest allowed one; then that one twice, then every other initiation
/// goes to the others in turn, so that a peer that pins one is reached too: 0 0 1 0 2 0 1 0 2 …
/// `allowed` must not be empty.
crypto::Suite initiationSuite(SuiteSet allowed, crypto::Suite preferred, unsigned unanswered);

}  // namespace adit::noise
