// Splits a super-packet from the TUN device into the packets that it stands for.
//
// Nothing is copied but headers: the header of segment i is written over the bytes just before its
// payload, which are the end of segment i-1's. So a segment is valid only until the next one is
// asked for, and must be encrypted first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/user/inner_packet.hpp"
#include "dataplane/user/virtio_net.hpp"

namespace adit::dataplane::user {

class Segmenter {
 public:
  /// `packet` without its virtio header. Nothing when it is not a TCP or UDP super-packet whose
  /// headers agree with `header`.
  static std::optional<Segmenter> create(std::span<std::uint8_t> packet, const InnerPacket& inner,
                                         const VirtioNetHeader& header);

  /// Segments not yet taken.
  [[nodiscard]] std::size_t remaining() const { return count_ - next_; }
  /// Bytes of every segment but the last, which may be shorter.
  [[nodiscard]] std::size_t segmentLength() const { return headerLength_ + gsoSize_; }
  /// Bytes of the segment that next() will return. Requires remaining() > 0.
  [[nodiscard]] std::size_t nextLength() const { return headerLength_ + payloadLength(next_); }

  /// Writes header and checksums of the next segment in front of its payload.
  /// Requires remaining() > 0.
  std::span<std::uint8_t> next();

 private:
  // IPv4 with options 60, IPv6 with a few extension headers; TCP up to 60.
  static constexpr std::size_t kMaxHeader = 256;

  Segmenter() = default;
  bool parseTransport(std::span<const std::uint8_t> packet, const InnerPacket& inner,
                      const VirtioNetHeader& header);
  [[nodiscard]] std::size_t payloadLength(std::size_t index) const;
  void patchIp(std::size_t length);
  void patchTransport(std::span<const std::uint8_t> payload);

  std::uint8_t* packet_ = nullptr;
  std::size_t payload_ = 0;
  std::size_t ipHeader_ = 0;
  std::size_t transport_ = 0;
  std::size_t headerLength_ = 0;
  std::size_t gsoSize_ = 0;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  bool v6_ = false;
  bool tcp_ = false;
  std::uint16_t firstId_ = 0;
  std::uint32_t firstSequence_ = 0;
  std::uint8_t flags_ = 0;
  // Sums of the header parts that are the same in all segments.
  std::uint64_t ipSum_ = 0;
  std::uint64_t transportSum_ = 0;
  std::array<std::uint8_t, kMaxHeader> header_;
};

/// Completes the checksum of a packet that came with kVirtioNeedsChecksum. False when the header
/// points outside of the packet.
bool completeChecksum(std::span<std::uint8_t> packet, const VirtioNetHeader& header);

}  // namespace adit::dataplane::user
