// The front door of the user-space data plane: a TUN device and UDP sockets, moved by threads of
// this process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dataplane/dataplane.hpp"
#include "dataplane/user/offload.hpp"
#include "util/unique_fd.hpp"

namespace adit::dataplane::user {

struct UserOptions {
  /// Name of the TUN device, 1 to 15 bytes.
  std::string interface;
  /// Set on the device when it is opened; 0 leaves it. Later changes of the device's MTU, by
  /// whomever, are followed.
  unsigned mtu = 1420;
  /// Must outlive the data plane; read by several threads. Null: the machine's.
  const Clock* clock = nullptr;
  /// Opens /dev/net/tun, once for every lane, where this process may not. Empty: open(2).
  std::function<Result<UniqueFd>()> openTun;
  /// Pairs of packet threads, each with a queue of the device; 0 takes one
  /// for two CPUs, four at most.
  std::size_t lanes = 0;
  OffloadSwitches offload = OffloadSwitches::fromEnvironment();
};

/// Creates the device, or takes over the one that a former process left, and starts the threads.
/// Sockets are opened in the network namespace of the calling thread, by configure(); before that
/// nothing is received. The device outlives the data plane unless destroyInterface() is called.
Result<std::unique_ptr<DataPlane>> createUserDataPlane(const UserOptions& options);

}  // namespace adit::dataplane::user
