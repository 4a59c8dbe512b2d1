#include "control/privileged_channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace adit::control {
namespace {

constexpr std::size_t kPacket = kMaxRequest;
constexpr timeval kSendTimeout{10, 0};
constexpr std::uint8_t kMore = 0;
constexpr std::uint8_t kLast = 1;

/// Ancillary data of one descriptor, aligned as cmsghdr must be.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

Result<void> sendPacket(int socket, std::span<iovec> parts, int descriptor) {
  Control control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (descriptor >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control.bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return failErrno(errno, "the socket to the other process");
  }
  return {};
}

/// Takes the one descriptor that `message` may carry.
UniqueFd takeDescriptor(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
      return UniqueFd(descriptor);
    }
  }
  return {};
}

/// One packet into `buffer`; its length, 0 at the end.
Result<std::size_t> receivePacket(int socket, Bytes& buffer, UniqueFd& descriptor) {
  Control control{};
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t length = 0;
  while ((length = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return failErrno(errno, "the socket to the privileged process");
  }
  if (auto received = takeDescriptor(message)) descriptor = std::move(received);
  if ((message.msg_flags & MSG_TRUNC) != 0) return fail("a packet is too long");
  return static_cast<std::size_t>(length);
}

/// Waits for a packet; false at the end, which recv() cannot tell from a packet of no bytes.
bool awaitPacket(int socket) {
  pollfd waiting{socket, POLLIN | POLLRDHUP, 0};
  while (::poll(&waiting, 1, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return (waiting.revents & POLLIN) != 0 &&
         (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

/// The loop stands still until the answer is there, and is no less alive for that.
void awaitAnswer(int socket) {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) return;
  constexpr std::uint64_t kHalfInMilliseconds = 2000;
  pollfd waiting{socket, POLLIN, 0};
  while (::poll(&waiting, 1, static_cast<int>(microseconds / kHalfInMilliseconds)) <= 0) {
    ::sd_notify(0, "WATCHDOG=1");
  }
}

}  // namespace

Result<ChannelPair> makeChannel() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return failErrno(errno, "socketpair");
  }
  ChannelPair pair{UniqueFd(sockets[0]), UniqueFd(sockets[1])};
  if (auto bounded = boundSending(pair.privileged.get()); !bounded) {
    return tl::unexpected(bounded.error());
  }
  return pair;
}

Result<void> boundSending(int socket) {
  if (::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout)) != 0) {
    return failErrno(errno, "SO_SNDTIMEO");
  }
  return {};
}

std::optional<Bytes> receiveRequest(int socket) {
  if (!awaitPacket(socket)) return std::nullopt;
  Bytes request(kMaxRequest);
  // Without room for ancillary data the kernel closes descriptors that come along.
  ssize_t length = 0;
  while ((length = ::recv(socket, request.data(), request.size(), MSG_TRUNC)) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  request.resize(static_cast<std::size_t>(length) > kMaxRequest ? 0
                                                                : static_cast<std::size_t>(length));
  return request;
}

Result<void> sendAnswer(int socket, std::span<const std::uint8_t> answer, int descriptor) {
  do {
    const auto part = answer.first(std::min(answer.size(), kPacket - 1));
    answer = answer.subspan(part.size());
    std::uint8_t mark = answer.empty() ? kLast : kMore;
    // sendmsg() only reads what iov_base points to.
    iovec parts[] = {{&mark, 1}, {const_cast<std::uint8_t*>(part.data()), part.size()}};
    if (auto sent = sendPacket(socket, parts, std::exchange(descriptor, -1)); !sent) return sent;
  } while (!answer.empty());
  return {};
}

Result<void> sendRequest(int socket, std::span<const std::uint8_t> request) {
  if (request.size() > kMaxRequest) return fail("a request is too long");
  iovec part{const_cast<std::uint8_t*>(request.data()), request.size()};
  return sendPacket(socket, {&part, 1}, -1);
}

Result<Answer> receiveAnswer(int socket) {
  Answer answer;
  Bytes packet(kPacket);
  awaitAnswer(socket);
  while (true) {
    const auto length = receivePacket(socket, packet, answer.descriptor);
    if (!length) return tl::unexpected(length.error());
    if (*length == 0) return fail("the privileged process is gone");
    answer.bytes.insert(answer.bytes.end(), packet.begin() + 1,
                        packet.begin() + static_cast<std::ptrdiff_t>(*length));
    if (answer.bytes.size() > kMaxAnswer) return fail("an answer is too long");
    if (packet.front() == kLast) return answer;
  }
}

}  // namespace adit::control
