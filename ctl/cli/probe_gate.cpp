#include "cli/probe_gate.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "netlink/redirect.hpp"
#include "netlink/route.hpp"

namespace adit::cli {
namespace {

constexpr const char* kDevice = "/dev/net/tun";
/// The kernel puts a number in.
constexpr const char* kName = "aditprobe%d";
/// A sender that is nobody: locally administered.
constexpr std::array<std::uint8_t, 6> kNobody = {2, 0, 0, 0, 0, 1};

}  // namespace

Result<Gate> Gate::open(const std::string& into) {
  Gate gate(UniqueFd(::open(kDevice, O_RDWR | O_CLOEXEC)));
  ifreq request{};
  std::strncpy(request.ifr_name, kName, sizeof(request.ifr_name) - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (!gate.tap_ || ::ioctl(gate.tap_.get(), TUNSETIFF, &request) != 0) {
    return failErrno(errno, "{}: cannot make an interface", kDevice);
  }
  // Of TAP devices this asks the interface itself.
  ifreq hardware{};
  if (::ioctl(gate.tap_.get(), SIOCGIFHWADDR, &hardware) != 0) {
    return failErrno(errno, "{}: cannot read its address", request.ifr_name);
  }
  std::memcpy(gate.address_.data(), hardware.ifr_hwaddr.sa_data, gate.address_.size());
  const std::uint32_t index = ::if_nametoindex(request.ifr_name);
  auto routing = netlink::RouteSocket::open();
  if (!routing) {
    return tl::unexpected(routing.error());
  }
  if (auto silent = (*routing)->setLinkSilent(index); !silent) {
    return tl::unexpected(silent.error());
  }
  if (auto redirected = netlink::redirectIncoming(index, ::if_nametoindex(into.c_str()));
      !redirected) {
    return tl::unexpected(redirected.error());
  }
  if (auto up = (*routing)->setLinkUp(index, true); !up) {
    return tl::unexpected(up.error());
  }
  return gate;
}

Result<void> Gate::send(const Bytes& packet) const {
  const std::uint16_t type = packet[0] >> 4 == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP;
  Bytes frame(address_.begin(), address_.end());
  frame.insert(frame.end(), kNobody.begin(), kNobody.end());
  frame.push_back(static_cast<std::uint8_t>(type >> 8));
  frame.push_back(static_cast<std::uint8_t>(type & 0xff));
  frame.insert(frame.end(), packet.begin(), packet.end());
  if (::write(tap_.get(), frame.data(), frame.size()) != static_cast<ssize_t>(frame.size())) {
    return failErrno(errno, "send a probe");
  }
  return {};
}

}  // namespace adit::cli
