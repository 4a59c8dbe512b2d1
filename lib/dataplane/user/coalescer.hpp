// Merges received packets of one flow into super-packets for the TUN device.
//
// Packets stay where they were decrypted; what goes out is a list of pieces. The order of packets
// within a flow is kept: a packet that cannot be merged ends its flow's super-packet and stands
// behind it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/user/inner_packet.hpp"
#include "dataplane/user/virtio_net.hpp"

namespace adit::dataplane::user {

class Coalescer {
 public:
  /// Packets that can be held between two calls of clear().
  static constexpr std::size_t kCapacity = 512;
  /// Packets in one super-packet.
  static constexpr std::size_t kMaxMerged = 64;

  /// What the device takes.
  struct Abilities {
    bool tcp = false;
    bool udp = false;
  };

  Coalescer();

  [[nodiscard]] bool full() const { return packetCount_ == kCapacity; }
  [[nodiscard]] bool empty() const { return packetCount_ == 0; }
  void setAbilities(Abilities abilities) { abilities_ = abilities; }

  /// Adds a packet of `inner.totalLength` bytes. Its memory must stay until clear(), and its header
  /// may be changed by gather(). Requires !full().
  void add(std::uint8_t* packet, const InnerPacket& inner);

  /// How many packets or super-packets are to be written.
  [[nodiscard]] std::size_t outputs() const { return entryCount_; }
  /// How many received packets output `index` stands for.
  [[nodiscard]] std::size_t merged(std::size_t index) const { return entries_[index].count; }
  /// Makes the header of output `index` fit and returns its pieces, virtio header first. Valid
  /// until the next call.
  std::span<const iovec> gather(std::size_t index);
  /// Undoes what gather() did to the headers and returns the packets that output `index` was made
  /// of, each of which is whole again.
  std::span<const iovec> split(std::size_t index);
  void clear();

 private:
  static constexpr std::size_t kOpenFlows = 16;
  static constexpr std::uint16_t kNone = 0xffff;

  struct Packet {
    std::uint8_t* data;
    std::uint16_t length;
    std::uint16_t headerLength;
    std::uint16_t next;
  };

  // Where a packet's transport header is and what decides about merging.
  struct Transport {
    std::uint16_t offset = 0;
    std::uint16_t headerLength = 0;
    std::uint16_t payload = 0;
    std::uint32_t flowHash = 0;
    bool tcp = false;
    /// Could be the start of a super-packet, or be merged into one.
    bool mergeable = false;
  };

  struct Entry {
    std::uint16_t first;
    std::uint16_t last;
    std::uint16_t count;
    bool v6;
    bool closed;
    bool verified;
    bool lastPsh;
    Transport transport;
    std::uint32_t totalLength;
    std::uint32_t nextSequence;
    std::uint16_t nextId;
    // Header fields that gather() overwrites.
    bool patched;
    std::uint16_t oldLength;
    std::uint16_t oldIpChecksum;
    std::uint16_t oldChecksum;
    std::uint16_t oldUdpLength;
    std::uint8_t oldFlags;
  };

  static bool parseTransport(const std::uint8_t* packet, const InnerPacket& inner,
                             Transport& transport);
  Entry* findOpen(const std::uint8_t* packet, const InnerPacket& inner, const Transport& transport);
  bool tryMerge(Entry& entry, std::uint8_t* packet, const InnerPacket& inner,
                const Transport& transport);
  bool sameHeaders(const Entry& entry, const std::uint8_t* packet, const InnerPacket& inner,
                   const Transport& transport) const;
  std::uint16_t append(std::uint8_t* packet, const InnerPacket& inner, const Transport& transport);
  void open(std::uint8_t* packet, const InnerPacket& inner, const Transport& transport);
  void patch(Entry& entry);
  void unpatch(Entry& entry);

  Abilities abilities_;
  std::size_t packetCount_ = 0;
  std::size_t entryCount_ = 0;
  std::size_t flowCount_ = 0;
  std::size_t nextFlow_ = 0;
  std::vector<Packet> packets_;
  std::vector<Entry> entries_;
  std::array<std::uint16_t, kOpenFlows> flows_{};
  VirtioNetHeader header_{};
  std::array<iovec, kMaxMerged + 2> pieces_{};
};

}  // namespace adit::dataplane::user
