// PCP and NAT-PMP: datagrams to a server that grants something, and to a client that waits.
#include <cstdlib>

#include "pcp/client.hpp"
#include "pcp/server.hpp"

namespace {

using namespace adit;
using namespace std::chrono_literals;

class StillClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return 1000s; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return 1000s; }
};

const IpAddress& nasAddress() {
  static const IpAddress address = *IpAddress::parse("10.10.0.2");
  return address;
}

class OnePeer final : public pcp::Host {
 public:
  [[nodiscard]] const pcp::PeerPolicy* peerOf(const IpAddress& address) const override {
    return network_.contains(address) ? &policy_ : nullptr;
  }
  [[nodiscard]] bool isForeignHost(const IpAddress& address) const override {
    return !address.isUnspecified();
  }
  [[nodiscard]] std::optional<IpAddress> externalAddress(int) const override {
    return *IpAddress::parse("203.0.113.9");
  }
  [[nodiscard]] std::optional<std::string> holderOf(const pcp::PortRange& ports,
                                                    int) const override {
    return ports.contains(pcp::kTcp, 8500) ? std::optional<std::string>("held") : std::nullopt;
  }
  [[nodiscard]] bool isReserved(const pcp::PortRange&) const override { return false; }
  [[nodiscard]] std::optional<pcp::StaticMapping> staticMapping(std::uint8_t, const IpAddress&,
                                                                std::uint16_t port) const override {
    return port == 443 ? std::optional(pcp::StaticMapping{443, 443, 1, {}}) : std::nullopt;
  }

 private:
  Prefix network_ = *Prefix::parse("10.10.0.0/16");
  pcp::PeerPolicy policy_{"nas", "nas", {{pcp::kTcp, 8000, 9000}, {pcp::kUdp, 6000, 6100}}, true};
};

/// Whatever the server grants is within what it may grant.
void checkLeases(const pcp::Server& server, const OnePeer& host) {
  for (const pcp::Lease& lease : server.leases()) {
    const pcp::PeerPolicy* peer = host.peerOf(lease.target);
    if (peer == nullptr || lease.size == 0 || lease.firstInternal == 0 ||
        lease.firstInternal + lease.size > 65536 || !pcp::isGranted(*peer, lease.external()) ||
        host.holderOf(lease.external(), AF_INET)) {
      std::abort();
    }
  }
}

class Silent final : public pcp::ClientActions {
 public:
  void send(const pcp::Path&, const pcp::Bytes& message) override {
    if (!pcp::parseRequest(message).request) {
      std::abort();
    }
  }
  [[nodiscard]] pcp::Nonce nonceFor(const pcp::WantedMapping&) const override { return {}; }
  [[nodiscard]] double random() override { return 0; }
};

void serve(std::span<const std::uint8_t> message) {
  const StillClock clock;
  const OnePeer host;
  pcp::Server server(clock, host, {}, 0s);
  for (int twice = 0; twice < 2; ++twice) {
    const auto answer = server.receive(message, {nasAddress(), 5350, 0});
    if (answer && (answer->size() > pcp::kMaximumMessage || ((*answer)[1] & 0x80) == 0)) {
      std::abort();
    }
    checkLeases(server, host);
  }
}

void listen(std::span<const std::uint8_t> message) {
  const StillClock clock;
  Silent actions;
  pcp::Client client(clock, actions);
  pcp::WantedMapping wanted;
  wanted.protocol = pcp::kTcp;
  wanted.firstExternal = wanted.firstInternal = 8080;
  wanted.target = nasAddress();
  const pcp::Path path{nasAddress(), *IpAddress::parse("10.10.0.1")};
  client.want({wanted}, {path});
  client.poll();
  client.receive(message, path.server);
  client.poll();
  for (const pcp::MappingState& state : client.states()) {
    if (state.kind == pcp::MappingState::Kind::Granted && state.externalPort != 8080) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span message(data, size);
  serve(message);
  listen(message);
  return 0;
}
