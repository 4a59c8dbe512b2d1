// Privilege separation: one process keeps root and does only what Privileged offers, its child
// talks to the network.
//
//   aditd (root) ── fork ──► worker (user adit or nobody, CAP_NET_ADMIN)
//        ▲                        │ requests over a socketpair; /dev/net/tun comes back over it
//        └────────────────────────┘
//
// The worker is killed when the parent dies (PR_SET_PDEATHSIG), and the parent ends when the
// worker does, so that a kill -9 of either leaves nobody who holds the UDP port.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "control/privileged_direct.hpp"
#include "control/privileged_directories.hpp"

namespace adit::control {

struct SeparationOptions {
  std::string interface;
  std::filesystem::path configFile;
  /// Runs in the process that kept root after the worker has ended, however it ended; what it
  /// removes may belong to root, such as the control sockets.
  std::function<void()> cleanup;
  /// Hears, beside the log, why the worker could not be started; in whichever process found out.
  std::function<void(const std::string&)> failed;
  /// Leaves CAP_NET_RAW to the worker.
  bool keepNetRaw = false;
  PrivilegedSystem system;
};

/// Runs `worker` with the privileged operations at hand and returns its exit status, 128 + the
/// signal when one killed it, or 1 after logging why it could not be started: also when
/// CAP_NET_ADMIN is missing.
///
/// Call it before any thread exists (else std::logic_error). Descriptors opened before, such as
/// the listening control sockets, go to the worker with the fork.
///
/// The worker has the signal mask and dispositions of the caller, and owns stateDirectory(), where
/// it starts, and volatileDirectory(); both are made here. SIGTERM, SIGINT and SIGHUP of the parent
/// are passed on to it. It loses all capabilities except CAP_NET_ADMIN, CAP_NET_BIND_SERVICE when
/// the configuration has a ListenPort below 1024, and CAP_NET_RAW where `keepNetRaw` says so, for
/// good (PR_SET_NO_NEW_PRIVS, an empty bounding set), and can be neither traced nor dumped.
///
/// Without the rights to change users, as in a container that has only CAP_NET_ADMIN, there is
/// nothing to separate: `worker` runs in this process with a DirectPrivileged, and the log says so.
int runSeparated(const SeparationOptions& options, const std::function<int(Privileged&)>& worker);

}  // namespace adit::control
