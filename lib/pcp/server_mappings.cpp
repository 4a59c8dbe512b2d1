// Decisions about one mapping (RFC 6887, sections 11 and 15), for both protocols.
#include <fmt/format.h>

#include <algorithm>

#include "pcp/server.hpp"

namespace adit::pcp {
namespace {

/// Whether a request comes from whoever made the lease.
bool mayChange(const Lease& lease, bool natPmp, const Nonce& nonce) {
  // A lease of NAT-PMP has no nonce; the client that asked for it may go over to PCP.
  return lease.natPmp || (!natPmp && lease.nonce == nonce);
}

std::uint32_t remaining(const Lease& lease, BootTime now) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::seconds>(lease.expires - now).count()));
}

/// The filters of a request on top of those that the mapping has (section 13.3).
std::vector<Prefix> filtered(std::vector<Prefix> networks, const std::vector<Filter>& filters) {
  for (const Filter& filter : filters) {
    if (!filter.network) {
      networks.clear();
    } else if (std::ranges::find(networks, *filter.network) == networks.end()) {
      networks.push_back(*filter.network);
    }
  }
  return networks;
}

bool sameNetworks(std::vector<Prefix> a, std::vector<Prefix> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

}  // namespace

std::uint32_t Server::granted(std::uint32_t lifetime) const {
  const auto least = static_cast<std::uint32_t>(limits_.minimumLifetime.count());
  const auto most = static_cast<std::uint32_t>(limits_.maximumLifetime.count());
  return std::clamp(lifetime, std::min(least, most), most);
}

std::optional<Server::Denied> Server::unsupported(const MapRequest& request) const {
  const MapMessage& map = *request.map;
  if (map.protocol != kTcp && map.protocol != kUdp) {
    return Denied{{ResultCode::UnsupportedProtocol, "only TCP and UDP can be mapped"}};
  }
  if (map.internalPort == 0) {
    return Denied{{ResultCode::UnsupportedProtocol, "all ports at once cannot be mapped"}};
  }
  if (std::ranges::any_of(map.filters, [](const Filter& filter) { return filter.port != 0; })) {
    return Denied{{ResultCode::UnsupportedOption, "clients cannot be chosen by their port"}};
  }
  if (map.internalPort + (map.portSet ? map.portSet->size : 1U) - 1U > 65535U) {
    return Denied{{ResultCode::MalformedOption, "the internal ports pass 65535"}};
  }
  return std::nullopt;
}

std::optional<Server::Denied> Server::checkThirdParty(const MapRequest& request) {
  if (request.target == request.source.address || request.peer->thirdParty) {
    return std::nullopt;
  }
  return Denied{{ResultCode::NotAuthorized,
                 fmt::format("{} is another host, and AllowMaps of {} does not say third-party",
                             request.target.toString(), request.peer->name)}};
}

std::optional<Server::Denied> Server::checkTarget(const MapRequest& request) const {
  if (auto denied = checkThirdParty(request)) {
    return denied;
  }
  if (request.target == request.source.address) {
    return std::nullopt;
  }
  if (!host_.isForeignHost(request.target) || host_.peerOf(request.target) != request.peer) {
    return Denied{
        {ResultCode::NotAuthorized, fmt::format("{} is not within AllowedIPs of {}",
                                                request.target.toString(), request.peer->name)}};
  }
  return std::nullopt;
}

/// The server's file leads there already (section 11.3: a mapping made by other means).
std::optional<Server::Decision> Server::answerStatic(const MapRequest& request) const {
  const MapMessage& map = *request.map;
  const auto fixed = host_.staticMapping(map.protocol, request.target, map.internalPort);
  if (!fixed) {
    return std::nullopt;
  }
  const unsigned offset = map.internalPort - fixed->firstInternal;
  const auto external = static_cast<std::uint16_t>(fixed->firstExternal + offset);
  const unsigned size = map.portSet ? map.portSet->size : 1;
  const bool wanted = map.externalPort == 0 || map.externalPort == external;
  if (!wanted || offset + size > fixed->size) {
    // Another mapping of the same service: to be made on its own.
    return std::nullopt;
  }
  const auto networks = filtered({}, map.filters);
  if (!networks.empty() && !sameNetworks(networks, fixed->allow)) {
    return Decision(
        tl::unexpected(Denied{{ResultCode::NotAuthorized,
                               "the server's file maps this port, with another list of Allow"}}));
  }
  return Decision(Granted{.firstInternal = map.internalPort,
                          .firstExternal = external,
                          .size = static_cast<std::uint16_t>(size),
                          .lifetime = granted(request.lifetime),
                          .extrasInForce = false});
}

Server::Decision Server::decide(const MapRequest& request) {
  if (request.lifetime == 0) {
    return release(request);
  }
  if (const auto denied = unsupported(request)) {
    return tl::unexpected(*denied);
  }
  if (const auto denied = checkTarget(request)) {
    return tl::unexpected(*denied);
  }
  if (const auto decision = answerStatic(request)) {
    return *decision;
  }
  if (request.peer->grants.empty()) {
    return tl::unexpected(Denied{
        {ResultCode::NotAuthorized, fmt::format("{} has no AllowMaps", request.peer->name)}});
  }
  if (!host_.externalAddress(request.target.family())) {
    return tl::unexpected(
        Denied{{ResultCode::NetworkFailure, fmt::format("the server has no public IPv{} address",
                                                        request.target.isV4() ? 4 : 6)}});
  }
  Lease* lease = table_.find(request.map->protocol, request.target, request.map->internalPort);
  return lease == nullptr ? create(request) : renew(request, *lease);
}

void Server::describe(const MapRequest& request, Lease& lease) const {
  lease.client = request.source;
  lease.nonce = request.map->nonce;
  lease.natPmp = request.natPmp;
  lease.allow = filtered(std::move(lease.allow), request.map->filters);
  if (const auto& extras = request.map->extras) {
    lease.masquerade = extras->masquerade;
    lease.hairpin = extras->hairpin;
    lease.rate = extras->rate;
  }
  lease.updated = clock_.now();
  lease.expires = clock_.now() + std::chrono::seconds(granted(request.lifetime));
}

Server::Decision Server::create(const MapRequest& request) {
  const MapMessage& map = *request.map;
  if (table_.countOf(request.peer->id) >= limits_.leasesPerPeer) {
    return tl::unexpected(Denied{
        {ResultCode::UserExceededQuota, fmt::format("{} has {} mappings, which is the most",
                                                    request.peer->name, limits_.leasesPerPeer)}});
  }
  if (table_.all().size() >= limits_.leases) {
    return tl::unexpected(
        Denied{{ResultCode::NoResources, "the server has as many mappings as it takes"}});
  }
  if (map.preferFailure && !map.externalAddress.isUnspecified() &&
      map.externalAddress != host_.externalAddress(request.target.family())) {
    return tl::unexpected(Denied{
        {ResultCode::CannotProvideExternal,
         fmt::format("{} is not the server's public address", map.externalAddress.toString())}});
  }
  Lease lease{.peer = request.peer->id,
              .target = request.target,
              .protocol = map.protocol,
              .firstInternal = map.internalPort,
              .size = map.portSet ? map.portSet->size : std::uint16_t{1}};
  const std::size_t shifted = table_.shiftedOf(request.peer->id);
  const PortWish wish{
      .external = map.externalPort,
      .exactly = map.preferFailure,
      .parity = map.portSet && map.portSet->parity,
      .mostShifted = limits_.shiftedPerPeer - std::min(shifted, limits_.shiftedPerPeer)};
  if (const auto refusal = choosePorts(*request.peer, table_, host_, wish, lease)) {
    return tl::unexpected(Denied{*refusal});
  }
  describe(request, lease);
  const Granted granted{.firstInternal = lease.firstInternal,
                        .firstExternal = lease.firstExternal,
                        .size = lease.size,
                        .lifetime = this->granted(request.lifetime)};
  table_.add(std::move(lease));
  ++revision_;
  return granted;
}

Server::Decision Server::renew(const MapRequest& request, Lease& lease) {
  const MapMessage& map = *request.map;
  if (lease.peer != request.peer->id || !mayChange(lease, request.natPmp, map.nonce)) {
    return tl::unexpected(
        Denied{{ResultCode::NotAuthorized, "another program holds this mapping, by another nonce"},
               remaining(lease, clock_.now())});
  }
  const auto external =
      static_cast<std::uint16_t>(lease.firstExternal + (map.internalPort - lease.firstInternal));
  if (map.preferFailure && map.externalPort != 0 && map.externalPort != external) {
    return tl::unexpected(
        Denied{{ResultCode::CannotProvideExternal,
                fmt::format("the internal port is mapped to {} already", external)}});
  }
  Lease changed = lease;
  describe(request, changed);
  const bool leadsElsewhere = changed.allow != lease.allow ||
                              changed.masquerade != lease.masquerade ||
                              changed.hairpin != lease.hairpin || changed.rate != lease.rate;
  revision_ += leadsElsewhere ? 1 : 0;
  lease = std::move(changed);
  if (map.portSet) {
    renewAlso(request, lease);
  }
  // The first of the set, as section 6.3 of RFC 7753 has it; a client that knows of no sets gets
  // the port that goes with its own.
  return Granted{.firstInternal = lease.firstInternal,
                 .firstExternal = map.portSet ? lease.firstExternal : external,
                 .size = lease.size,
                 .lifetime = granted(request.lifetime)};
}

void Server::renewAlso(const MapRequest& request, const Lease& renewed) {
  const MapMessage& map = *request.map;
  for (Lease* other :
       table_.within(map.protocol, request.target, map.internalPort, map.portSet->size)) {
    if (other->peer == renewed.peer && mayChange(*other, request.natPmp, map.nonce)) {
      other->updated = renewed.updated;
      other->expires = std::max(other->expires, renewed.expires);
    }
  }
}

Server::Decision Server::release(const MapRequest& request) {
  const MapMessage& map = *request.map;
  const Granted nothing{.firstInternal = map.internalPort,
                        .firstExternal = map.externalPort,
                        .size = map.portSet ? map.portSet->size : std::uint16_t{1},
                        .lifetime = 0};
  if (const auto denied = checkThirdParty(request)) {
    return tl::unexpected(*denied);
  }
  const auto mine = [&](const Lease& lease) {
    return lease.peer == request.peer->id && lease.target == request.target &&
           (map.protocol == 0 || lease.protocol == map.protocol);
  };
  if (map.internalPort == 0) {
    // All of them; those of other nonces stay (section 15.1).
    const auto gone = table_.remove([&](const Lease& lease) {
      return mine(lease) && mayChange(lease, request.natPmp, map.nonce);
    });
    revision_ += gone.empty() ? 0 : 1;
    return nothing;
  }
  const Lease* lease = table_.find(map.protocol, request.target, map.internalPort);
  if (lease == nullptr) {
    if (host_.staticMapping(map.protocol, request.target, map.internalPort)) {
      return tl::unexpected(
          Denied{{ResultCode::NotAuthorized, "the server's file makes this mapping"}});
    }
    return nothing;
  }
  if (!mine(*lease) || !mayChange(*lease, request.natPmp, map.nonce)) {
    return tl::unexpected(
        Denied{{ResultCode::NotAuthorized, "another program holds this mapping, by another nonce"},
               remaining(*lease, clock_.now())});
  }
  const std::uint16_t first = lease->firstInternal;
  table_.remove(
      [&](const Lease& other) { return other.holdsInternal(map.protocol, request.target, first); });
  ++revision_;
  return nothing;
}

}  // namespace adit::pcp
