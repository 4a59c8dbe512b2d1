// Writes decrypted packets to the TUN device, merged where they can be.
#pragma once

#include <cstdint>

#include "dataplane/user/coalescer.hpp"
#include "dataplane/user/device.hpp"

namespace adit::dataplane::user {

class TunWriter {
 public:
  TunWriter(Device& device, int tun) : device_(device), tun_(tun) {}

  /// Queues a packet of `inner.totalLength` bytes, whose memory must stay until flush().
  void add(std::uint8_t* packet, const InnerPacket& inner);
  /// Writes all that is queued.
  void flush();

 private:
  // The super-packet was refused: this kernel took the header but not the offload. Writes its
  // packets one by one, and merges no more if these are taken.
  void writeSplit(std::size_t output);
  bool write(std::span<const iovec> pieces);

  Device& device_;
  const int tun_;
  Coalescer coalescer_;
};

}  // namespace adit::dataplane::user
