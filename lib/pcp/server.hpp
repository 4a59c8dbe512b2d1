// The server of PCP (RFC 6887) and NAT-PMP (RFC 6886): datagrams in, datagrams and leases out.
//
// It opens no socket and touches no firewall: whoever drives it makes `leases()` true before it
// sends the answers (see device_pcp_server.hpp). A datagram from an address that is no peer's is
// dropped before a byte of it is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pcp/host.hpp"
#include "pcp/lease.hpp"
#include "pcp/nat_pmp.hpp"
#include "pcp/ports.hpp"
#include "pcp/wire.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"

namespace adit::pcp {

struct ServerLimits {
  /// Lifetimes are clamped to these (section 15). A peer that vanishes keeps its ports that long.
  std::chrono::seconds minimumLifetime{120};
  std::chrono::seconds maximumLifetime{86400};
  /// How long a client should take a refusal for true (section 7.4).
  std::chrono::seconds shortError{30};
  std::chrono::seconds longError{1800};
  /// Leases of one peer, and of all together.
  std::size_t leasesPerPeer = 1024;
  std::size_t leases = 8192;
  /// Ports of one peer that lead to ports of another number: the kernel's rules have an element for
  /// each of them, and not only for each lease.
  std::size_t shiftedPerPeer = 2048;
  /// Datagrams of one peer: that many at once, and per second in the long run.
  unsigned burst = 128;
  unsigned rate = 32;
};

/// A request that was refused, for status.
struct RefusedRequest {
  std::string peer = {};
  std::string peerName = {};
  IpAddress client = {};
  IpAddress target = {};
  PortRange external = {};
  std::uint16_t internalPort = 0;
  ResultCode code = ResultCode::Success;
  std::string reason = {};
  /// On the boot-time clock.
  BootTime last{};
  std::uint64_t count = 1;
};

struct Datagram {
  Endpoint destination = {};
  Bytes bytes = {};
};

/// Counts since the start.
struct ServerCounts {
  /// Of no peer, too fast, or nothing that can be answered.
  std::uint64_t ignored = 0;
  std::uint64_t refused = 0;
};

class Server {
 public:
  /// `epochStart`: when the server last had no leases at all that clients believe in. A server that
  /// restores all its leases passes on the former one; one that cannot be sure passes now.
  Server(const Clock& clock, const Host& host, ServerLimits limits, BootTime epochStart);

  /// The answer to one datagram, to be sent back to `source`. Leases may have changed.
  std::optional<Bytes> receive(std::span<const std::uint8_t> message, const Endpoint& source);

  /// Ends what has run out; true when there was any.
  bool expire();
  /// Drops the leases that peers, grants, targets or ports of now no longer allow, and returns what
  /// to tell their holders. Call it whenever the host's answers may have changed.
  std::vector<Datagram> revise();
  /// Takes over leases of a former server, those that revise() would keep.
  void restore(std::vector<Lease> leases);

  /// What a client gets to hear unasked: that the server started anew (section 14.1). For PCP, and
  /// in `natPmp` for the older protocol; the latter has nothing to say over IPv6.
  [[nodiscard]] Bytes announcement() const;
  [[nodiscard]] Bytes natPmpAnnouncement() const;

  [[nodiscard]] const std::vector<Lease>& leases() const { return table_.all(); }
  /// Changes with every lease that comes, goes or leads elsewhere; renewals leave it.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// Undoes what was granted since: the leases of a saved table, which could not be put into force.
  void rollBack(LeaseTable table);
  [[nodiscard]] const LeaseTable& table() const { return table_; }
  /// The error that tells a client of a rollBack().
  [[nodiscard]] Bytes noResources(std::span<const std::uint8_t> request) const;

  [[nodiscard]] std::optional<BootTime> nextExpiry() const { return table_.nextExpiry(); }
  [[nodiscard]] BootTime epochStart() const { return epochStart_; }
  /// Newest last; bounded, and without those of before an hour.
  [[nodiscard]] std::vector<RefusedRequest> refusals() const;
  [[nodiscard]] const ServerCounts& counts() const { return counts_; }

 private:
  struct Bucket {
    double tokens = 0;
    BootTime filled{};
    /// A newcomer's is full.
    bool used = false;
  };
  /// A MAP of either protocol.
  struct MapRequest {
    const PeerPolicy* peer = nullptr;
    Endpoint source = {};
    IpAddress target = {};
    const MapMessage* map = nullptr;
    std::uint32_t lifetime = 0;
    bool natPmp = false;
  };
  struct Granted {
    std::uint16_t firstInternal = 0;
    std::uint16_t firstExternal = 0;
    std::uint16_t size = 1;
    std::uint32_t lifetime = 0;
    /// The Extras of the request are; an answer without them says that they are not.
    bool extrasInForce = true;
  };
  struct Denied {
    Refusal refusal = {};
    /// Instead of the usual one of the error, where it is not 0.
    std::uint32_t lifetime = 0;
  };
  using Decision = tl::expected<Granted, Denied>;

  // server.cpp
  bool mayAsk(const PeerPolicy& peer);
  std::optional<Bytes> receivePcp(std::span<const std::uint8_t> message, const Endpoint& source,
                                  const PeerPolicy& peer);
  Bytes answerMap(std::span<const std::uint8_t> message, const Request& request,
                  const Endpoint& source, const PeerPolicy& peer);
  [[nodiscard]] Bytes errorTo(std::span<const std::uint8_t> message, ResultCode code,
                              std::string_view reason = {}, std::uint32_t lifetime = 0) const;
  [[nodiscard]] std::uint32_t epoch() const;
  [[nodiscard]] bool isAllowed(const Lease& lease) const;
  void noteRefusal(const MapRequest& request, const Refusal& refusal);

  // server_mappings.cpp
  Decision decide(const MapRequest& request);
  Decision create(const MapRequest& request);
  Decision renew(const MapRequest& request, Lease& lease);
  /// A set may span several mappings: the answer tells of one, and all of them live on.
  void renewAlso(const MapRequest& request, const Lease& renewed);
  Decision release(const MapRequest& request);
  [[nodiscard]] std::optional<Denied> unsupported(const MapRequest& request) const;
  [[nodiscard]] static std::optional<Denied> checkThirdParty(const MapRequest& request);
  [[nodiscard]] std::optional<Denied> checkTarget(const MapRequest& request) const;
  [[nodiscard]] std::optional<Decision> answerStatic(const MapRequest& request) const;
  [[nodiscard]] std::uint32_t granted(std::uint32_t lifetime) const;
  void describe(const MapRequest& request, Lease& lease) const;

  // server_nat_pmp.cpp
  std::optional<Bytes> receiveNatPmp(std::span<const std::uint8_t> message, const Endpoint& source,
                                     const PeerPolicy& peer);
  Bytes answerNatPmpMap(const NatPmpRequest& request, const Endpoint& source,
                        const PeerPolicy& peer);

  const Clock& clock_;
  const Host& host_;
  ServerLimits limits_;
  BootTime epochStart_;
  LeaseTable table_;
  std::uint64_t revision_ = 0;
  /// One for each peer that has ever asked; peers come from the configuration alone.
  std::map<std::string, Bucket, std::less<>> buckets_;
  std::deque<RefusedRequest> refusals_;
  ServerCounts counts_;
};

}  // namespace adit::pcp
