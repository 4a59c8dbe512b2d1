// The sending thread of a lane: TUN to UDP.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/user/device.hpp"
#include "dataplane/user/icmp_reply.hpp"
#include "dataplane/user/idle_wait.hpp"
#include "dataplane/user/tx_batch.hpp"

namespace adit::dataplane::user {

class TxLoop {
 public:
  /// `seat` is the thread's place at the gate, `tun` its queue of the TUN device.
  TxLoop(Device& device, std::size_t seat, int tun);

  /// Runs until stop().
  void run();
  /// Thread-safe.
  void stop();
  /// Thread-safe: looks for peers whose `flushWanted` is set.
  void wake() const { event_.notify(); }
  /// To be called while no batch runs.
  void setSockets(const UdpSockets* sockets) { batch_.setSockets(sockets); }

 private:
  // Returns when there is nothing more to read, or the control thread wants to get in.
  void runBatch();
  // Reads one packet; false when there is none.
  bool readOne();
  void handle(const VirtioNetHeader& header, std::span<std::uint8_t> packet);
  void sendPacket(Session& session, const VirtioNetHeader& header, std::span<std::uint8_t> packet,
                  const InnerPacket& inner);
  void stageAll(Peer& peer, const VirtioNetHeader& header, std::span<std::uint8_t> packet,
                const InnerPacket& inner);
  void refuse(Drop reason, Peer* peer, std::span<const std::uint8_t> packet);
  void flushStaged();
  void flushStaged(Peer& peer, Session& session);

  Device& device_;
  const std::size_t seat_;
  const int tun_;
  EventFd event_;
  IdleWait idle_;
  std::atomic<bool> stop_{false};
  TxBatch batch_;
  BootTime now_{};
  IcmpLimiter icmpLimiter_;
  /// Packets are read one behind the other while the batch still refers to them.
  std::vector<std::uint8_t> arena_;
  std::size_t used_ = 0;
};

}  // namespace adit::dataplane::user
