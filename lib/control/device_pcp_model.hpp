// Between the configuration and the port control protocol: who may ask for what, whom to ask, and
// what a lease is to the firewall. Pure.
#pragma once

#include <string>
#include <vector>

#include "config/model.hpp"
#include "nat/mapping.hpp"
#include "pcp/client.hpp"
#include "pcp/host.hpp"
#include "pcp/lease.hpp"
#include "util/address.hpp"

namespace adit::control {

/// A peer as the server of ports sees it.
struct PortPeer {
  pcp::PeerPolicy policy;
  std::vector<Prefix> allowedIps;
  friend bool operator==(const PortPeer& a, const PortPeer& b) {
    return a.policy.id == b.policy.id && a.policy.name == b.policy.name &&
           a.policy.grants == b.policy.grants && a.policy.thirdParty == b.policy.thirdParty &&
           a.allowedIps == b.allowedIps;
  }
};

/// All peers, those without AllowMaps too: mappings of the file may lead to them.
std::vector<PortPeer> portPeers(const config::Config& config);

/// This host gives ports to its peers: some peer may ask, or the file maps ports to one.
bool servesPorts(const config::Config& config);

/// Where to ask for ports: this host's address in the tunnel and the server's, by family. The
/// configuration does not name the server's. It is, of the peer that is dialled: the address that
/// its AllowedIPs name alone, within the network of our own address, if there is one; else the
/// first one of that network; else any that its AllowedIPs name alone.
std::vector<pcp::Path> portPaths(const config::Config& config);

/// What the mappings of this host's own file ask for, one for each family that has a path.
std::vector<pcp::WantedMapping> wantedPorts(const std::vector<nat::Mapping>& declared,
                                            const std::vector<pcp::Path>& paths);

/// Leases as mappings; the two families of one mapping become one. `peers` gives their names.
std::vector<nat::Mapping> leaseMappings(const std::vector<pcp::Lease>& leases,
                                        const std::vector<PortPeer>& peers);

/// A mapping of UDP on this host's tunnel addresses that stands for a socket of ours, for
/// `Expose = maps`.
nat::Mapping ownSocket(std::uint16_t port, const std::vector<InterfaceAddress>& addresses);

}  // namespace adit::control
