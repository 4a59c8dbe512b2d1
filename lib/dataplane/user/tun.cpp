#include "dataplane/user/tun.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "dataplane/user/virtio_net.hpp"

namespace adit::dataplane::user {
namespace {

// Linux 6.2; newer than the headers of Debian 12.
constexpr unsigned kTunUso4 = 0x20;
constexpr unsigned kTunUso6 = 0x40;
constexpr unsigned kTunTcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
constexpr unsigned kTunUdp = kTunUso4 | kTunUso6;

constexpr short kSingleQueue = static_cast<short>(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR);
constexpr short kMultiQueue = static_cast<short>(kSingleQueue | IFF_MULTI_QUEUE);

Result<ifreq> requestFor(const std::string& name) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof(request.ifr_name)) {
    return fail("\"{}\" is not an interface name: 1 to 15 bytes", name);
  }
  std::memcpy(request.ifr_name, name.data(), name.size());
  return request;
}

tl::unexpected<Error> attachError(int code, const std::string& name) {
  switch (code) {
    case EBUSY:
      return failErrno(code, "interface {} is in use by another program", name);
    case EPERM:
      return failErrno(code, "cannot create the TUN device {}: run as root or with CAP_NET_ADMIN",
                       name);
    case EINVAL:
      return failErrno(code,
                       "there is an interface {} already that is not ours: remove it "
                       "(ip link delete {}) or choose another name",
                       name, name);
    default:
      return failErrno(code, "cannot create the TUN device {}", name);
  }
}

Result<UniqueFd> openDevice() {
  UniqueFd fd(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (fd) return fd;
  return failErrno(errno,
                   "cannot open /dev/net/tun (load the module with `modprobe tun`; give a "
                   "container `--device /dev/net/tun`)");
}

Result<UniqueFd> openQueue(const TunSettings& settings, short kind) {
  auto request = requestFor(settings.name);
  if (!request) return tl::unexpected(request.error());
  auto fd = settings.openDevice ? settings.openDevice() : openDevice();
  if (!fd) return fd;
  const int flags = ::fcntl(fd->get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd->get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return failErrno(errno, "cannot make the TUN device {} non-blocking", settings.name);
  }
  request->ifr_flags = kind;
  if (::ioctl(fd->get(), TUNSETIFF, &*request) != 0) return attachError(errno, settings.name);
  return fd;
}

// Whether somebody moves packets of an existing device: it has a carrier only while a queue is
// open. The kernel refuses a second user of a single-queue device by itself, but not of a
// multi-queue one.
bool isRunning(const std::string& name) {
  auto request = requestFor(name);
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return request && fd && ::ioctl(fd.get(), SIOCGIFFLAGS, &*request) == 0 &&
         (request->ifr_flags & IFF_RUNNING) != 0;
}

// A device that was left behind may have been made for another number of queues: its kind stays,
// and a single-queue one serves with the one that it has.
Result<std::vector<UniqueFd>> openQueues(const TunSettings& settings) {
  if (isRunning(settings.name)) return attachError(EBUSY, settings.name);
  short kind = settings.queues > 1 ? kMultiQueue : kSingleQueue;
  std::size_t count = settings.queues;
  auto first = openQueue(settings, kind);
  if (!first && first.error().code == EINVAL) {
    kind = kind == kMultiQueue ? kSingleQueue : kMultiQueue;
    if (kind == kSingleQueue) count = 1;
    first = openQueue(settings, kind);
  }
  if (!first) return tl::unexpected(first.error());
  std::vector<UniqueFd> queues;
  queues.push_back(std::move(*first));
  while (queues.size() < count) {
    auto next = openQueue(settings, kind);
    if (!next) return tl::unexpected(next.error());
    queues.push_back(std::move(*next));
  }
  return queues;
}

TunOffload negotiateOffload(int fd, bool wanted) {
  if (wanted) {
    if (::ioctl(fd, TUNSETOFFLOAD, kTunTcp | kTunUdp) == 0) return {.tcp = true, .udp = true};
    if (::ioctl(fd, TUNSETOFFLOAD, kTunTcp) == 0) return {.tcp = true, .udp = false};
  }
  ::ioctl(fd, TUNSETOFFLOAD, 0U);
  return {};
}

Result<void> setMtu(const std::string& name, unsigned mtu) {
  auto request = requestFor(name);
  if (!request) return tl::unexpected(request.error());
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request->ifr_mtu = static_cast<int>(mtu);
  if (!fd || ::ioctl(fd.get(), SIOCSIFMTU, &*request) != 0) {
    return failErrno(errno, "cannot set the MTU of {} to {}", name, mtu);
  }
  return {};
}

}  // namespace

Result<Tun> Tun::open(const TunSettings& settings) {
  Tun tun;
  tun.name_ = settings.name;
  auto queues = openQueues(settings);
  if (!queues) return tl::unexpected(queues.error());
  tun.queues_ = std::move(*queues);
  const int first = tun.queue(0);
  int headerLength = sizeof(VirtioNetHeader);
  if (::ioctl(first, TUNSETVNETHDRSZ, &headerLength) != 0) {
    return failErrno(errno, "cannot set the packet header of {}", settings.name);
  }
  tun.offload_ = negotiateOffload(first, settings.offload);
  if (settings.mtu != 0) {
    if (const auto done = setMtu(settings.name, settings.mtu); !done) {
      return tl::unexpected(done.error());
    }
  }
  // Last, so that a failure above leaves no new device behind.
  if (::ioctl(first, TUNSETPERSIST, 1UL) != 0) {
    return failErrno(errno, "cannot make {} persistent", settings.name);
  }
  return tun;
}

void Tun::destroy() {
  if (!queues_.empty()) ::ioctl(queue(0), TUNSETPERSIST, 0UL);
  queues_.clear();
}

unsigned readMtu(const std::string& interface) {
  auto request = requestFor(interface);
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!request || !fd || ::ioctl(fd.get(), SIOCGIFMTU, &*request) != 0) return 0;
  return static_cast<unsigned>(request->ifr_mtu);
}

}  // namespace adit::dataplane::user
