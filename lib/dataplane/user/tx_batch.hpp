// Datagrams to one peer, encrypted into one buffer and sent by one system call.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "crypto/aead.hpp"
#include "dataplane/user/device.hpp"
#include "dataplane/user/segmenter.hpp"
#include "dataplane/user/udp_socket.hpp"

namespace adit::dataplane::user {

/// Collects packets of the same peer and traffic class and of equal size, of which the last one may
/// be shorter. What does not fit behind the others sends these first. Used by one thread, within a
/// batch of the gate or on the control thread; nothing may be left in it when a batch ends.
class TxBatch {
 public:
  explicit TxBatch(Device& device);

  /// The sockets must live until they are replaced by another call.
  void setSockets(const UdpSockets* sockets) { sockets_ = sockets; }
  /// Coarse time for limits and timers.
  void setTime(BootTime now) { now_ = now; }

  /// Adds an inner packet, or a keepalive if it is empty. Bytes up to the padded length behind it
  /// are overwritten, and all of it must stay until flush() or until pending() is zero.
  void addPacket(Session& session, std::span<std::uint8_t> packet, std::uint8_t innerTos);
  /// Adds all that is left of a super-packet. Nothing of it is referred to afterwards.
  void addSegments(Session& session, Segmenter& segmenter, std::uint8_t innerTos);
  /// Sends what is there.
  void flush();

  /// Packets that are referred to and not yet encrypted.
  [[nodiscard]] std::size_t pending() const { return pending_; }

 private:
  // Makes room for a datagram of `length` bytes: sends what it cannot stand behind.
  void makeRoom(Session& session, std::uint8_t tos, std::size_t length);
  [[nodiscard]] std::size_t room() const;
  void placed(std::size_t length);
  void sealPending();
  // `mtu` is the one that room was made by: the device's may have changed since.
  void sealSegments(Segmenter& segmenter, std::size_t count, std::uint64_t counter, unsigned mtu);
  std::uint8_t* writeHeader(std::uint8_t* datagram, std::uint64_t counter) const;
  void send();
  void stage(std::span<const std::uint8_t> packet);
  void reset();

  Device& device_;
  const UdpSockets* sockets_ = nullptr;
  crypto::AeadWorker worker_;
  BootTime now_{};

  Session* session_ = nullptr;
  std::uint8_t tos_ = 0;
  std::uint8_t innerTos_ = 0;
  bool closed_ = false;
  bool hasData_ = false;
  /// Bytes of every datagram but the last.
  std::size_t segment_ = 0;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  /// The last `pending_` datagrams of the batch have their place but are not yet encrypted.
  std::size_t pending_ = 0;
  std::array<crypto::AeadJob, kMaxSegments> jobs_{};
  std::array<std::uint16_t, kMaxSegments> lengths_{};
  std::vector<std::uint8_t> buffer_;
};

/// Puts a packet into its peer's staging queue and has a handshake started.
void stagePacket(Device& device, Peer& peer, std::span<const std::uint8_t> packet,
                 std::uint8_t innerTos);

}  // namespace adit::dataplane::user
