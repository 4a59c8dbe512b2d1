// Waiting for the next packet: a short spin, which saves most of a wake-up's latency, then sleep.
#pragma once

#include <poll.h>

#include <span>

namespace adit::dataplane::user {

/// Returns when a descriptor is ready; `revents` of all are set. To be called after activity: it
/// polls for at most 20 µs, giving the processor away in between, before it blocks.
void waitReady(std::span<pollfd> descriptors);

/// Sets `revents` without waiting.
void pollNow(std::span<pollfd> descriptors);

}  // namespace adit::dataplane::user
