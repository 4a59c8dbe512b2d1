#include "netlink/genl.hpp"

#include <linux/genetlink.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "netlink/transport.hpp"
#include "util/unique_fd.hpp"

namespace adit::netlink {
namespace {

constexpr int kDumpAttempts = 5;
/// The kernel sends dumps in pieces of at most 32 KiB.
constexpr std::size_t kReceiveBuffer = 64 * 1024;
/// What the kernel may queue of a dump, or of a single answer.
constexpr int kQueryBuffer = 256 * 1024;
/// Events that arrived in the midst of requests; more count as lost.
constexpr std::size_t kMaximumWaiting = 4096;
constexpr std::uint8_t kControllerVersion = 2;

using OnMessage = std::function<void(const nlmsghdr*)>;

/// One socket, and the requests that are made on it, one at a time.
///
/// The kernel works on a request while it is sent, and on the next piece of a dump while one is
/// received, so an answer that is not there will not come: it was lost because the receive buffer
/// was full.
class Conversation {
 public:
  static Result<Conversation> open(int receiveBuffer);

  [[nodiscard]] int descriptor() const { return mnl_socket_get_fd(socket_.get()); }
  Result<void> join(std::uint32_t group);

  /// Sends a request and hands over every answer. Messages of the kernel's own accord go to
  /// `unsolicited`.
  Result<void> exchange(GenlRequest& request, std::uint16_t family, std::uint8_t version,
                        std::uint16_t flags, const OnMessage& answer, const OnMessage& unsolicited);
  /// As the last dump said.
  [[nodiscard]] bool interrupted() const { return interrupted_; }

  /// Takes one datagram in without waiting. False when there is none.
  Result<bool> receive(const OnMessage& message);
  /// Messages were lost since this was last asked.
  bool takeLost() { return std::exchange(lost_, false); }

 private:
  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  explicit Conversation(std::unique_ptr<mnl_socket, Close> socket)
      : socket_(std::move(socket)), buffer_(kReceiveBuffer) {}

  std::unique_ptr<mnl_socket, Close> socket_;
  std::uint32_t sequence_ = 0;
  bool interrupted_ = false;
  bool lost_ = false;
  std::vector<char> buffer_;
};

Result<Conversation> Conversation::open(int receiveBuffer) {
  std::unique_ptr<mnl_socket, Close> socket(
      mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    return failErrno(errno, "open a generic netlink socket");
  }
  int on = 1;
  // Errors must not repeat a request that holds keys.
  if (mnl_socket_setsockopt(socket.get(), NETLINK_CAP_ACK, &on, sizeof(on)) < 0) {
    return failErrno(errno, "set up a generic netlink socket");
  }
  mnl_socket_setsockopt(socket.get(), NETLINK_EXT_ACK, &on, sizeof(on));
  if (::setsockopt(mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVBUFFORCE, &receiveBuffer,
                   sizeof(receiveBuffer)) != 0) {
    // Without the right to go beyond net.core.rmem_max it gets as much as that.
    ::setsockopt(mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVBUF, &receiveBuffer,
                 sizeof(receiveBuffer));
  }
  if (mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    return failErrno(errno, "bind a generic netlink socket");
  }
  return Conversation(std::move(socket));
}

Result<void> Conversation::join(std::uint32_t group) {
  if (mnl_socket_setsockopt(socket_.get(), NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
    return failErrno(errno, "join generic netlink group {}", group);
  }
  return {};
}

Result<bool> Conversation::receive(const OnMessage& message) {
  for (;;) {
    sockaddr_nl sender{};
    iovec piece{buffer_.data(), buffer_.size()};
    msghdr header{};
    header.msg_name = &sender;
    header.msg_namelen = sizeof(sender);
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    const ssize_t received = ::recvmsg(descriptor(), &header, MSG_DONTWAIT);
    if (received < 0 && errno == EAGAIN) {
      return false;
    }
    if (received < 0 && errno != EINTR && errno != ENOBUFS) {
      return failErrno(errno, "receive from generic netlink");
    }
    if ((received < 0 && errno == ENOBUFS) || (header.msg_flags & MSG_TRUNC) != 0) {
      lost_ = true;
      continue;
    }
    // Another process with the right to may send here, too.
    if (received < 0 || sender.nl_pid != 0) {
      continue;
    }
    int left = static_cast<int>(received);
    const void* start = buffer_.data();
    for (const auto* part = static_cast<const nlmsghdr*>(start); mnl_nlmsg_ok(part, left);
         part = mnl_nlmsg_next(part, &left)) {
      message(part);
    }
    return true;
  }
}

Result<void> Conversation::exchange(GenlRequest& request, std::uint16_t family,
                                    std::uint8_t version, std::uint16_t flags,
                                    const OnMessage& answer, const OnMessage& unsolicited) {
  if (++sequence_ == 0) {
    ++sequence_;
  }
  interrupted_ = false;
  const auto bytes = request.encode(family, version, flags, sequence_);
  if (mnl_socket_sendto(socket_.get(), bytes.data(), bytes.size()) < 0) {
    return tl::unexpected(Error{std::strerror(errno), errno});
  }
  std::optional<Result<void>> outcome;
  const auto sort = [&](const nlmsghdr* part) {
    // What the kernel sends by itself is addressed to nobody, or has no number.
    if (part->nlmsg_pid == 0 || part->nlmsg_seq == 0) {
      return unsolicited(part);
    }
    // Another number is the answer to a request whose outcome was given up.
    if (part->nlmsg_seq != sequence_ || outcome) {
      return;
    }
    interrupted_ = interrupted_ || (part->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
    if (part->nlmsg_type == NLMSG_ERROR || part->nlmsg_type == NLMSG_DONE) {
      outcome = outcomeOf(part);
    } else {
      answer(part);
    }
  };
  while (!outcome) {
    const auto received = receive(sort);
    if (!received) {
      return tl::unexpected(received.error());
    }
    if (!*received) {
      return tl::unexpected(Error{"the kernel's answer was lost", ENOBUFS});
    }
  }
  return *outcome;
}

/// The command and the attributes of a message of generic netlink.
bool split(const nlmsghdr* message, std::uint8_t& command,
           std::span<const std::uint8_t>& attributes) {
  if (mnl_nlmsg_get_payload_len(message) < GENL_HDRLEN) {
    return false;
  }
  const auto* payload = static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(message));
  command = payload[offsetof(genlmsghdr, cmd)];
  attributes = {payload + GENL_HDRLEN, mnl_nlmsg_get_payload_len(message) - GENL_HDRLEN};
  return true;
}

GenlFamily parseFamily(const Attributes& attributes) {
  GenlFamily family;
  family.id = attributes.u16(CTRL_ATTR_FAMILY_ID).value_or(0);
  family.version = attributes.u32(CTRL_ATTR_VERSION).value_or(0);
  forEachAttribute(attributes.bytes(CTRL_ATTR_MCAST_GROUPS),
                   [&](std::span<const std::uint8_t> payload) {
                     const Attributes group(payload);
                     const auto name = group.string(CTRL_ATTR_MCAST_GRP_NAME);
                     const auto id = group.u32(CTRL_ATTR_MCAST_GRP_ID);
                     if (name && id) {
                       family.groups.emplace(*name, *id);
                     }
                   });
  return family;
}

Result<GenlFamily> findFamily(Conversation& conversation, std::string_view name) {
  GenlRequest request(CTRL_CMD_GETFAMILY);
  request.putString(CTRL_ATTR_FAMILY_NAME, name);
  GenlFamily family;
  const auto result = conversation.exchange(
      request, GENL_ID_CTRL, kControllerVersion, NLM_F_ACK,
      [&](const nlmsghdr* answer) {
        std::uint8_t command = 0;
        std::span<const std::uint8_t> attributes;
        if (split(answer, command, attributes)) {
          family = parseFamily(Attributes(attributes));
        }
      },
      [](const nlmsghdr*) {});
  const std::string doing = fmt::format("look up the generic netlink family {}", name);
  if (!result) {
    return wrapError(result.error(), doing);
  }
  if (family.id < GENL_MIN_ID) {
    return failErrno(EBADMSG, "{}", doing);
  }
  return family;
}

}  // namespace

Result<GenlFamily> findGenlFamily(std::string_view name) {
  auto conversation = Conversation::open(kQueryBuffer);
  if (!conversation) {
    return tl::unexpected(conversation.error());
  }
  return findFamily(*conversation, name);
}

class GenlSocket::Impl {
 public:
  Impl(Conversation changes, Conversation queries, GenlFamily family, std::uint8_t spoken)
      : changes_(std::move(changes)),
        queries_(std::move(queries)),
        family_(std::move(family)),
        spoken_(spoken),
        waitingSignal_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        poll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  Result<void> watch() {
    for (const int descriptor : {changes_.descriptor(), waitingSignal_.get()}) {
      epoll_event event{};
      event.events = EPOLLIN;
      if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
        return failErrno(errno, "watch a generic netlink socket");
      }
    }
    return {};
  }
  Result<void> join(const std::string& group) {
    const auto found = family_.groups.find(group);
    if (found == family_.groups.end()) {
      return failErrno(ENOENT, "there is no generic netlink group {}", group);
    }
    return changes_.join(found->second);
  }

  [[nodiscard]] std::uint32_t version() const { return family_.version; }
  [[nodiscard]] int eventDescriptor() const { return poll_.get(); }

  Result<void> change(GenlRequest& request) {
    auto result = changes_.exchange(
        request, family_.id, spoken_, NLM_F_ACK, [](const nlmsghdr*) {},
        [this](const nlmsghdr* message) { keep(message); });
    lost_ = changes_.takeLost() || lost_;
    signalWaiting();
    return result;
  }

  Result<void> query(Query kind, GenlRequest& request, const std::function<void()>& restart,
                     const Receiver& answer) {
    const auto flags = static_cast<std::uint16_t>(kind == Query::Dump ? NLM_F_DUMP : NLM_F_ACK);
    for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
      restart();
      auto result = queries_.exchange(
          request, family_.id, spoken_, flags,
          [&](const nlmsghdr* message) {
            std::uint8_t command = 0;
            std::span<const std::uint8_t> attributes;
            if (message->nlmsg_type == family_.id && split(message, command, attributes)) {
              answer(command, Attributes(attributes));
            }
          },
          [](const nlmsghdr*) {});
      queries_.takeLost();
      if (!result || !queries_.interrupted()) {
        return result;
      }
    }
    return failErrno(EAGAIN, "the kernel's lists kept changing while they were read");
  }

  Result<EventsRead> readEvents(std::size_t limit, const Receiver& event) {
    for (std::size_t i = 0; i < limit && waiting_.size() < limit; ++i) {
      const auto received = changes_.receive([this](const nlmsghdr* message) { keep(message); });
      if (!received) {
        return tl::unexpected(received.error());
      }
      if (!*received) {
        break;
      }
    }
    EventsRead read;
    for (; read.handedOver < limit && !waiting_.empty(); ++read.handedOver) {
      // Out of the queue first: `event` may make a request, which adds to it.
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      event(next.command, Attributes(next.attributes));
    }
    read.lost = changes_.takeLost() || lost_;
    lost_ = false;
    signalWaiting();
    return read;
  }

 private:
  struct Waiting {
    std::uint8_t command;
    std::vector<std::uint8_t> attributes;
  };

  void keep(const nlmsghdr* message) {
    std::uint8_t command = 0;
    std::span<const std::uint8_t> attributes;
    if (message->nlmsg_type != family_.id || !split(message, command, attributes)) {
      return;
    }
    if (waiting_.size() >= kMaximumWaiting) {
      lost_ = true;
      return;
    }
    waiting_.push_back({command, {attributes.begin(), attributes.end()}});
  }

  void signalWaiting() {
    if (!waiting_.empty() || lost_) {
      ::eventfd_write(waitingSignal_.get(), 1);
      return;
    }
    eventfd_t count = 0;
    ::eventfd_read(waitingSignal_.get(), &count);
  }

  Conversation changes_;
  Conversation queries_;
  GenlFamily family_;
  /// The version that requests name.
  std::uint8_t spoken_;
  std::deque<Waiting> waiting_;
  bool lost_ = false;
  UniqueFd waitingSignal_;
  UniqueFd poll_;
};

GenlSocket::GenlSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GenlSocket::~GenlSocket() = default;

Result<std::unique_ptr<GenlSocket>> GenlSocket::open(std::string_view name,
                                                     const Options& options) {
  auto changes = Conversation::open(options.receiveBuffer);
  if (!changes) {
    return tl::unexpected(changes.error());
  }
  auto queries = Conversation::open(kQueryBuffer);
  if (!queries) {
    return tl::unexpected(queries.error());
  }
  auto family = findFamily(*queries, name);
  if (!family) {
    return tl::unexpected(family.error());
  }
  if (family->version < options.oldest || family->version > options.newest) {
    return tl::unexpected(Error{
        fmt::format("the generic netlink family {} has version {}, and {} to {} are understood",
                    name, family->version, options.oldest, options.newest),
        EPROTONOSUPPORT});
  }
  const auto spoken = static_cast<std::uint8_t>(std::min(family->version, options.own));
  std::unique_ptr<GenlSocket> socket(new GenlSocket(std::make_unique<Impl>(
      std::move(*changes), std::move(*queries), std::move(*family), spoken)));
  if (auto watched = socket->impl_->watch(); !watched) {
    return tl::unexpected(watched.error());
  }
  for (const std::string& group : options.groups) {
    if (auto joined = socket->impl_->join(group); !joined) {
      return tl::unexpected(joined.error());
    }
  }
  return socket;
}

std::uint32_t GenlSocket::version() const {
  return impl_->version();
}

Result<void> GenlSocket::change(GenlRequest request) {
  return impl_->change(request);
}

Result<void> GenlSocket::query(Query kind, GenlRequest request,
                               const std::function<void()>& restart, const Receiver& answer) {
  return impl_->query(kind, request, restart, answer);
}

int GenlSocket::eventDescriptor() const {
  return impl_->eventDescriptor();
}

Result<GenlChannel::EventsRead> GenlSocket::readEvents(std::size_t limit, const Receiver& event) {
  return impl_->readEvents(limit, event);
}

}  // namespace adit::netlink
