#include "dataplane/user/segmenter.hpp"

#include <algorithm>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/checksum.hpp"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kTcpHeader = 20;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kTcpChecksum = 16;
constexpr std::size_t kUdpChecksum = 6;
constexpr std::uint8_t kTcpFin = 0x01;
constexpr std::uint8_t kTcpPsh = 0x08;
constexpr std::uint8_t kTcpCwr = 0x80;

}  // namespace

std::optional<Segmenter> Segmenter::create(std::span<std::uint8_t> packet, const InnerPacket& inner,
                                           const VirtioNetHeader& header) {
  Segmenter result;
  packet = packet.first(inner.totalLength);
  if (header.gsoSize == 0 || !result.parseTransport(packet, inner, header)) return std::nullopt;
  result.packet_ = packet.data();
  result.payload_ = packet.size() - result.headerLength_;
  result.gsoSize_ = header.gsoSize;
  result.count_ = std::max<std::size_t>(1, (result.payload_ + header.gsoSize - 1) / header.gsoSize);
  return result;
}

bool Segmenter::parseTransport(std::span<const std::uint8_t> packet, const InnerPacket& inner,
                               const VirtioNetHeader& header) {
  const std::uint8_t type = header.gsoType & static_cast<std::uint8_t>(~kGsoEcn);
  tcp_ = type == kGsoTcpV4 || type == kGsoTcpV6;
  if (!tcp_ && type != kGsoUdp) return false;
  v6_ = inner.v6;
  ipHeader_ = inner.headerLength;
  transport_ = ipHeader_;
  // The checksum's start is what leads past IPv6 extension headers.
  if (v6_ && (header.flags & kVirtioNeedsChecksum) != 0) transport_ = header.checksumStart;
  const std::size_t minimum = tcp_ ? kTcpHeader : kUdpHeader;
  if (transport_ < ipHeader_ || transport_ + minimum > packet.size()) return false;
  const std::uint8_t* transport = &packet[transport_];
  const std::size_t length = tcp_ ? std::size_t{transport[12]} / 16 * 4 : kUdpHeader;
  headerLength_ = transport_ + length;
  if (length < minimum || headerLength_ > packet.size() || headerLength_ > kMaxHeader) return false;

  std::copy_n(packet.data(), headerLength_, header_.data());
  std::uint8_t* own = &header_[transport_];
  if (!v6_) {
    firstId_ = loadBe16(&header_[4]);
    storeBe16(&header_[2], 0);
    storeBe16(&header_[4], 0);
    storeBe16(&header_[10], 0);
    ipSum_ = sumBytes({header_.data(), ipHeader_});
  }
  const std::uint8_t protocol = tcp_ ? kProtocolTcp : kProtocolUdp;
  if (tcp_) {
    firstSequence_ = loadBe32(own + 4);
    flags_ = own[13];
    storeBe32(own + 4, 0);
    own[13] = 0;
    storeBe16(own + kTcpChecksum, 0);
  } else {
    storeBe16(own + 4, 0);
    storeBe16(own + kUdpChecksum, 0);
  }
  transportSum_ = sumBytes({own, length}, pseudoHeaderSum(header_.data(), protocol, 0));
  return true;
}

std::size_t Segmenter::payloadLength(std::size_t index) const {
  return std::min(gsoSize_, payload_ - index * gsoSize_);
}

void Segmenter::patchIp(std::size_t length) {
  if (v6_) {
    storeBe16(&header_[4], static_cast<std::uint16_t>(length - ipHeader_));
    return;
  }
  const auto total = htobe16(static_cast<std::uint16_t>(length));
  const auto id = htobe16(static_cast<std::uint16_t>(firstId_ + next_));
  store(&header_[2], total);
  store(&header_[4], id);
  store(&header_[10], finishChecksum(ipSum_ + total + id));
}

void Segmenter::patchTransport(std::span<const std::uint8_t> payload) {
  std::uint8_t* transport = &header_[transport_];
  const auto length = static_cast<std::uint32_t>(headerLength_ - transport_ + payload.size());
  std::uint64_t sum = transportSum_ + htobe32(length);
  if (tcp_) {
    const std::uint32_t sequence =
        firstSequence_ + static_cast<std::uint32_t>(next_) * static_cast<std::uint32_t>(gsoSize_);
    std::uint8_t flags = flags_;
    if (next_ > 0) flags &= static_cast<std::uint8_t>(~kTcpCwr);
    if (next_ + 1 < count_) flags &= static_cast<std::uint8_t>(~(kTcpFin | kTcpPsh));
    storeBe32(transport + 4, sequence);
    transport[13] = flags;
    sum += htobe32(sequence) + std::uint64_t{htobe16(flags)};
    store(transport + kTcpChecksum, finishChecksum(sumBytes(payload, sum)));
    return;
  }
  storeBe16(transport + 4, static_cast<std::uint16_t>(length));
  sum += htobe16(static_cast<std::uint16_t>(length));
  const std::uint16_t checksum = finishChecksum(sumBytes(payload, sum));
  // Zero would mean that there is none (RFC 768).
  store<std::uint16_t>(transport + kUdpChecksum, checksum == 0 ? 0xffff : checksum);
}

std::span<std::uint8_t> Segmenter::next() {
  const std::size_t payloadBytes = payloadLength(next_);
  std::uint8_t* payload = packet_ + headerLength_ + next_ * gsoSize_;
  patchIp(headerLength_ + payloadBytes);
  patchTransport({payload, payloadBytes});
  std::uint8_t* start = payload - headerLength_;
  std::memcpy(start, header_.data(), headerLength_);
  ++next_;
  return {start, headerLength_ + payloadBytes};
}

bool completeChecksum(std::span<std::uint8_t> packet, const VirtioNetHeader& header) {
  const std::size_t field = std::size_t{header.checksumStart} + header.checksumOffset;
  if (header.checksumStart >= packet.size() || field + 2 > packet.size()) return false;
  // The field itself, holding the pseudo-header's sum, is part of what is summed up.
  const std::uint16_t checksum = finishChecksum(sumBytes(packet.subspan(header.checksumStart)));
  const bool udp = header.checksumOffset == kUdpChecksum;
  store<std::uint16_t>(&packet[field], udp && checksum == 0 ? 0xffff : checksum);
  return true;
}

}  // namespace adit::dataplane::user
