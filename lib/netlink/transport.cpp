#include "netlink/transport.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace adit::netlink {
namespace {

constexpr int kDumpAttempts = 5;
/// The kernel sends dumps in pieces of at most 32 KiB.
constexpr std::size_t kReceiveBuffer = 64 * 1024;

/// The kernel's words behind the first `headerSize` bytes, or nothing.
std::optional<std::string> extendedReason(const nlmsghdr* message, std::size_t headerSize) {
  if ((message->nlmsg_flags & NLM_F_ACK_TLVS) == 0 ||
      headerSize > mnl_nlmsg_get_payload_len(message)) {
    return std::nullopt;
  }
  return Attributes(message, headerSize).string(NLMSGERR_ATTR_MSG);
}

/// What stands in front of the attributes of an NLMSG_ERROR: it repeats the request.
std::size_t errorHeaderSize(const nlmsghdr* message, const nlmsgerr* error) {
  const bool whole = (message->nlmsg_flags & NLM_F_CAPPED) == 0;
  return sizeof(nlmsgerr) + (whole ? mnl_nlmsg_get_payload_len(&error->msg) : 0);
}

}  // namespace

Result<void> outcomeOf(const nlmsghdr* message) {
  int code = 0;
  std::optional<std::string> reason;
  const std::size_t payload = mnl_nlmsg_get_payload_len(message);
  if (message->nlmsg_type == NLMSG_ERROR) {
    if (payload < sizeof(nlmsgerr)) {
      return failErrno(EBADMSG, "a netlink answer is too short");
    }
    const auto* error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message));
    code = -error->error;
    reason = extendedReason(message, errorHeaderSize(message, error));
  } else if (payload >= sizeof(int)) {
    std::memcpy(&code, mnl_nlmsg_get_payload(message), sizeof(code));
    code = -code;
    reason = extendedReason(message, sizeof(code));
  }
  if (code == 0) {
    return {};
  }
  return tl::unexpected(Error{reason.value_or(std::strerror(code)), code});
}

Message::Message(std::uint16_t type, std::uint16_t flags)
    : header_(mnl_nlmsg_put_header(buffer_.data())) {
  header_->nlmsg_type = type;
  header_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
}

void Message::put(std::uint16_t type, std::span<const std::uint8_t> bytes) {
  if (!mnl_attr_put_check(header_, buffer_.size(), type, bytes.size(), bytes.data())) {
    std::abort();
  }
}

void Message::putString(std::uint16_t type, std::string_view text) {
  const std::string terminated(text);
  if (!mnl_attr_put_strz_check(header_, buffer_.size(), type, terminated.c_str())) {
    std::abort();
  }
}

void Message::putU32(std::uint16_t type, std::uint32_t value) {
  if (!mnl_attr_put_u32_check(header_, buffer_.size(), type, value)) {
    std::abort();
  }
}

void Message::putU8(std::uint16_t type, std::uint8_t value) {
  if (!mnl_attr_put_u8_check(header_, buffer_.size(), type, value)) {
    std::abort();
  }
}

nlattr* Message::beginNest(std::uint16_t type) {
  nlattr* nest = mnl_attr_nest_start_check(header_, buffer_.size(), type);
  if (nest == nullptr) {
    std::abort();
  }
  return nest;
}

Transport::Transport(std::unique_ptr<mnl_socket, Close> socket)
    : socket_(std::move(socket)), buffer_(kReceiveBuffer) {}

Result<std::unique_ptr<Transport>> Transport::open(int protocol) {
  std::unique_ptr<mnl_socket, Close> socket(mnl_socket_open2(protocol, SOCK_CLOEXEC));
  if (!socket) {
    return failErrno(errno, "open a netlink socket");
  }
  // Both are refinements that old kernels lack: reasons in words, and filters applied by dumps.
  int on = 1;
  mnl_socket_setsockopt(socket.get(), NETLINK_EXT_ACK, &on, sizeof(on));
  mnl_socket_setsockopt(socket.get(), NETLINK_GET_STRICT_CHK, &on, sizeof(on));
  if (mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    return failErrno(errno, "bind a netlink socket");
  }
  return std::unique_ptr<Transport>(new Transport(std::move(socket)));
}

Result<void> Transport::change(Message& message) {
  message.get()->nlmsg_flags |= NLM_F_ACK;
  bool interrupted = false;
  return exchange(message, interrupted, [](const nlmsghdr*) {});
}

Result<void> Transport::query(Message& message, const std::function<void()>& restart,
                              const std::function<void(const nlmsghdr*)>& answer) {
  if ((message.get()->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) {
    message.get()->nlmsg_flags |= NLM_F_ACK;
  }
  for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
    restart();
    bool interrupted = false;
    auto result = exchange(message, interrupted, answer);
    if (!result || !interrupted) {
      return result;
    }
  }
  return failErrno(EAGAIN, "the kernel's tables kept changing while they were read");
}

Result<void> Transport::exchange(Message& message, bool& interrupted,
                                 const std::function<void(const nlmsghdr*)>& answer) {
  nlmsghdr* request = message.get();
  request->nlmsg_seq = ++sequence_;
  if (mnl_socket_sendto(socket_.get(), request, request->nlmsg_len) < 0) {
    return tl::unexpected(Error{std::strerror(errno), errno});
  }
  for (;;) {
    const ssize_t received = mnl_socket_recvfrom(socket_.get(), buffer_.data(), buffer_.size());
    if (received < 0) {
      if (errno == EINTR) {
        continue;
      }
      return tl::unexpected(Error{std::strerror(errno), errno});
    }
    int left = static_cast<int>(received);
    const void* position = buffer_.data();
    for (const auto* part = static_cast<const nlmsghdr*>(position); mnl_nlmsg_ok(part, left);
         part = mnl_nlmsg_next(part, &left)) {
      if (part->nlmsg_seq != sequence_) {
        continue;
      }
      interrupted = interrupted || (part->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (part->nlmsg_type == NLMSG_ERROR || part->nlmsg_type == NLMSG_DONE) {
        return outcomeOf(part);
      }
      answer(part);
    }
  }
}

tl::unexpected<Error> failDoing(const Error& reason, std::string_view doing) {
  if (reason.code == EPERM || reason.code == EACCES) {
    return tl::unexpected(
        Error{fmt::format("{}: permission denied; run as root or with CAP_NET_ADMIN", doing),
              reason.code});
  }
  return wrapError(reason, doing);
}

}  // namespace adit::netlink
