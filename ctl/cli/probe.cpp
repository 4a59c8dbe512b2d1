#include "cli/probe.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "util/unique_fd.hpp"

namespace adit::cli {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kHeaderV4 = 20;
constexpr std::size_t kHeaderV6 = 40;
constexpr std::size_t kTcpHeader = 20;
constexpr std::size_t kUdpHeader = 8;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kReset = 0x04;
/// ICMP "destination unreachable" and its code "port unreachable" (RFC 792, RFC 4443).
constexpr std::uint8_t kUnreachableV4 = 3;
constexpr std::uint8_t kPortV4 = 3;
constexpr std::uint8_t kUnreachableV6 = 1;
constexpr std::uint8_t kPortV6 = 4;
constexpr std::size_t kIcmpHeader = 8;

void put16(Bytes& out, std::uint32_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

void put32(Bytes& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

void put(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint16_t get16(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

void set16(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

/// RFC 1071.
std::uint16_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i] << 8) | (i + 1 < bytes.size() ? bytes[i + 1] : 0);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

/// One question: its packets, and which packets answer it.
class Question {
 public:
  Question(nat::Protocol protocol, const IpAddress& source, std::uint16_t port,
           const Endpoint& target)
      : tcp_(protocol == nat::Protocol::Tcp), source_(source), port_(port), target_(target) {}

  [[nodiscard]] Bytes packet(std::uint8_t flags, std::uint32_t sequence) const {
    Bytes segment;
    put16(segment, port_);
    put16(segment, target_.port);
    if (tcp_) {
      put32(segment, sequence);
      put32(segment, 0);
      segment.push_back(kTcpHeader / 4 << 4);
      segment.push_back(flags);
      put16(segment, 65535);
      put32(segment, 0);
    } else {
      put16(segment, kUdpHeader);
      put16(segment, 0);
    }
    Bytes pseudo;
    put(pseudo, source_.bytes());
    put(pseudo, target_.address.bytes());
    put32(pseudo, static_cast<std::uint32_t>(segment.size()));
    put32(pseudo, number());
    put(pseudo, segment);
    set16(segment, tcp_ ? 16 : 6, checksum(pseudo));
    Bytes packet = header(segment.size());
    put(packet, segment);
    return packet;
  }

  /// Silent where the packet is no answer.
  [[nodiscard]] Echo echoOf(std::span<const std::uint8_t> packet) const {
    const bool v6 = source_.isV6();
    if (packet.size() < (v6 ? kHeaderV6 : kHeaderV4) || packet[0] >> 4 != (v6 ? 6 : 4)) {
      return Echo::Silent;
    }
    const std::size_t length = v6 ? kHeaderV6 : static_cast<std::size_t>(packet[0] & 0xf) * 4;
    const std::uint8_t next = packet[v6 ? 6 : 9];
    if (length < kHeaderV4 || packet.size() < length + kUdpHeader ||
        !std::ranges::equal(packet.subspan(v6 ? 24 : 16, v6 ? 16 : 4), source_.bytes())) {
      return Echo::Silent;
    }
    const auto rest = packet.subspan(length);
    if (next == (v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP})) {
      return echoOfError(rest);
    }
    const bool ours =
        next == number() && get16(rest, 0) == target_.port && get16(rest, 2) == port_ &&
        std::ranges::equal(packet.subspan(v6 ? 8 : 12, v6 ? 16 : 4), target_.address.bytes());
    if (!ours || (tcp_ && rest.size() < kTcpHeader)) {
      return Echo::Silent;
    }
    return tcp_ && (rest[13] & kReset) != 0 ? Echo::Refused : Echo::Answered;
  }

 private:
  [[nodiscard]] std::uint8_t number() const {
    return static_cast<std::uint8_t>(tcp_ ? int{IPPROTO_TCP} : int{IPPROTO_UDP});
  }

  [[nodiscard]] Bytes header(std::size_t payload) const {
    Bytes out;
    if (source_.isV6()) {
      put32(out, 6U << 28);
      put16(out, static_cast<std::uint32_t>(payload));
      out.push_back(number());
      out.push_back(64);
    } else {
      put16(out, 0x4500);
      put16(out, static_cast<std::uint32_t>(kHeaderV4 + payload));
      put32(out, 0);
      out.push_back(64);
      out.push_back(number());
      put16(out, 0);
    }
    put(out, source_.bytes());
    put(out, target_.address.bytes());
    if (!source_.isV6()) {
      set16(out, 10, checksum(out));
    }
    return out;
  }

  /// An error quotes the packet that it is about.
  [[nodiscard]] Echo echoOfError(std::span<const std::uint8_t> message) const {
    const bool v6 = source_.isV6();
    const std::size_t header = v6 ? kHeaderV6 : kHeaderV4;
    if (message.size() < kIcmpHeader + header + 4 ||
        message[0] != (v6 ? kUnreachableV6 : kUnreachableV4) ||
        get16(message, kIcmpHeader + header) != port_) {
      return Echo::Silent;
    }
    return message[1] == (v6 ? kPortV6 : kPortV4) ? Echo::Refused : Echo::Unreachable;
  }

  bool tcp_;
  IpAddress source_;
  std::uint16_t port_;
  Endpoint target_;
};

/// A socket that sends and sees IP packets of one interface.
class Wire {
 public:
  static Result<Wire> open(const std::string& interface, bool v6) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    if (address.sll_ifindex == 0) {
      return failErrno(errno, "{}", interface);
    }
    Wire wire(UniqueFd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, address.sll_protocol)),
              address);
    const auto* name = static_cast<const sockaddr*>(static_cast<const void*>(&wire.address_));
    if (!wire.socket_ || ::bind(wire.socket_.get(), name, sizeof(wire.address_)) != 0) {
      return failErrno(errno, "{}: cannot send packets of its own", interface);
    }
    return wire;
  }

  Result<void> send(const Bytes& packet) const {
    const auto* name = static_cast<const sockaddr*>(static_cast<const void*>(&address_));
    if (::sendto(socket_.get(), packet.data(), packet.size(), 0, name, sizeof(address_)) < 0) {
      return failErrno(errno, "send a probe");
    }
    return {};
  }

  /// The next packet that came in; nothing at the deadline.
  [[nodiscard]] std::span<const std::uint8_t> receive(std::chrono::steady_clock::time_point end) {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd ready{socket_.get(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
        return {};
      }
      sockaddr_ll from{};
      socklen_t length = sizeof(from);
      const ssize_t size = ::recvfrom(socket_.get(), buffer_.data(), buffer_.size(), 0,
                                      static_cast<sockaddr*>(static_cast<void*>(&from)), &length);
      if (size > 0 && from.sll_pkttype != PACKET_OUTGOING) {
        return std::span(buffer_).first(static_cast<std::size_t>(size));
      }
    }
  }

 private:
  Wire(UniqueFd socket, const sockaddr_ll& address)
      : socket_(std::move(socket)), address_(address) {}

  UniqueFd socket_;
  sockaddr_ll address_;
  std::array<std::uint8_t, 2048> buffer_{};
};

}  // namespace

Result<Echo> probe(const std::string& interface, nat::Protocol protocol, const IpAddress& source,
                   const Endpoint& target, std::chrono::milliseconds patience) {
  std::array<std::uint32_t, 2> random{};
  if (::getrandom(random.data(), sizeof(random), 0) != sizeof(random)) {
    return failErrno(errno, "getrandom");
  }
  auto wire = Wire::open(interface, source.isV6());
  if (!wire) {
    return tl::unexpected(wire.error());
  }
  const auto port = static_cast<std::uint16_t>(32768 + random[0] % 28000);
  const Question question(protocol, source, port, target);
  if (auto sent = wire->send(question.packet(kSyn, random[1])); !sent) {
    return tl::unexpected(sent.error());
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  for (auto packet = wire->receive(end); !packet.empty(); packet = wire->receive(end)) {
    const Echo echo = question.echoOf(packet);
    if (echo == Echo::Silent) {
      continue;
    }
    if (echo == Echo::Answered && protocol == nat::Protocol::Tcp) {
      // The service need not wait for the rest of the handshake.
      (void)wire->send(question.packet(kReset, random[1] + 1));
    }
    return echo;
  }
  return Echo::Silent;
}

}  // namespace adit::cli
