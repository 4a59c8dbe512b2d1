// Connection tracking entries that a changed mapping decides otherwise.
//
// The kernel decides about translation at a connection's first packet; a steady sender would keep
// the old decision for ever. So entries that disagree are deleted, and only those: one that is as
// the mappings would make it stays, as does everything that no changed mapping is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nat/mapping.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::nat {

/// A tracked TCP or UDP connection: its opening direction, and what its replies look like.
struct Flow {
  Protocol protocol = Protocol::Tcp;
  Endpoint originalSource;
  Endpoint originalDestination;
  Endpoint replySource;
  Endpoint replyDestination;
};

/// Ports of the public side whose mapping was added, changed or removed.
struct TouchedPorts {
  std::uint8_t protocol = 0;
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

struct HostAddresses {
  std::vector<IpAddress> all;
  /// Without loopback's and the tunnel's.
  std::vector<IpAddress> publicSide;
};
/// Of the network namespace of the calling thread.
Result<HostAddresses> hostAddresses(std::string_view tunnelInterface);

/// Whether a flow to a touched port is not what the mappings of `spec` would make of it.
bool disagrees(const Flow& flow, const RulesetSpec& spec, const std::vector<TouchedPorts>& touched,
               const HostAddresses& host);

/// Deletes the entries that disagree, of both families; returns how many.
Result<std::size_t> cutConnections(const RulesetSpec& spec,
                                   const std::vector<TouchedPorts>& touched,
                                   const HostAddresses& host);

/// Deletes the entries of connections to these ports of `target`, which its changed mapping masks
/// or shows. Returns how many.
Result<std::size_t> cutTarget(const IpAddress& target, const TouchedPorts& ports);

/// From the tunnel's address to the address that a UDP service answers from (see UdpAnswers).
struct AnswerPath {
  IpAddress tunnel;
  IpAddress home;
};
/// Deletes the UDP entries that were translated, or not, by other paths than those of now: `paths`
/// are all that were added or removed. Their next datagram is translated anew. Also those of
/// answers that went home, which stand in the way. Returns how many.
Result<std::size_t> cutAnswers(const std::vector<AnswerPath>& paths);

}  // namespace adit::nat
