// The other side of a session without a data plane: a UDP socket and the keys.
#pragma once

#include "crypto/aead.hpp"
#include "dataplane/user/bytes.hpp"
#include "sessions.hpp"
#include "udp_peer.hpp"
#include "wire/messages.h"

namespace adit::test {

class FakePeer {
 public:
  explicit FakePeer(UdpPeer& socket) : socket_(socket) {}

  /// `keys` as this side has them.
  void use(const noise::SessionKeys& keys) {
    keys_ = keys;
    send_ = crypto::makeAeadKey(keys.suite, keys.send);
    receive_ = crypto::makeAeadKey(keys.suite, keys.receive);
    counter_ = 0;
  }

  [[nodiscard]] std::vector<std::uint8_t> seal(std::vector<std::uint8_t> plain,
                                               std::uint64_t counter) {
    std::vector<std::uint8_t> datagram(plain.size() + 32);
    datagram[0] = ADIT_MESSAGE_DATA;
    datagram[1] = static_cast<std::uint8_t>(keys_.suite);
    dataplane::user::storeLe32(&datagram[4], keys_.remoteIndex);
    dataplane::user::storeLe64(&datagram[8], counter);
    crypto::AeadJob job{.in = plain.data(),
                        .out = &datagram[16],
                        .length = static_cast<std::uint32_t>(plain.size()),
                        .counter = counter};
    worker_.seal(*send_, {&job, 1});
    return datagram;
  }
  [[nodiscard]] std::vector<std::uint8_t> seal(std::vector<std::uint8_t> plain) {
    return seal(std::move(plain), counter_++);
  }

  /// The plaintext, or nothing when the datagram belongs to another session.
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> open(
      const std::vector<std::uint8_t>& datagram) {
    if (datagram.size() < 32 || datagram[0] != ADIT_MESSAGE_DATA ||
        dataplane::user::loadLe32(&datagram[4]) != keys_.localIndex) {
      return std::nullopt;
    }
    std::vector<std::uint8_t> plain(datagram.size() - 32);
    crypto::AeadJob job{.in = &datagram[16],
                        .out = plain.data(),
                        .length = static_cast<std::uint32_t>(plain.size()),
                        .counter = dataplane::user::loadLe64(&datagram[8])};
    if (worker_.open(*receive_, {&job, 1}) != 1) return std::nullopt;
    return plain;
  }
  /// The next plaintext that arrives within a second.
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> receive() {
    const auto got = socket_.receive(1);
    return got.empty() ? std::nullopt : open(got[0]);
  }

 private:
  UdpPeer& socket_;
  crypto::AeadWorker worker_;
  noise::SessionKeys keys_{};
  std::unique_ptr<crypto::AeadKey> send_;
  std::unique_ptr<crypto::AeadKey> receive_;
  std::uint64_t counter_ = 0;
};

}  // namespace adit::test
