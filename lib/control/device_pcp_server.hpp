// The server of ports of one device: pcp::Server on the tunnel's addresses.
#pragma once

#include <bitset>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/device_pcp_model.hpp"
#include "control/device_pcp_snapshot.hpp"
#include "control/device_pcp_socket.hpp"
#include "control/event_loop.hpp"
#include "control/state_store.hpp"
#include "nat/claims.hpp"
#include "nat/mapping.hpp"
#include "nat/prerequisites.hpp"
#include "pcp/server.hpp"
#include "util/clock.hpp"

namespace adit::control {

/// What the server has to know of the configuration and of the machine, as it is now.
struct PortServerFacts {
  std::vector<PortPeer> peers;
  /// Of the tunnel.
  std::vector<InterfaceAddress> addresses;
  /// The file's own mappings, public NICs and the tunnel's port.
  nat::RulesetSpec ruleset;
  /// This machine's public addresses, at most one of each family.
  std::vector<IpAddress> external;
  /// All addresses of this machine.
  std::vector<IpAddress> own;
};

class PortServer final : private pcp::Host {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    StateStore& state;
    std::string interface;
    pcp::ServerLimits limits;
  };
  struct Actions {
    /// Puts mappings() into force.
    std::function<Result<void>()> apply;
    /// The network must not be changed now.
    std::function<bool()> busy;
  };

  /// Restores the leases of a former server at the first update().
  PortServer(Parts parts, Actions actions);
  ~PortServer() override;
  PortServer(const PortServer&) = delete;
  PortServer& operator=(const PortServer&) = delete;

  /// Listens on the addresses of now, and drops the leases that are no longer allowed. Whoever
  /// calls puts mappings() into force afterwards.
  void update(PortServerFacts facts);
  [[nodiscard]] std::vector<nat::Mapping> mappings() const;
  /// A peer can be reached (again): it hears what it has missed.
  void sessionUp(const std::string& peerId);
  /// Stops listening; the leases are kept for the next server.
  void stop();

  [[nodiscard]] std::vector<PortRequestSnapshot> snapshots() const;
  /// Why nobody can ask; empty when nothing is known against it.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  struct Listening {
    PortSocket socket;
    EventSource readable;
  };
  /// A message, whoever sent it, and the answer.
  struct Exchange {
    pcp::Bytes request;
    Endpoint client;
    std::optional<pcp::Bytes> answer;
  };

  // pcp::Host
  [[nodiscard]] const pcp::PeerPolicy* peerOf(const IpAddress& address) const override;
  [[nodiscard]] bool isForeignHost(const IpAddress& address) const override;
  [[nodiscard]] std::optional<IpAddress> externalAddress(int family) const override;
  [[nodiscard]] std::optional<std::string> holderOf(const pcp::PortRange& ports,
                                                    int family) const override;
  [[nodiscard]] bool isHeld(std::uint8_t protocol, std::uint16_t port, int family) const override;
  [[nodiscard]] bool isReserved(const pcp::PortRange& ports) const override;
  [[nodiscard]] std::optional<pcp::StaticMapping> staticMapping(std::uint8_t protocol,
                                                                const IpAddress& target,
                                                                std::uint16_t port) const override;

  /// device_pcp_host.cpp
  [[nodiscard]] std::optional<std::string> reservation(const pcp::PortRange& ports) const;
  void refreshHolders() const;

  void listen();
  void restore();
  void serve(const PortSocket& socket);
  /// Puts a changed table into force, or takes the change back; false in the latter case.
  bool enforce(const pcp::LeaseTable& before);
  void logChanges(const std::vector<pcp::Lease>& before) const;
  void endLeases();
  void scheduleExpiry();
  void save();
  void saveLater();
  void announceTo(const std::string& peerId);
  void startAnnouncing();
  void announceRound();
  [[nodiscard]] bool wantsNews(const PortPeer& peer) const;
  void send(const pcp::Bytes& message, const Endpoint& destination) const;
  [[nodiscard]] std::string nameOf(const std::string& peerId) const;

  Parts parts_;
  Actions actions_;
  PortServerFacts facts_;
  std::unique_ptr<pcp::Server> server_;
  std::vector<Listening> sockets_;
  std::string trouble_;
  EventSource expiry_;
  EventSource saving_;
  EventSource durableSaving_;
  EventSource announcing_;
  /// Peers that have not been heard of since there is news for them, and how often they were told.
  std::map<std::string, unsigned> uninformed_;
  unsigned rounds_ = 0;
  /// Who else has ports: asking the kernel is slow, and requests come in bursts.
  mutable std::vector<nat::Listener> listeners_;
  mutable std::vector<nat::Claim> claims_;
  mutable std::optional<BootTime> holdersRead_;
  /// What they say about single ports, as far as it was asked since; by protocol and family.
  struct KnownPorts {
    std::bitset<65536> asked;
    std::bitset<65536> held;
  };
  mutable std::map<std::pair<std::uint8_t, int>, KnownPorts> knownPorts_;
};

}  // namespace adit::control
