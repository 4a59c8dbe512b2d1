// The receiving thread of a lane: UDP to TUN.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crypto/aead.hpp"
#include "crypto/hash.hpp"
#include "dataplane/user/device.hpp"
#include "dataplane/user/idle_wait.hpp"
#include "dataplane/user/tun_writer.hpp"
#include "dataplane/user/udp_socket.hpp"

namespace adit::dataplane::user {

class TxLoop;

class RxLoop {
 public:
  /// `transmit` is told when a promoted key allows staged packets to go out.
  RxLoop(Device& device, std::size_t seat, int tun, const TxLoop& transmit);
  ~RxLoop();
  RxLoop(const RxLoop&) = delete;
  RxLoop& operator=(const RxLoop&) = delete;

  /// Runs until stop().
  void run();
  /// Thread-safe.
  void stop();
  /// To be called while no batch runs.
  void setSockets(const UdpSockets* sockets);
  /// To be called after setSockets() while batches may run again: returns when the thread sleeps on
  /// the former sockets no more, which it would keep open, and their port taken.
  void awaitSockets();
  /// To be called while no batch runs. All zero refuses every handshake datagram.
  void setPublicKey(const crypto::PublicKey& key);

 private:
  // Buffers in one recvmmsg call: few large ones once the kernel merges datagrams for us.
  static constexpr std::size_t kMaxMessages = 64;
  static constexpr std::size_t kMergedMessages = 4;
  static constexpr std::size_t kBufferSize = 65536;
  static constexpr std::size_t kMaxJobs = 256;

  // One buffer that was received, with what is known of all datagrams in it.
  struct Received {
    std::span<std::uint8_t> bytes;
    ReceiveInfo info;
    Endpoint source;
  };

  // Receives once from `fd`; false when there is nothing.
  bool receive(int fd);
  void dispatch(std::size_t message);
  void handleDatagram(std::span<std::uint8_t> datagram, std::size_t message);
  void handleData(std::span<std::uint8_t> datagram, std::size_t message);
  void handleHandshake(std::span<const std::uint8_t> datagram, const Received& received);
  [[nodiscard]] bool macIsRight(std::span<const std::uint8_t> datagram);
  void openJobs();
  void dropReplays(Session& session);
  void acceptJobs(Session& session, std::span<crypto::AeadJob> jobs);
  void acceptPlaintext(Peer& peer, std::span<std::uint8_t> plaintext, const Received& received);
  void confirm(Session& session);

  Device& device_;
  const std::size_t seat_;
  const TxLoop& transmit_;
  EventFd event_;
  IdleWait idle_;
  std::atomic<bool> stop_{false};
  const UdpSockets* sockets_ = nullptr;
  std::atomic<bool> socketsChanged_{false};
  std::unique_ptr<crypto::KeyedBlake2s> mac1_;
  crypto::AeadWorker worker_;
  TunWriter writer_;
  BootTime now_{};

  /// kMaxMessages buffers; untouched pages of them take no memory.
  std::uint8_t* memory_;
  std::size_t messages_ = kMaxMessages;
  std::vector<mmsghdr> headers_;
  std::vector<iovec> pieces_;
  std::vector<sockaddr_in6> sources_;
  std::vector<ReceiveControl> controls_;
  std::vector<Received> received_;

  /// Datagrams of one session that wait to be decrypted together.
  Session* session_ = nullptr;
  std::size_t jobCount_ = 0;
  std::vector<crypto::AeadJob> jobs_;
  std::vector<std::uint8_t> jobMessages_;
};

}  // namespace adit::dataplane::user
