#include "cli/doctor_pinger.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace adit::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kHeaderV4 = 20;
constexpr std::uint32_t kHeaderV6 = 40;
/// Type, code, checksum, identity, sequence number (RFC 792, RFC 4443).
constexpr std::size_t kIcmpHeader = 8;
constexpr std::uint8_t kRequestV4 = 8;
constexpr std::uint8_t kReplyV4 = 0;
constexpr std::uint8_t kRequestV6 = 128;
constexpr std::uint8_t kReplyV6 = 129;
/// Answers of a whole train.
constexpr int kReceiveBuffer = 8 << 20;
/// How often a train puts packets on their way.
constexpr milliseconds kTick{2};

Result<void> setOption(int socket, int level, int option, int value, std::string_view what) {
  if (::setsockopt(socket, level, option, &value, sizeof(value)) != 0) {
    return failErrno(errno, "ping: {}", what);
  }
  return {};
}

Result<void> configure(int socket, const Pinger::Path& path) {
  const bool v6 = path.target.isV6();
  auto set = setOption(socket, v6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP},
                       v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                       v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE, "do not fragment");
  if (set && path.mark != 0) {
    set = setOption(socket, SOL_SOCKET, SO_MARK, static_cast<int>(path.mark), "mark");
  }
  if (!set) return set;
  // A train must not be lost here. Where it is not allowed, the usual buffer has to do.
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof(kReceiveBuffer));
  if (!path.device.empty() && ::setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, path.device.data(),
                                           static_cast<socklen_t>(path.device.size())) != 0) {
    return failErrno(errno, "ping: {}", path.device);
  }
  sockaddr_storage address{};
  if (!path.source.isUnspecified()) {
    const socklen_t length = Endpoint{path.source, 0, 0}.toSockaddr(address);
    if (::bind(socket, static_cast<sockaddr*>(static_cast<void*>(&address)), length) != 0) {
      return failErrno(errno, "ping from {}", path.source.toString());
    }
  }
  const socklen_t length = Endpoint{path.target, 0, 0}.toSockaddr(address);
  if (::connect(socket, static_cast<sockaddr*>(static_cast<void*>(&address)), length) != 0) {
    return failErrno(errno, "ping {}", path.target.toString());
  }
  return {};
}

/// RFC 1071. Of ICMPv6 the kernel makes it.
void putChecksum(std::vector<std::uint8_t>& message) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < message.size(); i += 2) {
    sum +=
        static_cast<std::uint32_t>(message[i] << 8) | (i + 1 < message.size() ? message[i + 1] : 0);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  message[2] = static_cast<std::uint8_t>(~sum >> 8);
  message[3] = static_cast<std::uint8_t>(~sum);
}

}  // namespace

std::uint32_t Pinger::smallest(bool v6) {
  return (v6 ? kHeaderV6 : kHeaderV4) + kIcmpHeader;
}

Result<Pinger> Pinger::open(const Path& path) {
  const bool v6 = path.target.isV6();
  UniqueFd socket(::socket(path.target.family(), SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP}));
  if (!socket) return failErrno(errno, "ping");
  if (auto configured = configure(socket.get(), path); !configured) {
    return tl::unexpected(configured.error());
  }
  std::uint16_t identity = 0;
  if (::getrandom(&identity, sizeof(identity), 0) != sizeof(identity)) {
    return failErrno(errno, "getrandom");
  }
  return Pinger(std::move(socket), v6, identity);
}

bool Pinger::send(std::uint32_t size, std::uint16_t sequence) {
  const std::size_t payload = std::max(size, smallest(v6_)) - (v6_ ? kHeaderV6 : kHeaderV4);
  std::vector<std::uint8_t> message(payload);
  message[0] = v6_ ? kRequestV6 : kRequestV4;
  std::memcpy(&message[4], &identity_, sizeof(identity_));
  std::memcpy(&message[6], &sequence, sizeof(sequence));
  if (!v6_) putChecksum(message);
  return ::send(socket_.get(), message.data(), message.size(), 0) ==
         static_cast<ssize_t>(message.size());
}

std::optional<std::uint16_t> Pinger::receive(Time until) {
  for (;;) {
    const ssize_t size = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
    if (size < 0 && errno == EAGAIN) {
      const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
      pollfd ready{socket_.get(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) return {};
      continue;
    }
    // An error that somebody on the way has sent; the next call reads on.
    if (size < 0) {
      if (Clock::now() >= until) return {};
      continue;
    }
    // Raw IPv4 sockets get the IP header, too.
    const std::size_t header = v6_ ? 0 : static_cast<std::size_t>(buffer_[0] & 0xf) * 4;
    if (static_cast<std::size_t>(size) < header + kIcmpHeader) continue;
    const std::uint8_t* message = buffer_.data() + header;
    std::uint16_t sequence = 0;
    std::memcpy(&sequence, message + 6, sizeof(sequence));
    if (message[0] == (v6_ ? kReplyV6 : kReplyV4) &&
        std::memcmp(message + 4, &identity_, sizeof(identity_)) == 0) {
      return sequence;
    }
  }
}

std::optional<microseconds> Pinger::ping(std::uint32_t size, milliseconds patience) {
  const auto start = Clock::now();
  const std::uint16_t wanted = ++sequence_;
  if (!send(size, wanted)) return std::nullopt;
  while (const auto answered = receive(start + patience)) {
    if (*answered == wanted) {
      return std::chrono::duration_cast<microseconds>(Clock::now() - start);
    }
  }
  return std::nullopt;
}

Pinger::Train Pinger::train(double rate, std::uint32_t size, milliseconds duration,
                            milliseconds patience) {
  const auto count = static_cast<std::size_t>(
      std::clamp(rate * std::chrono::duration<double>(duration).count() / (8.0 * size), 1.0, 6e4));
  std::vector<Time> sentAt(count);
  std::vector<microseconds> delays;
  const std::uint16_t first = sequence_ + 1;
  const auto take = [&](Time until) {
    const auto answered = receive(until);
    if (!answered) return false;
    const auto index = static_cast<std::uint16_t>(*answered - first);
    if (index < count && sentAt[index] != Time{}) {
      delays.push_back(std::chrono::duration_cast<microseconds>(Clock::now() - sentAt[index]));
      sentAt[index] = Time{};
    }
    return true;
  };
  const auto start = Clock::now();
  std::size_t sent = 0;
  while (sent < count) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    const auto due = std::min(count, static_cast<std::size_t>(passed * rate / (8.0 * size)) + 1);
    for (; sent < due; ++sent) {
      sentAt[sent] = Clock::now();
      // What does not leave here counts as lost.
      (void)send(size, ++sequence_);
    }
    const auto tick = Clock::now() + kTick;
    while (take(tick)) {
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  while (delays.size() < count && take(Clock::now() + patience)) {
  }
  Train result;
  result.offered = static_cast<double>(count) * size * 8 / seconds;
  result.delivered = static_cast<double>(delays.size()) * size * 8 / seconds;
  result.loss = 1 - static_cast<double>(delays.size()) / static_cast<double>(count);
  if (!delays.empty()) {
    std::ranges::nth_element(delays,
                             delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2));
    result.delay = delays[delays.size() / 2];
  }
  return result;
}

}  // namespace adit::cli
