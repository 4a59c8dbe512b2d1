#include "dataplane/user/coalescer.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/checksum.hpp"

namespace adit::dataplane::user {
namespace {

constexpr std::uint16_t kIpv4Header = 20;
constexpr std::uint16_t kTcpHeader = 20;
constexpr std::uint16_t kUdpHeader = 8;
constexpr std::uint16_t kTcpChecksum = 16;
constexpr std::uint16_t kUdpChecksum = 6;
constexpr std::uint8_t kTcpPsh = 0x08;
constexpr std::uint8_t kTcpAck = 0x10;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint32_t kMaxPacket = 65535;

/// Of the transport, and of the IPv4 header: merging writes both anew, and must not make a wrong
/// one right.
bool checksumIsRight(const std::uint8_t* packet, const InnerPacket& inner, std::uint16_t offset) {
  if (!inner.v6 && foldSum(sumBytes({packet, offset})) != 0xffff) return false;
  const std::uint32_t length = inner.totalLength - offset;
  return foldSum(sumBytes({packet + offset, length},
                          pseudoHeaderSum(packet, inner.protocol, length))) == 0xffff;
}

std::uint32_t mix(std::uint32_t hash, std::uint32_t word) {
  hash ^= word;
  hash *= 0x9e3779b1U;
  return hash ^ (hash >> 15);
}

std::uint32_t hashFlow(const std::uint8_t* packet, bool v6, const std::uint8_t* ports) {
  std::uint32_t hash = load<std::uint32_t>(ports);
  const std::size_t words = v6 ? 8 : 2;
  const std::uint8_t* addresses = packet + (v6 ? 8 : 12);
  for (std::size_t i = 0; i < words; ++i) {
    hash = mix(hash, load<std::uint32_t>(addresses + i * 4));
  }
  return hash;
}

bool sameFlow(const std::uint8_t* a, const std::uint8_t* b, bool v6, std::uint16_t offset) {
  const std::size_t addresses = v6 ? 8 : 12;
  return std::memcmp(a + addresses, b + addresses, v6 ? 32 : 8) == 0 &&
         std::memcmp(a + offset, b + offset, 4) == 0;
}

}  // namespace

Coalescer::Coalescer() : packets_(kCapacity), entries_(kCapacity) {}

void Coalescer::clear() {
  packetCount_ = 0;
  entryCount_ = 0;
  flowCount_ = 0;
  nextFlow_ = 0;
}

// False when the packet has no ports that would tell its flow.
bool Coalescer::parseTransport(const std::uint8_t* packet, const InnerPacket& inner,
                               Transport& transport) {
  transport.tcp = inner.protocol == kProtocolTcp;
  if ((!transport.tcp && inner.protocol != kProtocolUdp) || inner.fragment) return false;
  transport.offset = inner.headerLength;
  const std::uint16_t minimum = transport.tcp ? kTcpHeader : kUdpHeader;
  if (inner.totalLength < std::uint32_t{transport.offset} + minimum) return false;
  const std::uint8_t* header = packet + transport.offset;
  transport.flowHash = hashFlow(packet, inner.v6, header);
  transport.headerLength =
      transport.tcp ? static_cast<std::uint16_t>(header[12] / 16 * 4) : kUdpHeader;
  const std::uint32_t all = std::uint32_t{transport.offset} + transport.headerLength;
  if (transport.headerLength < minimum || all >= inner.totalLength) return true;
  transport.payload = static_cast<std::uint16_t>(inner.totalLength - all);
  const bool options = !inner.v6 && inner.headerLength != kIpv4Header;
  if (transport.tcp) {
    const std::uint8_t flags = header[13];
    transport.mergeable = !options && (flags & ~kTcpPsh) == kTcpAck && (header[12] & 0x0f) == 0;
  } else {
    transport.mergeable = !options && loadBe16(header + 4) == kUdpHeader + transport.payload &&
                          load<std::uint16_t>(header + kUdpChecksum) != 0;
  }
  return true;
}

void Coalescer::add(std::uint8_t* packet, const InnerPacket& inner) {
  Transport transport;
  if (!parseTransport(packet, inner, transport)) {
    // Fragments and the like may belong to any open flow; nothing may overtake them.
    if (inner.protocol != kProtocolIcmp && inner.protocol != kProtocolIcmpV6) flowCount_ = 0;
    transport.mergeable = false;
    open(packet, inner, transport);
    return;
  }
  if (!(transport.tcp ? abilities_.tcp : abilities_.udp)) transport.mergeable = false;
  if (Entry* entry = findOpen(packet, inner, transport); entry != nullptr) {
    if (tryMerge(*entry, packet, inner, transport)) return;
    entry->closed = true;
  }
  open(packet, inner, transport);
}

Coalescer::Entry* Coalescer::findOpen(const std::uint8_t* packet, const InnerPacket& inner,
                                      const Transport& transport) {
  for (std::size_t i = 0; i < flowCount_; ++i) {
    Entry& entry = entries_[flows_[i]];
    if (entry.closed || entry.transport.flowHash != transport.flowHash || entry.v6 != inner.v6 ||
        entry.transport.tcp != transport.tcp) {
      continue;
    }
    if (sameFlow(packets_[entry.first].data, packet, inner.v6, transport.offset)) return &entry;
  }
  return nullptr;
}

// All that must be equal in every packet of a super-packet, or follow from the first one.
bool Coalescer::sameHeaders(const Entry& entry, const std::uint8_t* packet,
                            const InnerPacket& inner, const Transport& transport) const {
  const std::uint8_t* first = packets_[entry.first].data;
  if (entry.transport.headerLength != transport.headerLength) return false;
  if (inner.v6) {
    // Version, class and flow label; next header; hop limit.
    if (load<std::uint32_t>(first) != load<std::uint32_t>(packet) ||
        load<std::uint16_t>(first + 6) != load<std::uint16_t>(packet + 6)) {
      return false;
    }
  } else {
    const std::uint16_t fragment = loadBe16(packet + 6);
    if (load<std::uint16_t>(first) != load<std::uint16_t>(packet) ||
        loadBe16(first + 6) != fragment ||
        load<std::uint16_t>(first + 8) != load<std::uint16_t>(packet + 8)) {
      return false;
    }
    // Splitting counts identifications up; with DF set nobody looks at them (RFC 6864).
    if ((fragment & kDontFragment) == 0 && loadBe16(packet + 4) != entry.nextId) return false;
  }
  if (!transport.tcp) return true;
  const std::uint8_t* a = first + transport.offset;
  const std::uint8_t* b = packet + transport.offset;
  // Acknowledgement; window; urgent pointer and options.
  return loadBe32(b + 4) == entry.nextSequence &&
         load<std::uint32_t>(a + 8) == load<std::uint32_t>(b + 8) &&
         load<std::uint16_t>(a + 14) == load<std::uint16_t>(b + 14) &&
         std::memcmp(a + 18, b + 18, transport.headerLength - 18U) == 0;
}

bool Coalescer::tryMerge(Entry& entry, std::uint8_t* packet, const InnerPacket& inner,
                         const Transport& transport) {
  if (!transport.mergeable || transport.payload > entry.transport.payload ||
      entry.count == kMaxMerged || entry.totalLength + transport.payload > kMaxPacket ||
      !sameHeaders(entry, packet, inner, transport)) {
    return false;
  }
  // The device will be told that the checksums are right, so they must have been.
  if (!entry.verified) {
    InnerPacket first = inner;
    first.totalLength = packets_[entry.first].length;
    if (!checksumIsRight(packets_[entry.first].data, first, transport.offset)) return false;
    entry.verified = true;
  }
  if (!checksumIsRight(packet, inner, transport.offset)) return false;

  const std::uint16_t index = append(packet, inner, transport);
  packets_[entry.last].next = index;
  entry.last = index;
  ++entry.count;
  entry.totalLength += transport.payload;
  entry.nextSequence += transport.payload;
  ++entry.nextId;
  entry.lastPsh = transport.tcp && (packet[transport.offset + 13] & kTcpPsh) != 0;
  entry.closed = entry.lastPsh || transport.payload < entry.transport.payload;
  return true;
}

std::uint16_t Coalescer::append(std::uint8_t* packet, const InnerPacket& inner,
                                const Transport& transport) {
  Packet& added = packets_[packetCount_];
  added.data = packet;
  added.length = static_cast<std::uint16_t>(inner.totalLength);
  added.headerLength = static_cast<std::uint16_t>(transport.offset + transport.headerLength);
  added.next = kNone;
  return static_cast<std::uint16_t>(packetCount_++);
}

void Coalescer::open(std::uint8_t* packet, const InnerPacket& inner, const Transport& transport) {
  const std::uint16_t index = append(packet, inner, transport);
  Entry& entry = entries_[entryCount_];
  entry = Entry{};
  entry.first = entry.last = index;
  entry.count = 1;
  entry.v6 = inner.v6;
  entry.transport = transport;
  entry.totalLength = inner.totalLength;
  const auto number = static_cast<std::uint16_t>(entryCount_++);
  if (!transport.mergeable) return;
  if (transport.tcp) {
    const std::uint8_t* tcp = packet + transport.offset;
    if ((tcp[13] & kTcpPsh) != 0) return;
    entry.nextSequence = loadBe32(tcp + 4) + transport.payload;
  }
  if (!inner.v6) entry.nextId = static_cast<std::uint16_t>(loadBe16(packet + 4) + 1);
  if (flowCount_ < kOpenFlows) {
    flows_[flowCount_++] = number;
    return;
  }
  // All places taken: reuse a closed flow's, else the oldest one's, in turn.
  for (std::uint16_t& flow : flows_) {
    if (entries_[flow].closed) {
      flow = number;
      return;
    }
  }
  flows_[nextFlow_] = number;
  nextFlow_ = (nextFlow_ + 1) % kOpenFlows;
}

void Coalescer::patch(Entry& entry) {
  std::uint8_t* ip = packets_[entry.first].data;
  std::uint8_t* transport = ip + entry.transport.offset;
  const std::uint16_t checksum = entry.transport.tcp ? kTcpChecksum : kUdpChecksum;
  entry.oldChecksum = load<std::uint16_t>(transport + checksum);
  if (entry.v6) {
    entry.oldLength = loadBe16(ip + 4);
    storeBe16(ip + 4, static_cast<std::uint16_t>(entry.totalLength - entry.transport.offset));
  } else {
    entry.oldLength = loadBe16(ip + 2);
    entry.oldIpChecksum = load<std::uint16_t>(ip + 10);
    storeBe16(ip + 2, static_cast<std::uint16_t>(entry.totalLength));
    writeIpv4Checksum(ip, kIpv4Header);
  }
  const std::uint32_t length = entry.totalLength - entry.transport.offset;
  if (entry.transport.tcp) {
    entry.oldFlags = transport[13];
    if (entry.lastPsh) transport[13] |= kTcpPsh;
  } else {
    entry.oldUdpLength = loadBe16(transport + 4);
    storeBe16(transport + 4, static_cast<std::uint16_t>(length));
  }
  const std::uint8_t protocol = entry.transport.tcp ? kProtocolTcp : kProtocolUdp;
  store(transport + checksum, foldSum(pseudoHeaderSum(ip, protocol, length)));
  entry.patched = true;
}

void Coalescer::unpatch(Entry& entry) {
  if (!entry.patched) return;
  std::uint8_t* ip = packets_[entry.first].data;
  std::uint8_t* transport = ip + entry.transport.offset;
  if (entry.v6) {
    storeBe16(ip + 4, entry.oldLength);
  } else {
    storeBe16(ip + 2, entry.oldLength);
    store(ip + 10, entry.oldIpChecksum);
  }
  if (entry.transport.tcp) {
    transport[13] = entry.oldFlags;
    store(transport + kTcpChecksum, entry.oldChecksum);
  } else {
    storeBe16(transport + 4, entry.oldUdpLength);
    store(transport + kUdpChecksum, entry.oldChecksum);
  }
  entry.patched = false;
}

std::span<const iovec> Coalescer::gather(std::size_t index) {
  Entry& entry = entries_[index];
  const Packet& first = packets_[entry.first];
  header_ = {};
  pieces_[0] = {&header_, sizeof(header_)};
  pieces_[1] = {first.data, first.length};
  std::size_t used = 2;
  if (entry.count > 1) {
    patch(entry);
    const Transport& transport = entry.transport;
    header_.flags = kVirtioNeedsChecksum;
    header_.gsoType = !transport.tcp ? kGsoUdp : entry.v6 ? kGsoTcpV6 : kGsoTcpV4;
    header_.headerLength = first.headerLength;
    header_.gsoSize = transport.payload;
    header_.checksumStart = transport.offset;
    header_.checksumOffset = transport.tcp ? kTcpChecksum : kUdpChecksum;
    for (std::uint16_t i = first.next; i != kNone; i = packets_[i].next) {
      const Packet& packet = packets_[i];
      pieces_[used++] = {packet.data + packet.headerLength,
                         std::size_t{packet.length} - packet.headerLength};
    }
  }
  return std::span(pieces_).first(used);
}

std::span<const iovec> Coalescer::split(std::size_t index) {
  Entry& entry = entries_[index];
  unpatch(entry);
  std::size_t used = 0;
  for (std::uint16_t i = entry.first; i != kNone; i = packets_[i].next) {
    pieces_[used++] = {packets_[i].data, packets_[i].length};
  }
  return std::span(pieces_).first(used);
}

}  // namespace adit::dataplane::user
