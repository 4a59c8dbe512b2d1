// Shorter times and another clock, by environment variables, so that tests of the whole daemon need
// not wait for minutes (docs/testing.md). Only whoever starts the daemon can set them.
#pragma once

#include <memory>

#include "control/endpoint_policy.hpp"
#include "noise/timing.hpp"
#include "pcp/client.hpp"
#include "pcp/server.hpp"
#include "util/clock.hpp"

namespace adit::control {

/// The system's clock; ADIT_TEST_REALTIME_OFFSET_S seconds are added to its real time.
std::unique_ptr<Clock> testClock();
/// ADIT_TEST_REKEY_AFTER_MS and ADIT_TEST_REJECT_AFTER_MS.
noise::Timing testTiming();
/// ADIT_TEST_ENDPOINT_STALE_MS.
EndpointTiming testEndpointTiming();
/// ADIT_TEST_PCP_MINIMUM_LIFETIME_S and ADIT_TEST_PCP_QUOTA.
pcp::ServerLimits testPortLimits();
/// ADIT_TEST_PCP_LIFETIME_S and ADIT_TEST_PCP_PATIENCE_MS.
pcp::ClientTiming testPortTiming();

}  // namespace adit::control
