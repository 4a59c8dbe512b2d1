// What must hold on the host before a mapping works: kernel parameters, and ports that nobody
// else listens on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nat/mapping.hpp"
#include "util/result.hpp"

namespace adit::nat {

/// A kernel parameter that a ruleset needs.
struct SysctlNeed {
  /// Below /proc/sys, with slashes.
  std::string path;
  std::string value;
  /// Write only where the file now says one of these; empty: always.
  std::vector<std::string> onlyWhen;
  /// For the person, one line.
  std::string why;
  /// Without it nothing works; others degrade with a warning.
  bool required = true;
};

/// In the order in which they must be written (accept_ra before IPv6 forwarding, which would
/// otherwise lose the default route of a router advertisement). IPv6 forwarding is a switch of the
/// whole host, so `allInterfaces` names every interface that may follow router advertisements;
/// empty is those of the calling thread's network namespace.
std::vector<SysctlNeed> neededSysctls(const RulesetSpec& spec,
                                      const std::vector<std::string>& allInterfaces = {});

/// A local socket in the way of a mapping.
struct Listener {
  Protocol protocol = Protocol::Tcp;
  IpAddress address;
  std::uint16_t port = 0;
  /// Name and id of the process that holds it, where they could be found.
  std::string process;
  std::uint32_t pid = 0;
  [[nodiscard]] std::string toString() const;
};

/// Listening TCP sockets and unconnected UDP sockets of the network namespace of the calling
/// thread. `proc` is /proc or stands for it in tests.
Result<std::vector<Listener>> localListeners(const std::filesystem::path& proc = "/proc");

/// One error for each mapping that would shadow a listener and does not say Override. Listeners on
/// loopback addresses only are not in the way, nor is the tunnel's own port, which is never mapped.
std::vector<Error> listenerConflicts(const RulesetSpec& spec,
                                     const std::vector<Listener>& listeners);

}  // namespace adit::nat
