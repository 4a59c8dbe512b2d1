// Why the kernel's data plane is not there.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

/// The first word of a vermagic is the release that the module was built for.
std::string releaseOf(const std::string& vermagic) {
  return vermagic.substr(0, vermagic.find(' '));
}

std::optional<Finding> obstacleOf(const ModuleFacts& module) {
  if (!module.listed) {
    if (module.source && !module.headers) {
      return Finding{
          "module-headers", Severity::Slow,
          fmt::format("adit.ko cannot be built for Linux {}, for its headers are missing",
                      module.kernel),
          fmt::format("DKMS has its source, and /lib/modules/{}/build leads nowhere",
                      module.kernel),
          fmt::format("`apt install linux-headers-{}` (or your distribution's like), then `dkms "
                      "autoinstall`",
                      module.kernel)};
    }
    if (module.source) {
      return Finding{
          "module-not-built", Severity::Slow,
          fmt::format("adit.ko has not been built for Linux {}", module.kernel),
          "DKMS has its source, and the headers are there",
          fmt::format("`dkms autoinstall -k {}`; `dkms status` tells of failures", module.kernel)};
    }
    return Finding{"module-not-installed", Severity::Advice,
                   fmt::format("adit.ko is not installed for Linux {}: packets are moved in user "
                               "space, at more CPU time each",
                               module.kernel),
                   fmt::format("no adit.ko in /lib/modules/{}", module.kernel),
                   "install it (DKMS, or `make -C kmod install`)"};
  }
  if (!module.vermagic.empty() && releaseOf(module.vermagic) != module.kernel) {
    return Finding{"module-vermagic", Severity::Slow,
                   fmt::format("adit.ko was built for Linux {}, and this one is {}",
                               releaseOf(module.vermagic), module.kernel),
                   fmt::format("vermagic: {}", module.vermagic),
                   fmt::format("`dkms remove adit --all; dkms autoinstall -k {}`", module.kernel)};
  }
  if (module.signaturesWanted && !module.isSigned) {
    return Finding{
        "module-secure-boot", Severity::Slow,
        "adit.ko is refused by Secure Boot: it has no signature that the kernel trusts",
        "Secure Boot (or lockdown) is on, and the module's file ends without a signature",
        "`mokutil --import /var/lib/dkms/mok.pub`, reboot and enroll it, then `dkms "
        "autoinstall --force`"};
  }
  if (module.disabled) {
    return Finding{"module-disabled", Severity::Slow, "the kernel takes no more modules",
                   "kernel.modules_disabled = 1",
                   "`echo adit > /etc/modules-load.d/adit.conf` and reboot, so that it is loaded "
                   "before that"};
  }
  return std::nullopt;
}

}  // namespace

void judgeModule(const Observation& seen, Findings& out) {
  if (!seen.machine.module || seen.machine.module->loaded) return;
  const ModuleFacts& module = *seen.machine.module;
  const auto wanting = std::ranges::find_if(seen.tunnels, [](const TunnelFacts& tunnel) {
    return tunnel.kernelWanted && tunnel.backend != "kernel";
  });
  const bool wanted = wanting != seen.tunnels.end();
  if (!wanted && !seen.tunnels.empty()) return;
  auto finding = obstacleOf(module);
  if (!finding && wanted && module.listed) {
    finding = Finding{"module-refused", Severity::Slow, "adit.ko is there and could not be loaded",
                      wanting->backendReason, "`modprobe adit; dmesg | tail` tells why"};
    if (module.signaturesWanted) {
      finding->id = "module-secure-boot";
      finding->sentence = "adit.ko is refused: the kernel does not trust the key of its signature";
      finding->remedy = "`mokutil --import /var/lib/dkms/mok.pub`, reboot and enroll it";
    }
  }
  if (!finding) return;
  if (!wanted) finding->severity = Severity::Advice;
  if (wanted && !wanting->backendReason.empty() && finding->evidence != wanting->backendReason) {
    finding->evidence += fmt::format("; {} says: {}", wanting->name, wanting->backendReason);
  }
  out.push_back(*std::move(finding));
}

}  // namespace adit::doctor
