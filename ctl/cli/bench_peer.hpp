// Whom `adit bench PEER` measures: what the daemon knows of the peer, and what the person adds.
#pragma once

#include <optional>
#include <string>

#include "bench/runner.hpp"
#include "control/control_protocol.hpp"

namespace adit::cli {

/// The command line. Empty texts are found out where they can be.
struct PeerArguments {
  /// Name, public key, or an address inside the tunnel.
  std::string peer;
  std::string interface;
  /// The peer's address inside the tunnel.
  std::string address;
  /// The peer's address outside of it.
  std::string endpoint;
  /// ADDRESS:PORT of a mapped port that leads to the peer's iperf3.
  std::string mapped;
  std::uint16_t port = bench::kIperfPort;
};

struct PeerTarget {
  std::string name;
  /// The four are empty or 0 where the daemon may not be asked.
  std::string interface;
  std::string backend;
  std::optional<crypto::Suite> suite;
  std::uint32_t mtu = 0;
  bench::Targets targets;
  std::vector<std::string> notes;
};

/// Without root the daemons may not be asked: `peer` is then an address.
Result<PeerTarget> findPeer(const PeerArguments& arguments);

/// The address from which this machine would send to `destination`; ENETUNREACH and the like in
/// the error's code. Nothing is sent.
Result<IpAddress> sourceTowards(const IpAddress& destination);

/// The peer's own address inside the tunnel, as far as its AllowedIPs tell: a full-length prefix
/// that lies in a prefix of the interface, else any of full length.
std::optional<IpAddress> tunnelAddressOf(const control::PeerSnapshot& peer,
                                         const std::vector<InterfaceAddress>& own);

/// The port of the public side that leads to tcp `address`:`port`: of a mapping that is active.
std::optional<std::uint16_t> mappedPortFor(const std::vector<control::MapSnapshot>& maps,
                                           const IpAddress& address, std::uint16_t port);

}  // namespace adit::cli
