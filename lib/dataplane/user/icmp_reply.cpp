#include "dataplane/user/icmp_reply.hpp"

#include <algorithm>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/checksum.hpp"
#include "dataplane/user/inner_packet.hpp"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kIcmpHeader = 8;
constexpr std::uint8_t kHopLimit = 64;

// RFC 1812, section 4.3.2.3: as much as fits in 576 bytes.
constexpr std::size_t kMaxV4Reply = 576;
constexpr std::uint8_t kV4Unreachable = 3;
constexpr std::uint8_t kV4HostUnreachable = 1;
constexpr std::uint8_t kV6Unreachable = 1;
constexpr std::uint8_t kV6AddressUnreachable = 3;

bool namesOneHost(const IpAddress& address) {
  const bool broadcast =
      address.isV4() && std::ranges::all_of(address.bytes(), [](auto byte) { return byte == 255; });
  return !address.isMulticast() && !address.isUnspecified() && !broadcast;
}

// Errors about errors would never end. Queries may be answered by an error.
bool isIcmpError(std::span<const std::uint8_t> packet, const InnerPacket& inner) {
  if (packet.size() <= inner.headerLength) return false;
  const std::uint8_t type = packet[inner.headerLength];
  if (inner.v6) return inner.protocol == kProtocolIcmpV6 && type < 128;
  return inner.protocol == kProtocolIcmp &&
         (type == 3 || type == 4 || type == 5 || type == 11 || type == 12);
}

bool mayAnswer(std::span<const std::uint8_t> packet, const InnerPacket& inner) {
  const bool laterFragment = !inner.v6 && inner.fragment && (loadBe16(&packet[6]) & 0x1fff) != 0;
  return !laterFragment && !isIcmpError(packet, inner) &&
         namesOneHost(innerSource(packet.data())) && namesOneHost(innerDestination(packet.data()));
}

std::span<const std::uint8_t> buildV4(std::span<const std::uint8_t> packet, IcmpBuffer& buffer) {
  constexpr std::size_t kIp = 20;
  const std::size_t quoted = std::min(packet.size(), kMaxV4Reply - kIp - kIcmpHeader);
  const std::size_t length = kIp + kIcmpHeader + quoted;
  std::fill_n(buffer.begin(), kIp + kIcmpHeader, std::uint8_t{0});
  std::uint8_t* ip = buffer.data();
  ip[0] = 0x45;
  ip[1] = 0xc0;  // internetwork control (RFC 1812, section 4.3.2.5)
  storeBe16(ip + 2, static_cast<std::uint16_t>(length));
  ip[8] = kHopLimit;
  ip[9] = kProtocolIcmp;
  std::copy_n(&packet[16], 4, ip + 12);
  std::copy_n(&packet[12], 4, ip + 16);
  writeIpv4Checksum(ip, kIp);
  std::uint8_t* icmp = ip + kIp;
  icmp[0] = kV4Unreachable;
  icmp[1] = kV4HostUnreachable;
  std::copy_n(packet.data(), quoted, icmp + kIcmpHeader);
  store(icmp + 2, finishChecksum(sumBytes({icmp, kIcmpHeader + quoted})));
  return std::span(buffer).first(length);
}

std::span<const std::uint8_t> buildV6(std::span<const std::uint8_t> packet, IcmpBuffer& buffer) {
  constexpr std::size_t kIp = 40;
  const std::size_t quoted = std::min(packet.size(), buffer.size() - kIp - kIcmpHeader);
  const std::size_t payload = kIcmpHeader + quoted;
  std::fill_n(buffer.begin(), kIp + kIcmpHeader, std::uint8_t{0});
  std::uint8_t* ip = buffer.data();
  ip[0] = 0x60;
  storeBe16(ip + 4, static_cast<std::uint16_t>(payload));
  ip[6] = kProtocolIcmpV6;
  ip[7] = kHopLimit;
  std::copy_n(&packet[24], 16, ip + 8);
  std::copy_n(&packet[8], 16, ip + 24);
  std::uint8_t* icmp = ip + kIp;
  icmp[0] = kV6Unreachable;
  icmp[1] = kV6AddressUnreachable;
  std::copy_n(packet.data(), quoted, icmp + kIcmpHeader);
  const auto length = static_cast<std::uint32_t>(payload);
  const std::uint64_t pseudo = pseudoHeaderSum(ip, kProtocolIcmpV6, length);
  store(icmp + 2, finishChecksum(sumBytes({icmp, payload}, pseudo)));
  return std::span(buffer).first(kIp + payload);
}

}  // namespace

std::span<const std::uint8_t> buildUnreachable(std::span<const std::uint8_t> packet,
                                               IcmpBuffer& buffer) {
  const auto inner = parseInnerPacket(packet);
  if (!inner || !mayAnswer(packet, *inner)) return {};
  packet = packet.first(inner->totalLength);
  return inner->v6 ? buildV6(packet, buffer) : buildV4(packet, buffer);
}

bool IcmpLimiter::take(BootTime now) {
  const std::int64_t gained = (now - refilled_) / kInterval;
  if (gained > 0) {
    tokens_ = std::min<std::int64_t>(kBurst, tokens_ + gained);
    refilled_ = now;
  }
  if (tokens_ == 0) return false;
  --tokens_;
  return true;
}

}  // namespace adit::dataplane::user
