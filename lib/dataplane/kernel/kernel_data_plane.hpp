// adit.ko behind the interface of a data plane. Private to dataplane/kernel.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/kernel/answers.hpp"
#include "dataplane/kernel/kernel.hpp"

namespace adit::dataplane::kernel {

class KernelDataPlane final : public DataPlane {
 public:
  static Result<std::unique_ptr<DataPlane>> create(std::unique_ptr<netlink::GenlChannel> channel,
                                                   netlink::Routing& routing,
                                                   const KernelOptions& options);
  ~KernelDataPlane() override = default;
  KernelDataPlane(const KernelDataPlane&) = delete;
  KernelDataPlane& operator=(const KernelDataPlane&) = delete;

  void destroyInterface() override;
  [[nodiscard]] std::string_view name() const override { return "kernel"; }
  [[nodiscard]] std::string_view version() const override { return module_; }
  [[nodiscard]] std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds() const override {
    return suiteSpeeds_;
  }
  [[nodiscard]] const Inheritance& inheritance() const override { return inheritance_; }
  Result<void> configure(const DeviceSettings& settings) override;
  Result<void> setPeer(const PeerSettings& settings) override;
  Result<void> removePeer(PeerId peer) override;
  Result<void> setEndpoint(PeerId peer, const Endpoint& endpoint,
                           const std::optional<LocalAddress>& local) override;
  Result<void> keepMark(PeerId peer, std::span<const std::uint8_t> mark) override;
  Result<void> installKeys(PeerId peer, const crypto::PublicKey& peerKey,
                           const noise::SessionKeys& keys) override;
  Result<void> dropKeys(PeerId peer) override;
  void dropStaged(PeerId peer) override;
  void sendControl(PeerId peer, std::span<const std::uint8_t> message) override;
  Result<void> sendHandshake(std::span<const std::uint8_t> datagram, const Endpoint& destination,
                             const std::optional<LocalAddress>& local) override;
  [[nodiscard]] std::vector<PeerStats> peerStats() const override;
  [[nodiscard]] DeviceStats deviceStats() const override;
  [[nodiscard]] int eventDescriptor() const override { return channel_->eventDescriptor(); }
  void dispatch(EventSink& sink) override;

 private:
  /// What the module was told of a peer, so that only changes are sent, and what it told us.
  struct Peer {
    PeerSettings settings;
    /// A change failed half-way: the next one sends everything.
    bool uncertain = false;
    std::optional<Endpoint> endpoint;
    bool hasKeys = false;
    /// Keys that wait for their first packet were installed then.
    std::optional<BootTime> unconfirmedSince;
  };

  KernelDataPlane(std::unique_ptr<netlink::GenlChannel> channel, netlink::Routing& routing,
                  const KernelOptions& options, const netlink::Link& link);

  // kernel_data_plane.cpp
  [[nodiscard]] Result<DeviceAnswer> readDevice() const;
  /// A change that may be made twice, so that it is sent again when its acknowledgement is lost.
  Result<void> repeatable(const netlink::GenlRequest& request);
  Result<void> bringUp(std::uint16_t listenPort);
  Peer* find(PeerId id);
  [[nodiscard]] PeerChange changesOf(const Peer* known, const PeerSettings& settings) const;
  /// As the module does with prefixes that `owner` now has.
  void takeFromOthers(const PeerSettings& owner);

  // adoption.cpp
  Result<void> claim();
  Result<void> adopt();
  [[nodiscard]] Result<std::vector<PeerAnswer>> readPeers() const;

  // dispatch.cpp
  void handOver(const Event& event, EventSink& sink);
  void recover(EventSink& sink);
  void recoverPeer(const PeerAnswer& answer, EventSink& sink);

  std::unique_ptr<netlink::GenlChannel> channel_;
  netlink::Routing& routing_;
  const Clock& clock_;
  const std::string name_;
  const Interface interface_;
  std::string module_;
  std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds_{};
  Inheritance inheritance_;
  /// What the module has now.
  DeviceSettings settings_;
  bool configured_ = false;
  std::map<PeerId, Peer> peers_;
  /// Events were lost, and what they were about was not looked at yet.
  bool recoveryWanted_ = false;
};

}  // namespace adit::dataplane::kernel
