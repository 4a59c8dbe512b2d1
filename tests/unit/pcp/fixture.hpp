// A server's machine that exists in memory, and two peers.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pcp/server.hpp"
#include "pcp/wire.hpp"
#include "util/clock.hpp"

namespace adit::pcp {

using namespace std::chrono_literals;

class FakeClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return time; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return time; }
  BootTime time{1000s};
};

inline IpAddress address(const char* text) {
  return *IpAddress::parse(text);
}
inline Prefix network(const char* text) {
  return *Prefix::parse(text);
}

class FakeHost final : public Host {
 public:
  struct Peer {
    PeerPolicy policy;
    std::vector<Prefix> allowed;
  };
  std::vector<Peer> peers{
      {{.id = "nas-key",
        .name = "nas",
        .grants = {{kTcp, 8000, 9000}, {kUdp, 51413, 51413}, {kUdp, 6000, 6009}},
        .thirdParty = true},
       {network("10.10.0.2/32"), network("fd10::2/128"), network("192.168.50.0/24")}},
      {{.id = "other-key", .name = "other", .grants = {{kTcp, 8000, 9000}}, .thirdParty = false},
       {network("10.10.0.3/32"), network("192.168.60.0/24")}}};
  std::map<int, IpAddress> external{{AF_INET, address("203.0.113.9")},
                                    {AF_INET6, address("2001:db8:9::9")}};
  /// What has a port, by protocol and port.
  std::map<std::pair<int, int>, std::string> holders;
  /// What the configuration has for itself.
  std::set<std::pair<int, int>> reserved;
  std::map<std::pair<int, int>, StaticMapping> fixed;
  mutable unsigned questions = 0;

  const PeerPolicy* peerOf(const IpAddress& asked) const override {
    const Peer* best = nullptr;
    unsigned longest = 0;
    for (const Peer& peer : peers) {
      for (const Prefix& prefix : peer.allowed) {
        if (prefix.contains(asked) && (best == nullptr || prefix.length() > longest)) {
          best = &peer;
          longest = prefix.length();
        }
      }
    }
    return best == nullptr ? nullptr : &best->policy;
  }
  bool isForeignHost(const IpAddress& asked) const override {
    return asked != address("10.10.0.1") && !asked.isLoopback() && !asked.isUnspecified();
  }
  std::optional<IpAddress> externalAddress(int family) const override {
    const auto found = external.find(family);
    return found == external.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> holderOf(const PortRange& ports, int) const override {
    ++questions;
    for (int port = ports.first; port <= ports.last; ++port) {
      if (const auto found = holders.find({ports.protocol, port}); found != holders.end()) {
        return found->second;
      }
    }
    return std::nullopt;
  }
  bool isReserved(const PortRange& ports) const override {
    return std::ranges::any_of(reserved, [&](const auto& port) {
      return ports.contains(static_cast<std::uint8_t>(port.first),
                            static_cast<unsigned>(port.second));
    });
  }
  std::optional<StaticMapping> staticMapping(std::uint8_t protocol, const IpAddress& target,
                                             std::uint16_t port) const override {
    const auto found = fixed.find({protocol, port});
    return found == fixed.end() || target != address("10.10.0.2") ? std::nullopt
                                                                  : std::optional(found->second);
  }
};

struct ServerFixture {
  FakeClock clock;
  FakeHost host;
  ServerLimits limits;
  Server server{clock, host, limits, clock.time};
  Endpoint nas{address("10.10.0.2"), 40000, 0};
  Endpoint other{address("10.10.0.3"), 40000, 0};

  void restart(ServerLimits fresh) {
    limits = fresh;
    std::destroy_at(&server);
    std::construct_at(&server, clock, host, limits, clock.time);
  }

  [[nodiscard]] static MapMessage mapOf(std::uint16_t internal, std::uint16_t external,
                                        std::uint8_t protocol = kTcp) {
    MapMessage map;
    map.nonce = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    map.protocol = protocol;
    map.internalPort = internal;
    map.externalPort = external;
    return map;
  }

  Response ask(const MapMessage& map, const Endpoint& from, std::uint32_t lifetime = 3600) {
    const Request request{
        .opcode = Opcode::Map, .lifetime = lifetime, .client = from.address, .map = map};
    return exchange(build(request), from);
  }
  Response ask(const MapMessage& map, std::uint32_t lifetime = 3600) {
    return ask(map, nas, lifetime);
  }
  Response exchange(const Bytes& message, const Endpoint& from) {
    const auto answer = server.receive(message, from);
    if (!answer) throw std::runtime_error("no answer");
    const auto response = parseResponse(*answer);
    if (!response) throw std::runtime_error("not a response");
    return *response;
  }
  Response exchange(const Bytes& message) { return exchange(message, nas); }
};

}  // namespace adit::pcp
