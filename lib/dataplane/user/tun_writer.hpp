// Writes decrypted packets to the TUN device, merged where they can be.
#pragma once

#include <sys/uio.h>

#include <cstdint>

#include "dataplane/user/coalescer.hpp"
#include "dataplane/user/device.hpp"

namespace adit::dataplane::user {

class TunWriter {
 public:
  /// writev(2), or what a test puts in its place.
  using WriteFunction = ssize_t (*)(int, const iovec*, int);

  TunWriter(Device& device, int tun, WriteFunction writeFunction = ::writev)
      : device_(device), tun_(tun), writeFunction_(writeFunction) {}

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
  const WriteFunction writeFunction_;
  Coalescer coalescer_;
};

}  // namespace adit::dataplane::user
