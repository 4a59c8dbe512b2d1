#include "cli/probe_wire.hpp"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace adit::cli {

Result<Wire> Wire::open(const std::string& interface) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  // Not of one protocol: what goes out is shown to those alone who want all.
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) {
    return failErrno(errno, "{}", interface);
  }
  Wire wire(UniqueFd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), address);
  const auto* name = static_cast<const sockaddr*>(static_cast<const void*>(&wire.address_));
  if (!wire.socket_ || ::bind(wire.socket_.get(), name, sizeof(wire.address_)) != 0) {
    return failErrno(errno, "{}: cannot send packets of its own", interface);
  }
  return wire;
}

Result<void> Wire::send(const Bytes& packet) const {
  sockaddr_ll address = address_;
  address.sll_protocol = htons(packet[0] >> 4 == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP);
  const auto* name = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  if (::sendto(socket_.get(), packet.data(), packet.size(), 0, name, sizeof(address)) < 0) {
    return failErrno(errno, "send a probe");
  }
  return {};
}

std::optional<Wire::Seen> Wire::next() {
  sockaddr_ll from{};
  socklen_t length = sizeof(from);
  const ssize_t size = ::recvfrom(socket_.get(), buffer_.data(), buffer_.size(), 0,
                                  static_cast<sockaddr*>(static_cast<void*>(&from)), &length);
  if (size < 0) {
    return std::nullopt;
  }
  return Seen{std::span(buffer_).first(static_cast<std::size_t>(size)),
              from.sll_pkttype == PACKET_OUTGOING};
}

bool waitFor(std::initializer_list<const Wire*> wires, std::chrono::steady_clock::time_point end) {
  std::vector<pollfd> ready;
  for (const Wire* wire : wires) {
    ready.push_back({wire->descriptor(), POLLIN, 0});
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return left.count() > 0 && ::poll(ready.data(), ready.size(), static_cast<int>(left.count())) > 0;
}

}  // namespace adit::cli
