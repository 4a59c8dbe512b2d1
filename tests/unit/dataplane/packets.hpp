// Builds and checks inner packets the slow and obvious way, as an oracle for the fast one.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/user/inner_packet.hpp"

namespace adit::test {

using Packet = std::vector<std::uint8_t>;

inline void put16(Packet& packet, std::size_t at, unsigned value) {
  packet[at] = static_cast<std::uint8_t>(value >> 8);
  packet[at + 1] = static_cast<std::uint8_t>(value);
}
inline void put32(Packet& packet, std::size_t at, std::uint32_t value) {
  put16(packet, at, value >> 16);
  put16(packet, at + 2, value & 0xffff);
}
inline unsigned get16(std::span<const std::uint8_t> packet, std::size_t at) {
  return packet[at] * 256U + packet[at + 1];
}
inline std::uint32_t get32(std::span<const std::uint8_t> packet, std::size_t at) {
  return (get16(packet, at) << 16) + get16(packet, at + 2);
}

/// RFC 1071 as it is written: 16-bit words, end-around carry after each.
inline unsigned naiveSum(std::span<const std::uint8_t> bytes, unsigned sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += bytes[i] * 256U + (i + 1 < bytes.size() ? bytes[i + 1] : 0U);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

struct PacketSpec {
  bool v6 = false;
  bool tcp = true;
  std::string source{};
  std::string destination{};
  std::uint16_t sourcePort = 1000;
  std::uint16_t destinationPort = 2000;
  std::uint32_t sequence = 7000;
  std::uint32_t acknowledgement = 99;
  std::uint16_t window = 500;
  std::uint8_t flags = 0x10;
  /// TCP options, a multiple of 4 bytes.
  std::vector<std::uint8_t> options{};
  std::uint8_t tos = 0;
  std::uint8_t ttl = 64;
  std::uint16_t id = 100;
  bool dontFragment = true;
  std::uint32_t flowLabel = 0;
  std::size_t payload = 100;
  /// The first byte of a payload that counts up.
  std::uint8_t first = 0;

  [[nodiscard]] std::size_t ipHeader() const { return v6 ? 40 : 20; }
  [[nodiscard]] std::size_t header() const { return ipHeader() + (tcp ? 20 + options.size() : 8); }
};

/// The sum over pseudo-header and transport part; 0xffff when the checksum is right.
inline unsigned transportSum(std::span<const std::uint8_t> packet) {
  const bool v6 = packet[0] >> 4 == 6;
  const std::size_t header = v6 ? 40 : (packet[0] & 15) * 4U;
  const unsigned protocol = v6 ? packet[6] : packet[9];
  unsigned sum = naiveSum(v6 ? packet.subspan(8, 32) : packet.subspan(12, 8));
  Packet rest(4);
  put16(rest, 0, protocol);
  put16(rest, 2, static_cast<unsigned>(packet.size() - header));
  sum = naiveSum(rest, sum);
  return naiveSum(packet.subspan(header), sum);
}

inline bool checksumsAreRight(std::span<const std::uint8_t> packet) {
  const bool v6 = packet[0] >> 4 == 6;
  if (!v6 && naiveSum(packet.first((packet[0] & 15) * 4U)) != 0xffff) return false;
  return transportSum(packet) == 0xffff;
}

/// Sets IPv4 and transport checksums.
inline void fixChecksums(Packet& packet) {
  const bool v6 = packet[0] >> 4 == 6;
  const std::size_t header = v6 ? 40 : (packet[0] & 15) * 4U;
  if (!v6) {
    put16(packet, 10, 0);
    put16(packet, 10, ~naiveSum(std::span(packet).first(header)) & 0xffff);
  }
  const bool tcp = (v6 ? packet[6] : packet[9]) == 6;
  const std::size_t field = header + (tcp ? 16 : 6);
  put16(packet, field, 0);
  unsigned checksum = ~transportSum(packet) & 0xffff;
  if (!tcp && checksum == 0) checksum = 0xffff;
  put16(packet, field, checksum);
}

inline Packet makePacket(const PacketSpec& spec) {
  const std::size_t ip = spec.ipHeader();
  Packet packet(spec.header() + spec.payload);
  const std::string source =
      !spec.source.empty() ? spec.source : (spec.v6 ? "fd00::1" : "10.0.0.1");
  const std::string destination =
      !spec.destination.empty() ? spec.destination : (spec.v6 ? "fd00::2" : "10.0.0.2");
  if (spec.v6) {
    put32(packet, 0, 0x60000000U | (std::uint32_t{spec.tos} << 20) | spec.flowLabel);
    put16(packet, 4, static_cast<unsigned>(packet.size() - 40));
    packet[6] = spec.tcp ? 6 : 17;
    packet[7] = spec.ttl;
    ::inet_pton(AF_INET6, source.c_str(), &packet[8]);
    ::inet_pton(AF_INET6, destination.c_str(), &packet[24]);
  } else {
    packet[0] = 0x45;
    packet[1] = spec.tos;
    put16(packet, 2, static_cast<unsigned>(packet.size()));
    put16(packet, 4, spec.id);
    put16(packet, 6, spec.dontFragment ? 0x4000 : 0);
    packet[8] = spec.ttl;
    packet[9] = spec.tcp ? 6 : 17;
    ::inet_pton(AF_INET, source.c_str(), &packet[12]);
    ::inet_pton(AF_INET, destination.c_str(), &packet[16]);
  }
  put16(packet, ip, spec.sourcePort);
  put16(packet, ip + 2, spec.destinationPort);
  if (spec.tcp) {
    put32(packet, ip + 4, spec.sequence);
    put32(packet, ip + 8, spec.acknowledgement);
    packet[ip + 12] = static_cast<std::uint8_t>((20 + spec.options.size()) / 4 * 16);
    packet[ip + 13] = spec.flags;
    put16(packet, ip + 14, spec.window);
    std::ranges::copy(spec.options, packet.begin() + static_cast<std::ptrdiff_t>(ip) + 20);
  } else {
    put16(packet, ip + 4, static_cast<unsigned>(8 + spec.payload));
  }
  for (std::size_t i = 0; i < spec.payload; ++i) {
    packet[spec.header() + i] = static_cast<std::uint8_t>(spec.first + i * 7 + i / 256);
  }
  fixChecksums(packet);
  return packet;
}

}  // namespace adit::test
