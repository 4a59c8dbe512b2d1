// The IP header of a packet inside the tunnel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "util/address.hpp"

namespace adit::dataplane::user {

inline constexpr std::uint8_t kProtocolIcmp = 1;
inline constexpr std::uint8_t kProtocolTcp = 6;
inline constexpr std::uint8_t kProtocolUdp = 17;
inline constexpr std::uint8_t kProtocolIcmpV6 = 58;

/// What the data plane must know of an inner packet.
struct InnerPacket {
  bool v6 = false;
  /// IPv4: header and options. IPv6: the fixed header alone.
  std::uint16_t headerLength = 0;
  /// The packet's own length; bytes behind it are padding.
  std::uint32_t totalLength = 0;
  /// IPv4: protocol. IPv6: the first next-header value, which may be an extension header's.
  std::uint8_t protocol = 0;
  /// IPv4 TOS or IPv6 traffic class.
  std::uint8_t tos = 0;
  /// IPv4: a fragment, the first one included.
  bool fragment = false;
};

/// Nothing unless `packet` starts with a whole IP header and holds all of the packet's length.
std::optional<InnerPacket> parseInnerPacket(std::span<const std::uint8_t> packet);

/// Source and destination of a packet that parseInnerPacket() accepted.
IpAddress innerSource(const std::uint8_t* packet);
IpAddress innerDestination(const std::uint8_t* packet);

/// Writes IPv4 TOS (with its checksum) or IPv6 traffic class.
void writeTos(std::uint8_t* packet, std::uint8_t tos);

/// The length to encrypt (paper, section 5.4.6): padded with zeros to a multiple of 16, but never
/// beyond the interface's MTU.
std::size_t paddedLength(std::size_t length, std::size_t mtu);

}  // namespace adit::dataplane::user
