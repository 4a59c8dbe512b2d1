// The privileged operations themselves, done by the calling process.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/privileged.hpp"
#include "control/privileged_command.hpp"
#include "control/privileged_tune.hpp"
#include "control/sysctl_file.hpp"

namespace adit::control {

/// What the operations touch; tests put other places here.
struct PrivilegedSystem {
  /// Reads and checks a file and all that belongs to it, except PrivateKeyCommand; nothing
  /// is config::load().
  std::function<config::Outcome(const std::string& file)> readConfig;
  std::string sysctlRoot = kSysctlRoot;
  /// Below which what is tuned lies.
  std::string tuneRoot = "/";
  std::string tunDevice = "/dev/net/tun";
  /// Names the interfaces that Debian's resolvconf ranks; see resolvconf(8).
  std::string resolvconfOrder = "/etc/resolvconf/interface-order";
  std::string searchPath{kSearchPath};
  /// For each hook and each other program.
  std::chrono::milliseconds commandTimeout = std::chrono::seconds(60);
};

/// Needs the rights of what it is asked for, and reports their absence as an error. Hooks see only
/// PATH and ADIT_INTERFACE, read /dev/null, write to the daemon's log and run in "/".
class DirectPrivileged final : public Privileged {
 public:
  /// `interface` has passed config::checkInterfaceName().
  DirectPrivileged(std::string interface, std::string configFile, PrivilegedSystem system = {});

  config::Outcome loadConfig() override;
  Result<void> runHooks(HookKind kind) override;
  Result<std::string> writeSysctl(const std::string& path, const std::string& value) override;
  Result<void> writeTuned(const std::string& path, const std::string& value) override;
  Result<enrol::Verdict> completeInvitation(const crypto::PublicKey& enrolment,
                                            const crypto::PublicKey& joining) override;
  /// Only servers and domains of the configuration in force.
  Result<void> setDns(const std::vector<IpAddress>& servers,
                      const std::vector<std::string>& search) override;
  Result<void> loadModule() override;
  Result<UniqueFd> openTun() override;

 private:
  [[nodiscard]] Command shell(const std::string& text) const;
  /// Turns `outcome` into one with an error when a hook cannot be run as it stands.
  void checkHooks(config::Outcome& outcome) const;
  void runKeyCommand(config::Outcome& outcome) const;
  [[nodiscard]] Result<void> runHook(const config::Hook& hook, std::string_view kind) const;
  [[nodiscard]] std::string resolvconfName() const;

  std::string interface_;
  std::string configFile_;
  PrivilegedSystem system_;
  TuneWriter tuneWriter_;
  /// The last configuration without errors.
  std::optional<config::Config> config_;
};

}  // namespace adit::control
