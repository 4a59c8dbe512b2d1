#include "util/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace adit {
namespace {

std::optional<unsigned> parseNumber(std::string_view text, unsigned maximum) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > maximum) {
    return std::nullopt;
  }
  return value;
}

void maskHostBits(std::span<std::uint8_t> bytes, unsigned length) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned firstBit = static_cast<unsigned>(i) * 8;
    if (firstBit >= length) {
      bytes[i] = 0;
    } else if (length - firstBit < 8) {
      bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00U >> (length - firstBit)));
    }
  }
}

}  // namespace

Result<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string copy(text);
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) {
    return fromV4(std::span(bytes).first<4>());
  }
  if (::inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) {
    return fromV6(bytes);
  }
  return fail("\"{}\" is not an IPv4 or IPv6 address", text);
}

IpAddress IpAddress::fromV4(std::span<const std::uint8_t, 4> bytes) {
  IpAddress result;
  std::ranges::copy(bytes, result.bytes_.begin());
  return result;
}

IpAddress IpAddress::fromV6(std::span<const std::uint8_t, 16> bytes) {
  IpAddress result;
  result.v6_ = true;
  std::ranges::copy(bytes, result.bytes_.begin());
  return result;
}

IpAddress IpAddress::anyV6() {
  IpAddress result;
  result.v6_ = true;
  return result;
}

bool IpAddress::isUnspecified() const {
  return std::ranges::all_of(bytes_, [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::isLoopback() const {
  if (isV4()) {
    return bytes_[0] == 127;
  }
  return bytes_[15] == 1 && std::all_of(bytes_.begin(), bytes_.begin() + 15,
                                        [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::isMulticast() const {
  return isV4() ? (bytes_[0] & 0xf0) == 0xe0 : bytes_[0] == 0xff;
}

bool IpAddress::isLinkLocalV6() const {
  return isV6() && bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
}

std::string IpAddress::toString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family(), bytes_.data(), text.data(), text.size());
  return text.data();
}

Prefix::Prefix(const IpAddress& address, unsigned length)
    : length_(std::min(length, address.bits())) {
  std::array<std::uint8_t, 16> bytes{};
  std::ranges::copy(address.bytes(), bytes.begin());
  maskHostBits(bytes, length_);
  address_ =
      address.isV4() ? IpAddress::fromV4(std::span(bytes).first<4>()) : IpAddress::fromV6(bytes);
}

Result<Prefix> Prefix::parse(std::string_view text, bool* hadHostBits) {
  const auto parsed = InterfaceAddress::parse(text);
  if (!parsed) {
    return tl::unexpected(parsed.error());
  }
  const Prefix prefix(parsed->address, parsed->length);
  if (hadHostBits != nullptr) {
    *hadHostBits = prefix.address() != parsed->address;
  }
  return prefix;
}

bool Prefix::contains(const IpAddress& address) const {
  return address.family() == address_.family() && Prefix(address, length_).address_ == address_;
}

bool Prefix::contains(const Prefix& other) const {
  return other.length_ >= length_ && contains(other.address_);
}

std::string Prefix::toString() const {
  return fmt::format("{}/{}", address_.toString(), length_);
}

Result<InterfaceAddress> InterfaceAddress::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) {
    return tl::unexpected(address.error());
  }
  if (slash == std::string_view::npos) {
    return InterfaceAddress{*address, address->bits()};
  }
  const auto length = parseNumber(text.substr(slash + 1), address->bits());
  if (!length) {
    return fail("\"{}\" is not a prefix length of 0 to {}", text.substr(slash + 1),
                address->bits());
  }
  return InterfaceAddress{*address, *length};
}

std::string InterfaceAddress::toString() const {
  return fmt::format("{}/{}", address.toString(), length);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return fail("\"{}\" has no port; write ADDRESS:PORT", text);
  }
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  Endpoint endpoint;
  if (const auto percent = host.find('%'); percent != std::string_view::npos) {
    const std::string zone(host.substr(percent + 1));
    host = host.substr(0, percent);
    endpoint.scopeId = ::if_nametoindex(zone.c_str());
    if (endpoint.scopeId == 0) {
      const auto number = parseNumber(zone, 0x7fffffff);
      if (!number || *number == 0) {
        return fail("there is no interface \"{}\"", zone);
      }
      endpoint.scopeId = *number;
    }
  }
  const auto address = IpAddress::parse(host);
  if (!address) {
    return tl::unexpected(address.error());
  }
  if (address->isV6() != bracketed) {
    return fail("write an IPv6 endpoint as [ADDRESS]:PORT, an IPv4 one as ADDRESS:PORT");
  }
  const auto port = parseNumber(text.substr(colon + 1), 65535);
  if (!port || *port == 0) {
    return fail("\"{}\" is not a port of 1 to 65535", text.substr(colon + 1));
  }
  endpoint.address = *address;
  endpoint.port = static_cast<std::uint16_t>(*port);
  return endpoint;
}

Endpoint Endpoint::fromSockaddr(const sockaddr* address) {
  Endpoint endpoint;
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, address, sizeof(in6));
    endpoint.port = ntohs(in6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
      endpoint.address = IpAddress::fromV4(std::span(in6.sin6_addr.s6_addr).last<4>());
    } else {
      endpoint.address = IpAddress::fromV6(std::span(in6.sin6_addr.s6_addr));
      endpoint.scopeId = endpoint.address.isLinkLocalV6() ? in6.sin6_scope_id : 0;
    }
  } else if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof(in));
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
    endpoint.address = IpAddress::fromV4(bytes);
    endpoint.port = ntohs(in.sin_port);
  }
  return endpoint;
}

socklen_t Endpoint::toSockaddr(sockaddr_storage& out) const {
  out = {};
  if (address.isV6()) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    in6.sin6_scope_id = scopeId;
    std::ranges::copy(address.bytes(), in6.sin6_addr.s6_addr);
    std::memcpy(&out, &in6, sizeof(in6));
    return sizeof(in6);
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, address.bytes().data(), 4);
  std::memcpy(&out, &in, sizeof(in));
  return sizeof(in);
}

std::string Endpoint::toString() const {
  if (address.isV4()) {
    return fmt::format("{}:{}", address.toString(), port);
  }
  if (scopeId == 0) {
    return fmt::format("[{}]:{}", address.toString(), port);
  }
  std::array<char, IF_NAMESIZE> name{};
  if (::if_indextoname(scopeId, name.data()) != nullptr) {
    return fmt::format("[{}%{}]:{}", address.toString(), name.data(), port);
  }
  return fmt::format("[{}%{}]:{}", address.toString(), scopeId, port);
}

}  // namespace adit
