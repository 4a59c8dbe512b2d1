// The header in front of every packet that crosses a TUN device opened with IFF_VNET_HDR
// (Virtio 1.2, section 5.1.6; byte order of the machine, which is the TUN driver's default).
#pragma once

#include <cstdint>

namespace adit::dataplane::user {

struct VirtioNetHeader {
  std::uint8_t flags;
  std::uint8_t gsoType;
  /// Unreliable on packets that are being forwarded; parse instead.
  std::uint16_t headerLength;
  /// Bytes of payload in each segment.
  std::uint16_t gsoSize;
  /// Where the checksummed part starts, and the checksum's place in it.
  std::uint16_t checksumStart;
  std::uint16_t checksumOffset;
};
static_assert(sizeof(VirtioNetHeader) == 10);

/// The checksum field holds the sum of the pseudo-header only.
inline constexpr std::uint8_t kVirtioNeedsChecksum = 1;

inline constexpr std::uint8_t kGsoNone = 0;
inline constexpr std::uint8_t kGsoTcpV4 = 1;
inline constexpr std::uint8_t kGsoTcpV6 = 4;
/// VIRTIO_NET_HDR_GSO_UDP_L4, Linux 6.2.
inline constexpr std::uint8_t kGsoUdp = 5;
/// Set beside a type: the first segment carries CWR.
inline constexpr std::uint8_t kGsoEcn = 0x80;

}  // namespace adit::dataplane::user
