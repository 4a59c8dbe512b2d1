// The other end of a socket under test: a plain UDP socket, on 127.0.0.1 unless told otherwise.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/user/udp_socket.hpp"
#include "util/unique_fd.hpp"

namespace adit::test {

class UdpPeer {
 public:
  explicit UdpPeer(const char* local = "127.0.0.1")
      : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage address{};
    socklen_t length = Endpoint{*IpAddress::parse(local), 0, 0}.toSockaddr(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(fd_.get(), raw, length) == 0);
    REQUIRE(::getsockname(fd_.get(), raw, &length) == 0);
    endpoint_ = Endpoint::fromSockaddr(raw);
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
  }

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] dataplane::user::Destination destination() const {
    dataplane::user::Destination destination;
    destination.length = endpoint_.toSockaddr(destination.address);
    return destination;
  }
  /// Where the last received datagram came from, and its traffic class.
  [[nodiscard]] const Endpoint& lastSource() const { return lastSource_; }
  [[nodiscard]] std::uint8_t lastTos() const { return lastTos_; }

  /// Up to `count` datagrams; fewer when no more come within a second.
  std::vector<std::vector<std::uint8_t>> receive(std::size_t count) {
    std::vector<std::vector<std::uint8_t>> all;
    while (all.size() < count && readable(1000)) {
      all.push_back(receiveOne());
    }
    return all;
  }
  void send(const std::vector<std::uint8_t>& datagram, const Endpoint& to, int tos = 0) {
    sockaddr_storage address{};
    const socklen_t length = to.toSockaddr(address);
    ::setsockopt(fd_.get(), IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
    REQUIRE(::sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                     reinterpret_cast<sockaddr*>(&address),
                     length) == static_cast<ssize_t>(datagram.size()));
  }

  /// Whether anything is left to receive.
  [[nodiscard]] bool pending() const { return readable(0); }

 private:
  [[nodiscard]] bool readable(int timeoutMs) const {
    pollfd ready{fd_.get(), POLLIN, 0};
    return ::poll(&ready, 1, timeoutMs) == 1;
  }
  std::vector<std::uint8_t> receiveOne() {
    std::vector<std::uint8_t> buffer(70000);
    sockaddr_storage source{};
    dataplane::user::ReceiveControl control;
    iovec piece{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_name = &source;
    message.msg_namelen = sizeof(source);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t got = ::recvmsg(fd_.get(), &message, 0);
    REQUIRE(got >= 0);
    buffer.resize(static_cast<std::size_t>(got));
    lastSource_ = Endpoint::fromSockaddr(reinterpret_cast<sockaddr*>(&source));
    lastTos_ = dataplane::user::parseReceiveInfo(message).tos;
    return buffer;
  }

  UniqueFd fd_;
  Endpoint endpoint_;
  Endpoint lastSource_;
  std::uint8_t lastTos_ = 0;
};

}  // namespace adit::test
