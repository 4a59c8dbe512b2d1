// Leases over a restart of the daemon, as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pcp/lease.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace adit::control {

struct StoredLeases {
  std::vector<pcp::Lease> leases;
  /// When the leases' epoch began, where it goes on: the text was written since the last boot, and
  /// by a server that wrote every change at once.
  std::optional<BootTime> epochStart;
};

/// `epochStart`: nothing for a text that is written rarely, or must outlive the boot-time clock.
std::string leasesToText(const std::vector<pcp::Lease>& leases, std::optional<BootTime> epochStart,
                         const Clock& clock);

/// Ends of leases by the boot-time clock where the epoch goes on, else by the wall clock. The text
/// is our own, but files get damaged.
Result<StoredLeases> leasesFromText(std::string_view text, const Clock& clock);

}  // namespace adit::control
