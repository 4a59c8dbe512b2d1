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

// Always multi-queue, so that a device that was left behind can be taken over with another number
// of lanes.
constexpr short kFlags = static_cast<short>(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE);

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

Result<UniqueFd> openQueue(const TunSettings& settings) {
  auto request = requestFor(settings.name);
  if (!request) return tl::unexpected(request.error());
  auto fd = settings.openDevice ? settings.openDevice() : openDevice();
  if (!fd) return fd;
  const int flags = ::fcntl(fd->get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd->get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return failErrno(errno, "cannot make the TUN device {} non-blocking", settings.name);
  }
  request->ifr_flags = kFlags;
  if (::ioctl(fd->get(), TUNSETIFF, &*request) != 0) return attachError(errno, settings.name);
  return fd;
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
  for (std::size_t i = 0; i < settings.queues; ++i) {
    auto fd = openQueue(settings);
    if (!fd) return tl::unexpected(fd.error());
    tun.queues_.push_back(std::move(*fd));
  }
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
