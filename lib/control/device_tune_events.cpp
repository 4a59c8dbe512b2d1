// What the kernel tells of its hardware (lib/kobject_uevent.c): a text of lines that end with a
// zero, "add@/devices/.../queues/rx-3", "ACTION=add", "SUBSYSTEM=queues".
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "control/device_tune.hpp"

namespace adit::control {
namespace {

/// The group that the kernel itself sends to; udev's is another.
constexpr unsigned kKernelGroup = 1;

bool isRelevant(std::string_view text) {
  using namespace std::string_view_literals;
  for (const std::string_view line : {"SUBSYSTEM=queues\0"sv, "SUBSYSTEM=cpu\0"sv}) {
    if (text.find(line) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

UniqueFd openHardwareEvents() {
  UniqueFd socket(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return socket;
}

bool takeHardwareEvents(int socket) {
  bool relevant = false;
  std::array<char, 8192> buffer;
  for (;;) {
    sockaddr_nl sender{};
    socklen_t length = sizeof(sender);
    const ssize_t received = ::recvfrom(socket, buffer.data(), buffer.size(), 0,
                                        reinterpret_cast<sockaddr*>(&sender), &length);
    if (received < 0 && errno == EINTR) continue;
    // Some were lost: it may have been about us.
    if (received < 0 && errno == ENOBUFS) {
      relevant = true;
      continue;
    }
    if (received < 0) return relevant;
    const std::string_view text(buffer.data(), static_cast<std::size_t>(received));
    // Only the kernel has the number 0.
    if (sender.nl_pid == 0 && isRelevant(text)) relevant = true;
  }
}

}  // namespace adit::control
