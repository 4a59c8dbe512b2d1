// The requests for ports of one device: pcp::Client on the tunnel's addresses.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/device_pcp_snapshot.hpp"
#include "control/device_pcp_socket.hpp"
#include "control/event_loop.hpp"
#include "crypto/key.hpp"
#include "crypto/random.hpp"
#include "pcp/client.hpp"
#include "util/clock.hpp"

namespace adit::control {

class PortClient final : private pcp::ClientActions {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    crypto::RandomSource& random;
    std::string interface;
    pcp::ClientTiming timing;
  };

  explicit PortClient(Parts parts);
  ~PortClient() override;
  PortClient(const PortClient&) = delete;
  PortClient& operator=(const PortClient&) = delete;

  /// From now on these. `key` is what the nonces are made from: the same ones after a restart, and
  /// unknown to everybody else.
  void update(const std::vector<pcp::WantedMapping>& wanted, const std::vector<pcp::Path>& paths,
              const std::optional<crypto::PrivateKey>& key);

  /// Gives all ports back, and waits for the answers, for a moment. Not from within a callback of
  /// the loop.
  void withdraw();

  [[nodiscard]] std::vector<PortRequestSnapshot> snapshots() const;
  [[nodiscard]] std::vector<pcp::MappingState> states() const { return client_.states(); }
  /// Why nothing can be had from the server; empty when nothing is known against it.
  [[nodiscard]] std::string trouble() const;

 private:
  struct Speaking {
    PortSocket socket;
    pcp::Path path;
    EventSource readable;
  };

  // pcp::ClientActions
  void send(const pcp::Path& path, const pcp::Bytes& message) override;
  [[nodiscard]] pcp::Nonce nonceFor(const pcp::WantedMapping& mapping) const override;
  [[nodiscard]] double random() override;

  void openSockets(const std::vector<pcp::Path>& paths);
  void receive(int descriptor);
  void poll();
  void schedule();

  Parts parts_;
  pcp::Client client_;
  std::vector<Speaking> sockets_;
  std::vector<pcp::WantedMapping> wanted_;
  std::vector<pcp::Path> paths_;
  std::optional<crypto::PrivateKey> key_;
  std::string trouble_;
  /// To be set when all withdrawals are answered.
  bool* withdrawn_ = nullptr;
  EventSource timer_;
};

}  // namespace adit::control
