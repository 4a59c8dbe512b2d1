// UDP sockets for the test programs: IPv4 and IPv6, plain calls, errors end the program.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "util/address.hpp"
#include "util/unique_fd.hpp"

namespace adit::peers {

/// A socket address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] bool sameAs(const SocketAddress& other) const {
    return length == other.length && std::memcmp(&storage, &other.storage, length) == 0;
  }
};

[[noreturn]] inline void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

inline SocketAddress socketAddress(const IpAddress& address, std::uint16_t port) {
  SocketAddress result;
  if (address.isV4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, address.bytes().data(), sizeof(v4.sin_addr));
    std::memcpy(&result.storage, &v4, sizeof(v4));
    result.length = sizeof(v4);
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.bytes().data(), sizeof(v6.sin6_addr));
    std::memcpy(&result.storage, &v6, sizeof(v6));
    result.length = sizeof(v6);
  }
  return result;
}

/// "192.0.2.1:51820" or "[2001:db8::1]:51820".
inline SocketAddress parseSocketAddress(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw std::runtime_error(text + " is not ADDRESS:PORT");
  }
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const auto address = IpAddress::parse(host);
  const unsigned long port = std::stoul(text.substr(colon + 1));
  if (!address || port > 0xffff) {
    throw std::runtime_error(text + " is not ADDRESS:PORT");
  }
  return socketAddress(*address, static_cast<std::uint16_t>(port));
}

/// A UDP socket with a receive buffer of 8 MiB, so that what is lost is lost on purpose.
inline UniqueFd udpSocket(int family) {
  UniqueFd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    fail("socket");
  }
  const int size = 8 << 20;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0) {
    fail("SO_RCVBUFFORCE");
  }
  return fd;
}

inline UniqueFd boundUdpSocket(const SocketAddress& address) {
  UniqueFd fd = udpSocket(address.family());
  if (::bind(fd.get(), address.get(), address.length) != 0) {
    fail("bind");
  }
  return fd;
}

}  // namespace adit::peers
