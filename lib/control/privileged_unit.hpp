// Privilege separation between two units of systemd, each with a sandbox of its own.
//
//   adit-helper@NAME (root)                        adit@NAME (user adit, CAP_NET_ADMIN)
//        │  /run/adit/NAME.helper (SOCK_SEQPACKET) ◄──── connects, once
//        └── the listening sockets, then answers ──────► requests, as in privileged_process.hpp
//
// Whichever ends, so does the other: the worker at once, leaving the interface to its successor,
// and the helper when it has removed what belongs to root.
#pragma once

#include <functional>
#include <string>

#include "control/daemon.hpp"
#include "control/privileged_process.hpp"

namespace adit::control {

/// Serves one worker of user `adit` and returns 0, or 1 after logging why not. `sockets` go to it.
/// `listening` is called when it may connect; who does not within half a minute, or is another
/// user, is not served. SIGTERM ends the waiting, and later nothing: the end of the worker counts.
/// Call it before any thread exists. `options.keepNetRaw` does not matter here.
int runHelper(const SeparationOptions& options, DaemonSockets sockets,
              const std::function<void()>& listening);

/// Runs `worker` with what the helper of `interface` gave, and returns its exit status; or 1 after
/// telling `failed` why not, also when there is no helper. Gives up for good what rights this
/// process has beyond those that the worker needs. A process whose helper goes ends at once, with
/// status 1.
int runHelped(const std::string& interface, const std::function<void(const std::string&)>& failed,
              const std::function<int(Privileged&, DaemonSockets&)>& worker);

}  // namespace adit::control
