#include "control/privileged_confine.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>

namespace adit::control {
namespace {

constexpr uid_t kNobody = 65534;
constexpr std::uint16_t kFirstUnprivilegedPort = 1024;

struct FreeCapabilities {
  void operator()(cap_t capabilities) const { ::cap_free(capabilities); }
};
using Capabilities = std::unique_ptr<std::remove_pointer_t<cap_t>, FreeCapabilities>;

bool has(const Capabilities& capabilities, cap_flag_t set, int capability) {
  cap_flag_value_t value = CAP_CLEAR;
  return capabilities && ::cap_get_flag(capabilities.get(), capability, set, &value) == 0 &&
         value == CAP_SET;
}

/// In a user namespace most numbers stand for nobody outside and cannot be taken on.
bool isMapped(const char* mapFile, unsigned id) {
  std::ifstream map(mapFile);
  unsigned long first = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  while (map >> first >> outside >> count) {
    if (id >= first && id - first < count) return true;
  }
  return false;
}

/// Not permitted without CAP_SETPCAP; PR_SET_NO_NEW_PRIVS then does its work alone.
void emptyBoundingSet() {
  for (cap_value_t capability = 0; capability < ::cap_max_bits(); ++capability) {
    ::cap_drop_bound(capability);
  }
}

Result<void> changeUser(const WorkerIdentity& identity) {
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return failErrno(errno, "PR_SET_KEEPCAPS");
  if (::setgroups(0, nullptr) != 0 || ::setresgid(identity.gid, identity.gid, identity.gid) != 0 ||
      ::setresuid(identity.uid, identity.uid, identity.uid) != 0) {
    return failErrno(errno, "becoming user {}", identity.name);
  }
  return {};
}

Result<void> keepOnly(const std::vector<int>& capabilities) {
  const Capabilities before(::cap_get_proc());
  const Capabilities after(::cap_init());
  if (!before || !after) return failErrno(errno, "reading capabilities");
  for (const int capability : capabilities) {
    if (!has(before, CAP_PERMITTED, capability)) continue;
    const cap_value_t value = capability;
    ::cap_set_flag(after.get(), CAP_PERMITTED, 1, &value, CAP_SET);
    ::cap_set_flag(after.get(), CAP_EFFECTIVE, 1, &value, CAP_SET);
  }
  if (::cap_set_proc(after.get()) != 0) return failErrno(errno, "giving up capabilities");
  return {};
}

}  // namespace

WorkerIdentity workerIdentity() {
  if (const passwd* user = ::getpwnam("adit"); user != nullptr && user->pw_uid != 0) {
    return {"adit", user->pw_uid, user->pw_gid};
  }
  return {"nobody", kNobody, kNobody};
}

std::optional<gid_t> readersGroup() {
  const group* found = ::getgrnam("adit");
  return found != nullptr ? std::optional(found->gr_gid) : std::nullopt;
}

Result<void> checkRights() {
  if (has(Capabilities(::cap_get_proc()), CAP_EFFECTIVE, CAP_NET_ADMIN)) return {};
  return failErrno(EPERM,
                   "adit needs the right to change the network (CAP_NET_ADMIN): run it as root, or "
                   "give the container `--cap-add NET_ADMIN`");
}

Result<void> checkSeparable(const WorkerIdentity& identity) {
  if (::geteuid() != 0) return fail("it was not started as root");
  const Capabilities mine(::cap_get_proc());
  constexpr std::array kNeeded{CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN, CAP_DAC_OVERRIDE};
  for (const int capability : kNeeded) {
    if (has(mine, CAP_EFFECTIVE, capability)) continue;
    const std::unique_ptr<char, int (*)(void*)> name(::cap_to_name(capability), ::cap_free);
    return fail("root has no {} here", name ? name.get() : "capability");
  }
  if (!isMapped("/proc/self/uid_map", identity.uid) ||
      !isMapped("/proc/self/gid_map", identity.gid)) {
    return fail("user {} does not exist in this user namespace", identity.name);
  }
  return {};
}

void forbidDumps() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  rlimit size{};
  if (::getrlimit(RLIMIT_CORE, &size) == 0) {
    size.rlim_cur = 0;
    ::setrlimit(RLIMIT_CORE, &size);
  }
}

std::vector<int> workerCapabilities(std::optional<std::uint16_t> listenPort) {
  std::vector<int> capabilities{CAP_NET_ADMIN};
  if (listenPort.value_or(kFirstUnprivilegedPort) < kFirstUnprivilegedPort) {
    capabilities.push_back(CAP_NET_BIND_SERVICE);
  }
  return capabilities;
}

Result<void> confineRights(const std::vector<int>& capabilities) {
  if (auto kept = keepOnly(capabilities); !kept) return kept;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failErrno(errno, "PR_SET_NO_NEW_PRIVS");
  forbidDumps();
  return {};
}

Result<void> confine(const WorkerIdentity& identity, const std::vector<int>& capabilities,
                     pid_t parent) {
  emptyBoundingSet();
  if (auto changed = changeUser(identity); !changed) return changed;
  if (auto confined = confineRights(capabilities); !confined) return confined;
  // Last, since a change of user or of capabilities takes it back.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return failErrno(errno, "PR_SET_PDEATHSIG");
  if (::getppid() != parent) return fail("the privileged process ended");
  return {};
}

}  // namespace adit::control
