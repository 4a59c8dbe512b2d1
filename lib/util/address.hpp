// Internet addresses, prefixes and UDP endpoints, of both families.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit {

/// An IPv4 or IPv6 address. Bytes are in network order; an IPv4 address uses the first four and
/// leaves the others zero, so that comparison and hashing need no case distinction.
class IpAddress {
 public:
  /// 0.0.0.0
  IpAddress() = default;

  /// The strict textual forms of inet_pton(3): no zone, no brackets, no leading zeros.
  static Result<IpAddress> parse(std::string_view text);
  static IpAddress fromV4(std::span<const std::uint8_t, 4> bytes);
  static IpAddress fromV6(std::span<const std::uint8_t, 16> bytes);
  static IpAddress anyV4() { return {}; }
  static IpAddress anyV6();

  [[nodiscard]] bool isV4() const { return !v6_; }
  [[nodiscard]] bool isV6() const { return v6_; }
  /// AF_INET or AF_INET6.
  [[nodiscard]] int family() const { return v6_ ? AF_INET6 : AF_INET; }
  /// 4 or 16 bytes.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return std::span(bytes_).first(v6_ ? 16 : 4);
  }
  /// Bits in an address of this family: 32 or 128.
  [[nodiscard]] unsigned bits() const { return v6_ ? 128 : 32; }
  [[nodiscard]] bool isUnspecified() const;
  [[nodiscard]] bool isLoopback() const;
  [[nodiscard]] bool isMulticast() const;
  /// fe80::/10
  [[nodiscard]] bool isLinkLocalV6() const;
  [[nodiscard]] std::string toString() const;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  bool v6_ = false;
  std::array<std::uint8_t, 16> bytes_{};
};

/// ADDRESS/LENGTH with all host bits zero.
class Prefix {
 public:
  /// 0.0.0.0/0
  Prefix() = default;
  /// Masks the host bits of `address`. `length` must not exceed the family's bits.
  Prefix(const IpAddress& address, unsigned length);

  /// "10.0.0.0/24", or a bare address for its full length. Host bits are masked; compare with
  /// `hadHostBits` to warn about them.
  static Result<Prefix> parse(std::string_view text, bool* hadHostBits = nullptr);

  [[nodiscard]] const IpAddress& address() const { return address_; }
  [[nodiscard]] unsigned length() const { return length_; }
  [[nodiscard]] bool contains(const IpAddress& address) const;
  [[nodiscard]] bool contains(const Prefix& other) const;
  [[nodiscard]] bool isDefault() const { return length_ == 0; }
  [[nodiscard]] std::string toString() const;

  friend auto operator<=>(const Prefix&, const Prefix&) = default;

 private:
  IpAddress address_;
  unsigned length_ = 0;
};

/// An interface address: host bits kept, with the length of its on-link prefix.
struct InterfaceAddress {
  IpAddress address;
  unsigned length = 0;

  /// "10.0.0.1/24", or a bare address for its full length.
  static Result<InterfaceAddress> parse(std::string_view text);
  [[nodiscard]] Prefix prefix() const { return {address, length}; }
  [[nodiscard]] std::string toString() const;
  friend auto operator<=>(const InterfaceAddress&, const InterfaceAddress&) = default;
};

/// Where datagrams are sent to: address, UDP port and, for link-local IPv6, the interface index.
struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;
  std::uint32_t scopeId = 0;

  /// Numeric forms only: "192.0.2.1:51820", "[2001:db8::1]:51820", "[fe80::1%eth0]:51820".
  static Result<Endpoint> parse(std::string_view text);
  static Endpoint fromSockaddr(const sockaddr* address);
  /// Fills `out` and returns the length that goes with it.
  socklen_t toSockaddr(sockaddr_storage& out) const;
  /// With brackets round IPv6, and the zone by name where the interface exists.
  [[nodiscard]] std::string toString() const;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// The local end of a received datagram, kept so that an answer leaves from where it was sent to
/// (RFC 1122, 4.1.3.5). An unspecified address leaves the choice to routing.
struct LocalAddress {
  IpAddress address;
  std::uint32_t interfaceIndex = 0;
  friend auto operator<=>(const LocalAddress&, const LocalAddress&) = default;
};

}  // namespace adit
