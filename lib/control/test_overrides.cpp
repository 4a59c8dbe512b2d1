#include "control/test_overrides.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace adit::control {
namespace {

std::optional<std::int64_t> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc{} && *end == '\0' ? std::optional(value) : std::nullopt;
}

void overrideMilliseconds(std::chrono::nanoseconds& value, const char* variable) {
  if (const auto milliseconds = number(variable)) {
    value = std::chrono::milliseconds(*milliseconds);
  }
}

class ShiftedClock final : public Clock {
 public:
  explicit ShiftedClock(std::chrono::seconds offset) : offset_(offset) {}
  [[nodiscard]] BootTime now() const override { return system_.now(); }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override {
    return system_.realTime() + offset_;
  }

 private:
  SystemClock system_;
  std::chrono::seconds offset_;
};

}  // namespace

std::unique_ptr<Clock> testClock() {
  if (const auto offset = number("ADIT_TEST_REALTIME_OFFSET_S")) {
    return std::make_unique<ShiftedClock>(std::chrono::seconds(*offset));
  }
  return std::make_unique<SystemClock>();
}

noise::Timing testTiming() {
  noise::Timing timing;
  overrideMilliseconds(timing.rekeyAfter, "ADIT_TEST_REKEY_AFTER_MS");
  overrideMilliseconds(timing.rejectAfter, "ADIT_TEST_REJECT_AFTER_MS");
  return timing;
}

EndpointTiming testEndpointTiming() {
  EndpointTiming timing;
  overrideMilliseconds(timing.stale, "ADIT_TEST_ENDPOINT_STALE_MS");
  return timing;
}

pcp::ServerLimits testPortLimits() {
  pcp::ServerLimits limits;
  if (const auto lifetime = number("ADIT_TEST_PCP_MINIMUM_LIFETIME_S")) {
    limits.minimumLifetime = std::chrono::seconds(*lifetime);
  }
  if (const auto quota = number("ADIT_TEST_PCP_QUOTA")) {
    limits.leasesPerPeer = static_cast<std::size_t>(*quota);
  }
  return limits;
}

pcp::ClientTiming testPortTiming() {
  pcp::ClientTiming timing;
  if (const auto lifetime = number("ADIT_TEST_PCP_LIFETIME_S")) {
    timing.lifetime = std::chrono::seconds(*lifetime);
  }
  overrideMilliseconds(timing.patience, "ADIT_TEST_PCP_PATIENCE_MS");
  return timing;
}

}  // namespace adit::control
