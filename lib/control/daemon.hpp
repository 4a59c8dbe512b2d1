// aditd's worker: puts a device together, serves its sockets, and runs until it is told to end.
#pragma once

#include <functional>
#include <string>

#include "config/model.hpp"
#include "control/privileged.hpp"
#include "metrics/http.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

struct DaemonSockets {
  /// Listening; adit's own protocol.
  UniqueFd control;
  /// Listening; WireGuard's cross-platform protocol. Absent where its folder cannot be used.
  UniqueFd wireguard;
  /// Listening, where the file says Metrics.
  UniqueFd metrics;
  metrics::Hosts metricsHosts = metrics::Hosts::Loopback;
  /// Why it is not; else empty.
  std::string metricsTrouble;
};

/// Hears how the start went, exactly once.
class StartObserver {
 public:
  virtual ~StartObserver() = default;
  /// Up. `remarks` are warnings for the person.
  virtual void ready(const std::vector<std::string>& remarks) = 0;
  virtual void failed(const std::string& message) = 0;
};

/// Runs the interface `name` until it is taken down; returns the exit status. On a failed start
/// everything that was begun has been undone. `sockets` is emptied.
int runDaemon(const std::string& name, DaemonSockets& sockets, Privileged& privileged,
              StartObserver& observer);

/// Removes what a killed daemon left of `name`: ruleset, rules, routes, kernel parameters, link,
/// files. Fails when there is nothing.
Result<std::vector<std::string>> cleanUp(const std::string& name, Privileged& privileged);

}  // namespace adit::control
