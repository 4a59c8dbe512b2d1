#include "noise/negotiation.hpp"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "wire/control.h"

namespace adit::noise {
namespace {

using crypto::Suite;

std::size_t numberOf(Suite suite) {
  return static_cast<std::size_t>(suite);
}

void appendRecord(std::vector<std::uint8_t>& message, adit_control_type type, std::size_t length) {
  message.push_back(static_cast<std::uint8_t>(type));
  message.push_back(static_cast<std::uint8_t>(length));
}

/// Reads the value of a record of type ADIT_CONTROL_SUITES.
Result<SuiteOffer> decodeOffer(std::span<const std::uint8_t> value) {
  if (value.size() % sizeof(adit_control_suite) != 0) {
    return fail("control message: the list of suites has a wrong length");
  }
  SuiteOffer offer;
  for (; !value.empty(); value = value.subspan(sizeof(adit_control_suite))) {
    adit_control_suite entry{};
    std::memcpy(&entry, value.data(), sizeof entry);
    const auto suite = crypto::suiteFromWire(entry.suite);
    if (!suite) continue;
    offer.allowed.add(*suite);
    offer.speeds[numberOf(*suite)] = le32toh(entry.megabytes_per_second);
  }
  return offer;
}

/// Whether `slower` is less than 20 % below `best`.
bool nearlyAsFast(std::uint32_t slower, std::uint32_t best) {
  return slower == best || std::uint64_t{slower} * 5 > std::uint64_t{best} * 4;
}

}  // namespace

Suite SuiteSet::lowest() const {
  return static_cast<Suite>(std::countr_zero(bits_));
}

std::vector<std::uint8_t> encodeControl(const ControlMessage& message) {
  std::vector<std::uint8_t> out{ADIT_CONTROL_VERSION};
  std::vector<std::uint8_t> suites;
  for (const Suite suite : crypto::kSuites) {
    if (!message.offer.allowed.contains(suite)) continue;
    const adit_control_suite entry{static_cast<std::uint8_t>(suite),
                                   htole32(message.offer.speeds[numberOf(suite)])};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&entry);
    suites.insert(suites.end(), bytes, bytes + sizeof entry);
  }
  appendRecord(out, ADIT_CONTROL_SUITES, suites.size());
  out.insert(out.end(), suites.begin(), suites.end());
  if (message.wantsAnswer) appendRecord(out, ADIT_CONTROL_WANTS_ANSWER, 0);
  return out;
}

Result<ControlMessage> decodeControl(std::span<const std::uint8_t> message) {
  if (message.empty() || message[0] != ADIT_CONTROL_VERSION) {
    return fail("control message: unknown version");
  }
  ControlMessage out;
  bool offered = false;
  auto rest = message.subspan(1);
  while (!rest.empty() && rest[0] != ADIT_CONTROL_END) {
    if (rest.size() < sizeof(adit_control_record) ||
        rest.size() - sizeof(adit_control_record) < rest[1]) {
      return fail("control message: a record is truncated");
    }
    const auto value = rest.subspan(sizeof(adit_control_record), rest[1]);
    if (rest[0] == ADIT_CONTROL_SUITES) {
      auto offer = decodeOffer(value);
      if (!offer) return tl::unexpected(offer.error());
      out.offer = *offer;
      offered = true;
    } else if (rest[0] == ADIT_CONTROL_WANTS_ANSWER) {
      out.wantsAnswer = true;
    }
    rest = rest.subspan(sizeof(adit_control_record) + value.size());
  }
  if (!offered) return fail("control message: no list of suites");
  return out;
}

std::optional<Suite> chooseSuite(const SuiteOffer& a, const SuiteOffer& b) {
  const auto common = [&](Suite suite) {
    return a.allowed.contains(suite) && b.allowed.contains(suite);
  };
  const auto slowerSide = [&](Suite suite) {
    return std::min(a.speeds[numberOf(suite)], b.speeds[numberOf(suite)]);
  };
  std::uint32_t best = 0;
  for (const Suite suite : crypto::kSuites) {
    if (common(suite)) best = std::max(best, slowerSide(suite));
  }
  for (const Suite suite : crypto::kSuites) {
    if (common(suite) && nearlyAsFast(slowerSide(suite), best)) return suite;
  }
  return std::nullopt;
}

Suite initiationSuite(SuiteSet allowed, Suite preferred, unsigned unanswered) {
  const Suite lowest = allowed.lowest();
  if (!allowed.contains(preferred)) preferred = lowest;
  if (preferred != lowest) {
    if (unanswered < kUnansweredLimit) return preferred;
    unanswered -= kUnansweredLimit;
  }
  std::vector<Suite> others;
  for (const Suite suite : crypto::kSuites) {
    if (allowed.contains(suite) && suite != lowest) others.push_back(suite);
  }
  if (others.empty() || unanswered < 2 || unanswered % 2 == 1) return lowest;
  return others[(unanswered / 2 - 1) % others.size()];
}

}  // namespace adit::noise
