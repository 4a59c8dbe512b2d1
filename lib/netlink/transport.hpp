// Requests and answers of one netlink family over a libmnl socket. Internal to lib/netlink.
#pragma once

#include <libmnl/libmnl.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/attributes.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::netlink {

/// A request under construction. Attributes that do not fit are a programming error (the buffer
/// holds any message of this library several times).
class Message {
 public:
  /// NLM_F_REQUEST is added to `flags`.
  Message(std::uint16_t type, std::uint16_t flags);

  /// Appends the family's fixed header, zeroed. Once, before any attribute.
  template <typename Header>
  Header& extraHeader() {
    return *static_cast<Header*>(mnl_nlmsg_put_extra_header(header_, sizeof(Header)));
  }
  void put(std::uint16_t type, std::span<const std::uint8_t> bytes);
  void put(std::uint16_t type, const IpAddress& address) { put(type, address.bytes()); }
  void putString(std::uint16_t type, std::string_view text);
  void putU32(std::uint16_t type, std::uint32_t value);
  void putU8(std::uint16_t type, std::uint8_t value);
  nlattr* beginNest(std::uint16_t type);
  void endNest(nlattr* nest) { mnl_attr_nest_end(header_, nest); }

  [[nodiscard]] nlmsghdr* get() { return header_; }

 private:
  alignas(nlmsghdr) std::array<char, 2048> buffer_{};
  nlmsghdr* header_;
};

/// The outcome that an NLMSG_ERROR or NLMSG_DONE carries; the message is the kernel's reason alone.
Result<void> outcomeOf(const nlmsghdr* message);

class Transport {
 public:
  /// `protocol` is NETLINK_ROUTE or another of netlink(7).
  static Result<std::unique_ptr<Transport>> open(int protocol);

  /// Sends a change and waits for its acknowledgement. The error's message is the kernel's reason
  /// alone; callers put in front what was being done.
  Result<void> change(Message& message);
  /// Sends a query and hands over every answer. A dump that the kernel reports as inconsistent is
  /// repeated a few times; `restart` is called before each attempt.
  Result<void> query(Message& message, const std::function<void()>& restart,
                     const std::function<void(const nlmsghdr*)>& answer);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  explicit Transport(std::unique_ptr<mnl_socket, Close> socket);
  Result<void> exchange(Message& message, bool& interrupted,
                        const std::function<void(const nlmsghdr*)>& answer);

  std::unique_ptr<mnl_socket, Close> socket_;
  std::uint32_t sequence_ = 0;
  std::vector<char> buffer_;
};

/// "DOING: reason", with the remedy where rights are missing.
tl::unexpected<Error> failDoing(const Error& reason, std::string_view doing);

}  // namespace adit::netlink
