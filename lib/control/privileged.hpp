// The few things that need more than CAP_NET_ADMIN, behind an interface: reading secret files,
// hooks, files below /proc/sys, modules, the resolver's configuration.
//
// aditd splits in two at start (architecture.md, "Least privilege"): a small root process that
// serves this interface and does only what the configuration it has read itself asks for, and the
// worker, which talks to the network and keeps CAP_NET_ADMIN at most.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/model.hpp"
#include "enrol/messages.hpp"
#include "util/address.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

enum class HookKind : std::uint8_t { PreUp, PostUp, PreDown, PostDown };

class Privileged {
 public:
  virtual ~Privileged() = default;

  /// Reads the configuration file and all that belongs to it (NAME.d, key files, the output of
  /// PrivateKeyCommand) again. With errors the configuration in force stays what it was.
  virtual config::Outcome loadConfig() = 0;

  /// Runs every hook of one kind in file order by `sh -c`, with %i replaced by the interface name,
  /// those of the configuration that was loaded last. Stops at the first failure for the Up kinds,
  /// goes on for the Down kinds; the error names the line and the exit status.
  virtual Result<void> runHooks(HookKind kind) = 0;

  /// Writes a file below /proc/sys/net and returns its old value. `path` is relative to /proc/sys.
  virtual Result<std::string> writeSysctl(const std::string& path, const std::string& value) = 0;

  /// Writes a file of the kernel's that the loaded configuration has tuned (lib/tune); `path` is
  /// relative to the root of the file system. errno in the error's code.
  virtual Result<void> writeTuned(const std::string& path, const std::string&) {
    return fail("{}: nobody writes what is tuned", path);
  }

  /// Writes down that `joining` is the key of the invitation whose enrolment peer is `enrolment`,
  /// and makes it a peer of the files, if these still hold the invitation, it has not expired, and
  /// no other key has it; a key that has it already is accepted again. What was accepted is on
  /// stable storage. The configuration in force stays until loadConfig().
  virtual Result<enrol::Verdict> completeInvitation(const crypto::PublicKey& enrolment,
                                                    const crypto::PublicKey&) {
    return fail("{}: nobody completes invitations", enrolment.toBase64());
  }

  /// Hands the interface's DNS servers and search domains to resolvconf(8), as wg-quick does; empty
  /// lists withdraw them.
  virtual Result<void> setDns(const std::vector<IpAddress>& servers,
                              const std::vector<std::string>& search) = 0;

  /// modprobe of adit.ko, the only module that is ever asked for.
  virtual Result<void> loadModule() = 0;

  /// Opens /dev/net/tun, once for every queue of the interface.
  virtual Result<UniqueFd> openTun() = 0;
};

}  // namespace adit::control
