// Giving rights away for good: who the worker is and what it may still do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "util/result.hpp"

namespace adit::control {

/// Whom the worker runs as.
struct WorkerIdentity {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// The system user `adit` where there is one, else nobody.
WorkerIdentity workerIdentity();

/// The system group `adit`, whose members may see what is up; nothing where there is none.
std::optional<gid_t> readersGroup();

/// Whether this process may do what adit needs at all, that is whether it has CAP_NET_ADMIN; the
/// error names the remedy.
Result<void> checkRights();

/// Whether this process can start a worker as `identity` and still end it; the error says what is
/// in the way.
Result<void> checkSeparable(const WorkerIdentity& identity);

/// What a worker needs: CAP_NET_ADMIN, and CAP_NET_BIND_SERVICE for a port below 1024.
std::vector<int> workerCapabilities(std::optional<std::uint16_t> listenPort);

/// Turns this process, and every thread that it makes later, into `identity` with those of
/// `capabilities` (CAP_*) that it has now and no others; no program it executes gets more. It
/// cannot be traced or dumped, and SIGKILL ends it when `parent` is gone. On failure the process
/// may have lost some rights and must end.
Result<void> confine(const WorkerIdentity& identity, const std::vector<int>& capabilities,
                     pid_t parent);

/// As confine(), for a process that is the worker's user already and whose end is seen to by
/// others.
Result<void> confineRights(const std::vector<int>& capabilities);

/// No core dump and no tracing by users without CAP_SYS_PTRACE, since there are keys in memory.
void forbidDumps();

}  // namespace adit::control
