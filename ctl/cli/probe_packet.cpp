#include "cli/probe_packet.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <optional>

namespace adit::cli {
namespace {

constexpr std::size_t kHeaderV4 = 20;
constexpr std::size_t kHeaderV6 = 40;
constexpr std::size_t kTcpHeader = 20;
constexpr std::size_t kUdpHeader = 8;
/// ICMP "destination unreachable" and its code "port unreachable" (RFC 792, RFC 4443).
constexpr std::uint8_t kUnreachableV4 = 3;
constexpr std::uint8_t kPortV4 = 3;
constexpr std::uint8_t kUnreachableV6 = 1;
constexpr std::uint8_t kPortV6 = 4;
constexpr std::size_t kIcmpHeader = 8;

void put16(Bytes& out, std::uint32_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

void put32(Bytes& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

void put(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint16_t get16(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

void set16(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

/// RFC 1071.
std::uint16_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i] << 8) | (i + 1 < bytes.size() ? bytes[i + 1] : 0);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

/// The parts of a packet that say where it belongs; nothing where it is cut short.
struct Parts {
  std::uint8_t protocol = 0;
  std::span<const std::uint8_t> source;
  std::span<const std::uint8_t> destination;
  std::span<const std::uint8_t> rest;
};

std::optional<Parts> partsOf(std::span<const std::uint8_t> packet, bool v6) {
  if (packet.size() < (v6 ? kHeaderV6 : kHeaderV4) || packet[0] >> 4 != (v6 ? 6 : 4)) {
    return std::nullopt;
  }
  const std::size_t length = v6 ? kHeaderV6 : static_cast<std::size_t>(packet[0] & 0xf) * 4;
  if (length < kHeaderV4 || packet.size() < length + kUdpHeader) {
    return std::nullopt;
  }
  return Parts{.protocol = packet[v6 ? 6 : 9],
               .source = packet.subspan(v6 ? 8 : 12, v6 ? 16 : 4),
               .destination = packet.subspan(v6 ? 24 : 16, v6 ? 16 : 4),
               .rest = packet.subspan(length)};
}

}  // namespace

Bytes Question::packet(std::uint8_t flags, std::uint32_t sequence) const {
  Bytes segment;
  put16(segment, port_);
  put16(segment, target_.port);
  if (tcp_) {
    put32(segment, sequence);
    put32(segment, 0);
    segment.push_back(kTcpHeader / 4 << 4);
    segment.push_back(flags);
    put16(segment, 65535);
    put32(segment, 0);
  } else {
    put16(segment, kUdpHeader);
    put16(segment, 0);
  }
  Bytes pseudo;
  put(pseudo, source_.bytes());
  put(pseudo, target_.address.bytes());
  put32(pseudo, static_cast<std::uint32_t>(segment.size()));
  put32(pseudo, number());
  put(pseudo, segment);
  set16(segment, tcp_ ? 16 : 6, checksum(pseudo));
  Bytes packet = header(segment.size());
  put(packet, segment);
  return packet;
}

Echo Question::echoOf(std::span<const std::uint8_t> packet) const {
  const bool v6 = source_.isV6();
  const auto parts = partsOf(packet, v6);
  if (!parts || !std::ranges::equal(parts->destination, source_.bytes())) {
    return Echo::Silent;
  }
  const auto rest = parts->rest;
  if (parts->protocol == (v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP})) {
    return echoOfError(rest);
  }
  const bool ours = parts->protocol == number() && get16(rest, 0) == target_.port &&
                    get16(rest, 2) == port_ &&
                    std::ranges::equal(parts->source, target_.address.bytes());
  if (!ours || (tcp_ && rest.size() < kTcpHeader)) {
    return Echo::Silent;
  }
  return tcp_ && (rest[13] & kReset) != 0 ? Echo::Refused : Echo::Answered;
}

std::uint8_t Question::number() const {
  return static_cast<std::uint8_t>(tcp_ ? int{IPPROTO_TCP} : int{IPPROTO_UDP});
}

Bytes Question::header(std::size_t payload) const {
  Bytes out;
  if (source_.isV6()) {
    put32(out, 6U << 28);
    put16(out, static_cast<std::uint32_t>(payload));
    out.push_back(number());
    out.push_back(64);
  } else {
    put16(out, 0x4500);
    put16(out, static_cast<std::uint32_t>(kHeaderV4 + payload));
    put32(out, 0);
    out.push_back(64);
    out.push_back(number());
    put16(out, 0);
  }
  put(out, source_.bytes());
  put(out, target_.address.bytes());
  if (!source_.isV6()) {
    set16(out, 10, checksum(out));
  }
  return out;
}

/// An error quotes the packet that it is about.
Echo Question::echoOfError(std::span<const std::uint8_t> message) const {
  const bool v6 = source_.isV6();
  const std::size_t header = v6 ? kHeaderV6 : kHeaderV4;
  if (message.size() < kIcmpHeader + header + 4 ||
      message[0] != (v6 ? kUnreachableV6 : kUnreachableV4) ||
      get16(message, kIcmpHeader + header) != port_) {
    return Echo::Silent;
  }
  return message[1] == (v6 ? kPortV6 : kPortV4) ? Echo::Refused : Echo::Unreachable;
}

bool goesTo(std::span<const std::uint8_t> packet, nat::Protocol protocol,
            const Endpoint& endpoint) {
  const auto parts = partsOf(packet, endpoint.address.isV6());
  return parts && parts->protocol == static_cast<std::uint8_t>(protocol) &&
         std::ranges::equal(parts->destination, endpoint.address.bytes()) &&
         get16(parts->rest, 2) == endpoint.port;
}

bool comesFrom(std::span<const std::uint8_t> packet, nat::Protocol protocol,
               const Endpoint& endpoint) {
  const bool v6 = endpoint.address.isV6();
  const auto parts = partsOf(packet, v6);
  if (parts && parts->protocol == (v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP})) {
    return parts->rest[0] == (v6 ? kUnreachableV6 : kUnreachableV4) &&
           goesTo(parts->rest.subspan(kIcmpHeader), protocol, endpoint);
  }
  return parts && parts->protocol == static_cast<std::uint8_t>(protocol) &&
         std::ranges::equal(parts->source, endpoint.address.bytes()) &&
         get16(parts->rest, 0) == endpoint.port;
}

}  // namespace adit::cli
