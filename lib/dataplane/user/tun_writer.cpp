#include "dataplane/user/tun_writer.hpp"

#include <array>
#include <cerrno>

namespace adit::dataplane::user {

void TunWriter::add(std::uint8_t* packet, const InnerPacket& inner) {
  if (coalescer_.full()) flush();
  if (coalescer_.empty()) {
    coalescer_.setAbilities({.tcp = device_.mergeTcp.load(std::memory_order_relaxed),
                             .udp = device_.mergeUdp.load(std::memory_order_relaxed)});
  }
  coalescer_.add(packet, inner);
}

bool TunWriter::write(std::span<const iovec> pieces) {
  for (;;) {
    if (writeFunction_(tun_, pieces.data(), static_cast<int>(pieces.size())) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

void TunWriter::flush() {
  for (std::size_t i = 0; i < coalescer_.outputs(); ++i) {
    if (write(coalescer_.gather(i))) continue;
    if (coalescer_.merged(i) > 1 && errno == EINVAL) {
      writeSplit(i);
    } else {
      device_.drop(Drop::ReceiveFailed, nullptr, coalescer_.merged(i));
    }
  }
  coalescer_.clear();
}

void TunWriter::writeSplit(std::size_t output) {
  bool taken = false;
  for (const iovec& packet : coalescer_.split(output)) {
    VirtioNetHeader header{};
    const std::array<iovec, 2> pieces{iovec{&header, sizeof(header)}, packet};
    if (write(pieces)) {
      taken = true;
    } else {
      device_.drop(Drop::ReceiveFailed);
    }
  }
  if (!taken) return;
  device_.mergeTcp.store(false, std::memory_order_relaxed);
  device_.mergeUdp.store(false, std::memory_order_relaxed);
}

}  // namespace adit::dataplane::user
