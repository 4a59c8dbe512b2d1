// The control side of the user-space data plane.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataplane/user/device.hpp"
#include "dataplane/user/lane.hpp"
#include "dataplane/user/tun.hpp"
#include "dataplane/user/tx_batch.hpp"
#include "dataplane/user/user.hpp"

namespace adit::dataplane::user {

class UserDataPlane final : public DataPlane {
 public:
  static Result<std::unique_ptr<DataPlane>> create(const UserOptions& options);
  ~UserDataPlane() override;
  UserDataPlane(const UserDataPlane&) = delete;
  UserDataPlane& operator=(const UserDataPlane&) = delete;

  void destroyInterface() override;
  [[nodiscard]] std::string_view name() const override { return "userspace"; }
  [[nodiscard]] std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds() const override;
  [[nodiscard]] std::vector<std::string> remarks() const override;
  Result<void> configure(const DeviceSettings& settings) override;
  Result<void> setPeer(const PeerSettings& settings) override;
  Result<void> removePeer(PeerId peer) override;
  Result<void> setEndpoint(PeerId peer, const Endpoint& endpoint,
                           const std::optional<LocalAddress>& local) override;
  Result<void> installKeys(PeerId peer, const crypto::PublicKey& peerKey,
                           const noise::SessionKeys& keys) override;
  Result<void> dropKeys(PeerId peer) override;
  void dropStaged(PeerId peer) override;
  void sendControl(PeerId peer, std::span<const std::uint8_t> message) override;
  Result<void> sendHandshake(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                             const std::optional<LocalAddress>& local) override;
  [[nodiscard]] std::vector<PeerStats> peerStats() const override;
  [[nodiscard]] DeviceStats deviceStats() const override;
  [[nodiscard]] int eventDescriptor() const override { return events_.get(); }
  void dispatch(EventSink& sink) override;

 private:
  UserDataPlane(const UserOptions& options, const Clock& clock, Tun tun);

  Result<void> openEvents();
  void startLanes();
  void stopLanes();
  [[nodiscard]] const UdpSockets& sockets() const { return lanes_.front()->sockets(); }
  [[nodiscard]] SocketSettings socketSettings(const DeviceSettings& settings) const;
  [[nodiscard]] Result<std::vector<UdpSockets>> openSockets(const DeviceSettings& settings) const;
  Result<void> rebind(const DeviceSettings& settings);
  // Gives every lane its sockets, or takes them away; the former ones are closed on return.
  void adopt(std::vector<UdpSockets> sockets);

  // Encrypts and sends one packet of ours; an empty one is a keepalive.
  void sendOwn(Peer& peer, std::span<const std::uint8_t> packet);
  void wakeTransmit(Peer& peer);
  void followMtu(BootTime now);
  void evaluateTimers(Peer& peer, BootTime now, EventSink& sink);
  void tellPeerEvents(Peer& peer, BootTime now, EventSink& sink);
  // Asks for dispatch() at `time` at the latest.
  void wakeAt(BootTime time);
  void armTimer(BootTime now);

  Device device_;
  Tun tun_;
  const OffloadSwitches offload_;
  // The self-test of segmented sends has found them changed.
  bool sendsAreChanged_ = false;
  std::vector<std::unique_ptr<Lane>> lanes_;
  DeviceSettings settings_;
  TxBatch own_;
  std::vector<std::uint8_t> ownBuffer_;
  UniqueFd timer_;
  UniqueFd events_;
  std::optional<BootTime> wakeAt_;
  BootTime mtuRead_{};
};

}  // namespace adit::dataplane::user
