#include "control/kernel_module.hpp"

#include <sys/utsname.h>

#include <cerrno>
#include <fstream>

namespace adit::control {
namespace {

ModuleUnavailable explainOpenFailure(const Error& error) {
  switch (error.code) {
    case EPROTONOSUPPORT:
      return {error.message,
              "let adit and adit.ko come from the same release, and load the module anew"};
    case EPERM:
    case EACCES:
      return {"aditd may not use adit.ko here: CAP_NET_ADMIN is missing", "run aditd as root"};
    default:
      return {error.message, "look into the kernel's log (dmesg)"};
  }
}

/// modules.dep names every module that modprobe finds, each in a line that begins with its path; a
/// compressed one ends in .ko.xz or the like. modules.builtin is the same for what needs no
/// loading.
bool isListed(const std::filesystem::path& index) {
  std::ifstream file(index);
  for (std::string line; std::getline(file, line);) {
    const std::string path = line.substr(0, line.find(':'));
    if (std::filesystem::path(path).filename().string().starts_with("adit.ko")) return true;
  }
  return false;
}

}  // namespace

std::string kernelRelease() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "this kernel";
}

std::optional<ModuleUnavailable> kernelModuleObstacle(const std::string& kernel,
                                                      const std::filesystem::path& root) {
  std::error_code ignored;
  if (std::filesystem::exists(root / "sys/module/adit", ignored)) return std::nullopt;
  const auto modules = root / "lib/modules" / kernel;
  if (!isListed(modules / "modules.dep") && !isListed(modules / "modules.builtin")) {
    return explainLoadFailure(Error{"", ENOENT}, kernel);
  }
  char disabled = '0';
  std::ifstream(root / "proc/sys/kernel/modules_disabled") >> disabled;
  if (disabled == '1') return explainLoadFailure(Error{"", EPERM}, kernel);
  return std::nullopt;
}

ModuleUnavailable explainLoadFailure(const Error& error, const std::string& kernel) {
  switch (error.code) {
    case ENOENT:
      return {fmt::format("adit.ko is not installed for Linux {}", kernel),
              "install it (DKMS, or `make -C kmod install`)"};
    case EKEYREJECTED:
    case ENOKEY:
      return {"adit.ko is refused by Secure Boot: it has no signature that the kernel trusts",
              "sign it and enroll the key (`mokutil --import`)"};
    case EPERM:
      return {"the kernel takes no modules (lockdown, or kernel.modules_disabled = 1)",
              "load adit.ko early at boot, or lift that"};
    case EACCES:
      return {"aditd may not load modules here (CAP_SYS_MODULE is missing, as in a container)",
              "run `modprobe adit` on the host"};
    case ENOEXEC:
      return {fmt::format("adit.ko was built for another kernel than Linux {}", kernel),
              "build it again (`dkms autoinstall`)"};
    default:
      return {error.message, "look into the kernel's log (dmesg)"};
  }
}

tl::expected<std::unique_ptr<netlink::GenlChannel>, ModuleUnavailable> openKernelModule(
    const OpenChannel& open, Privileged& privileged) {
  auto channel = open();
  if (!channel && channel.error().code == ENOENT) {
    if (auto loaded = privileged.loadModule(); !loaded) {
      return tl::unexpected(explainLoadFailure(loaded.error(), kernelRelease()));
    }
    channel = open();
    if (!channel && channel.error().code == ENOENT) {
      return tl::unexpected(
          ModuleUnavailable{"adit.ko is loaded, but does not serve this network namespace",
                            "run aditd on the host, or use Backend = userspace"});
    }
  }
  if (!channel) {
    return tl::unexpected(explainOpenFailure(channel.error()));
  }
  return *std::move(channel);
}

}  // namespace adit::control
