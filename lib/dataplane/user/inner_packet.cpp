#include "dataplane/user/inner_packet.hpp"

#include <algorithm>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/checksum.hpp"
#include "wire/messages.h"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kIpv4Header = 20;
constexpr std::size_t kIpv6Header = 40;
// More-fragments flag and offset of the fragment field.
constexpr std::uint16_t kFragmentMask = 0x3fff;

std::optional<InnerPacket> parseV4(std::span<const std::uint8_t> packet) {
  if (packet.size() < kIpv4Header) return std::nullopt;
  InnerPacket inner;
  inner.headerLength = static_cast<std::uint16_t>((packet[0] & 0x0f) * 4);
  inner.totalLength = loadBe16(&packet[2]);
  if (inner.headerLength < kIpv4Header || inner.totalLength < inner.headerLength ||
      inner.totalLength > packet.size()) {
    return std::nullopt;
  }
  inner.protocol = packet[9];
  inner.tos = packet[1];
  inner.fragment = (loadBe16(&packet[6]) & kFragmentMask) != 0;
  return inner;
}

std::optional<InnerPacket> parseV6(std::span<const std::uint8_t> packet) {
  if (packet.size() < kIpv6Header) return std::nullopt;
  InnerPacket inner;
  inner.v6 = true;
  inner.headerLength = kIpv6Header;
  inner.totalLength = static_cast<std::uint32_t>(kIpv6Header) + loadBe16(&packet[4]);
  if (inner.totalLength > packet.size()) return std::nullopt;
  inner.protocol = packet[6];
  inner.tos = static_cast<std::uint8_t>(loadBe16(&packet[0]) >> 4);
  return inner;
}

IpAddress addressAt(const std::uint8_t* packet, std::size_t v4Offset, std::size_t v6Offset) {
  if ((packet[0] >> 4) == 6) {
    return IpAddress::fromV6(std::span<const std::uint8_t, 16>(packet + v6Offset, 16));
  }
  return IpAddress::fromV4(std::span<const std::uint8_t, 4>(packet + v4Offset, 4));
}

}  // namespace

std::optional<InnerPacket> parseInnerPacket(std::span<const std::uint8_t> packet) {
  if (packet.empty()) return std::nullopt;
  switch (packet[0] >> 4) {
    case 4:
      return parseV4(packet);
    case 6:
      return parseV6(packet);
    default:
      return std::nullopt;
  }
}

IpAddress innerSource(const std::uint8_t* packet) {
  return addressAt(packet, 12, 8);
}

IpAddress innerDestination(const std::uint8_t* packet) {
  return addressAt(packet, 16, 24);
}

void writeTos(std::uint8_t* packet, std::uint8_t tos) {
  const auto before = load<std::uint16_t>(packet);
  if ((packet[0] >> 4) == 6) {
    storeBe16(packet, static_cast<std::uint16_t>((loadBe16(packet) & 0xf00f) | (tos << 4)));
  } else {
    packet[1] = tos;
    adjustChecksum(packet + 10, before, load<std::uint16_t>(packet));
  }
}

std::size_t paddedLength(std::size_t length, std::size_t mtu) {
  // A packet above the MTU (it was lowered meanwhile) is padded by its last MTU-sized part.
  const std::size_t whole = mtu == 0 || length <= mtu ? 0 : length - length % mtu;
  const std::size_t last = length - whole;
  const std::size_t rounded =
      (last + ADIT_PADDING_MULTIPLE - 1) / ADIT_PADDING_MULTIPLE * ADIT_PADDING_MULTIPLE;
  return whole + (mtu == 0 ? rounded : std::min(rounded, std::max(mtu, last)));
}

}  // namespace adit::dataplane::user
