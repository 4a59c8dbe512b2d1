#include "pcp/server.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace adit::pcp {
namespace {

constexpr std::size_t kMostRefusals = 256;
constexpr std::size_t kMostRefusalsPerPeer = 32;
constexpr auto kRefusalsKept = std::chrono::hours(1);

std::uint32_t wholeSeconds(BootTime time) {
  return static_cast<std::uint32_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(time).count()));
}

}  // namespace

Server::Server(const Clock& clock, const Host& host, ServerLimits limits, BootTime epochStart)
    : clock_(clock), host_(host), limits_(limits), epochStart_(epochStart) {}

std::uint32_t Server::epoch() const {
  return wholeSeconds(clock_.now() - epochStart_);
}

bool Server::mayAsk(const PeerPolicy& peer) {
  Bucket& bucket = buckets_[peer.id];
  const BootTime now = clock_.now();
  const double full = limits_.burst;
  if (!bucket.used) {
    bucket = {full, now, true};
  }
  const double passed = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(full, bucket.tokens + passed * limits_.rate);
  bucket.filled = now;
  if (bucket.tokens < 1) {
    return false;
  }
  bucket.tokens -= 1;
  return true;
}

std::optional<Bytes> Server::receive(std::span<const std::uint8_t> message,
                                     const Endpoint& source) {
  const PeerPolicy* peer = host_.peerOf(source.address);
  std::optional<Bytes> answer;
  if (peer != nullptr && message.size() >= 2 && mayAsk(*peer)) {
    expire();
    answer = message[0] == kNatPmpVersion ? receiveNatPmp(message, source, *peer)
                                          : receivePcp(message, source, *peer);
  }
  counts_.ignored += answer ? 0 : 1;
  return answer;
}

std::optional<Bytes> Server::receivePcp(std::span<const std::uint8_t> message,
                                        const Endpoint& source, const PeerPolicy& peer) {
  const ParsedRequest parsed = parseRequest(message);
  if (parsed.refusal) {
    ++counts_.refused;
    return errorTo(message, *parsed.refusal);
  }
  if (!parsed.request) {
    return std::nullopt;
  }
  if (parsed.request->client != source.address) {
    ++counts_.refused;
    return errorTo(message, ResultCode::AddressMismatch);
  }
  if (parsed.request->opcode == Opcode::Announce) {
    return announcement();
  }
  return answerMap(message, *parsed.request, source, peer);
}

Bytes Server::answerMap(std::span<const std::uint8_t> message, const Request& request,
                        const Endpoint& source, const PeerPolicy& peer) {
  const MapRequest asked{.peer = &peer,
                         .source = source,
                         .target = request.map->thirdParty.value_or(source.address),
                         .map = &*request.map,
                         .lifetime = request.lifetime,
                         .natPmp = false};
  const Decision decision = decide(asked);
  if (!decision) {
    const Refusal& refusal = decision.error().refusal;
    noteRefusal(asked, refusal);
    return errorTo(message, refusal.code, refusal.reason, decision.error().lifetime);
  }
  Response response{.opcode = Opcode::Map, .lifetime = decision->lifetime, .epoch = epoch()};
  MapMessage& map = response.map.emplace(*request.map);
  if (request.lifetime != 0) {
    map.externalPort = decision->firstExternal;
    map.externalAddress = host_.externalAddress(asked.target.family()).value_or(IpAddress::anyV4());
  }
  // One port alone is not a set (RFC 7753, section 4.1).
  if (map.portSet && decision->size > 1) {
    map.portSet->size = decision->size;
    map.portSet->firstInternal = decision->firstInternal;
  } else {
    map.portSet.reset();
  }
  if (!decision->extrasInForce) {
    map.extras.reset();
  } else if (map.extras) {
    map.extras->reason.clear();
  }
  return build(response);
}

Bytes Server::errorTo(std::span<const std::uint8_t> message, ResultCode code,
                      std::string_view reason, std::uint32_t lifetime) const {
  const auto usual = isShortLived(code) ? limits_.shortError : limits_.longError;
  return errorResponse(message, code,
                       lifetime != 0 ? lifetime : static_cast<std::uint32_t>(usual.count()),
                       epoch(), reason);
}

Bytes Server::noResources(std::span<const std::uint8_t> request) const {
  if (request[0] == kNatPmpVersion) {
    return natPmpError(request[1], NatPmpResult::OutOfResources, epoch());
  }
  return errorTo(request, ResultCode::NoResources, "the server's firewall refused the mapping");
}

Bytes Server::announcement() const {
  return build(Response{.opcode = Opcode::Announce, .epoch = epoch()});
}

Bytes Server::natPmpAnnouncement() const {
  const auto external = host_.externalAddress(AF_INET);
  return natPmpAddress(external ? NatPmpResult::Success : NatPmpResult::NetworkFailure, epoch(),
                       external.value_or(IpAddress::anyV4()));
}

bool Server::expire() {
  const BootTime now = clock_.now();
  const bool any =
      !table_.remove([now](const Lease& lease) { return lease.expires <= now; }).empty();
  revision_ += any ? 1 : 0;
  return any;
}

bool Server::isAllowed(const Lease& lease) const {
  const PeerPolicy* peer = host_.peerOf(lease.target);
  const PeerPolicy* asked = host_.peerOf(lease.client.address);
  return peer != nullptr && peer == asked && peer->id == lease.peer &&
         isGranted(*peer, lease.external()) && host_.isForeignHost(lease.target) &&
         (lease.target == lease.client.address || peer->thirdParty) &&
         !host_.isReserved(lease.external());
}

std::vector<Datagram> Server::revise() {
  std::vector<Datagram> news;
  for (const Lease& lease : table_.remove([this](const Lease& held) { return !isAllowed(held); })) {
    ++revision_;
    if (!lease.natPmp) {
      // A mapping update (section 14.2): the client asks again, and learns why not.
      Response response{.opcode = Opcode::Map, .lifetime = 0, .epoch = epoch()};
      MapMessage& map = response.map.emplace();
      map.nonce = lease.nonce;
      map.protocol = lease.protocol;
      map.internalPort = lease.firstInternal;
      map.externalPort = lease.firstExternal;
      if (lease.target != lease.client.address) {
        map.thirdParty = lease.target;
      }
      news.push_back({lease.client, build(response)});
    }
  }
  return news;
}

void Server::restore(std::vector<Lease> leases) {
  const BootTime now = clock_.now();
  for (Lease& lease : leases) {
    lease.expires = std::min(lease.expires, now + BootTime(limits_.maximumLifetime));
    const bool room =
        table_.countOf(lease.peer) < limits_.leasesPerPeer && table_.all().size() < limits_.leases;
    const bool known = table_.find(lease.protocol, lease.target, lease.firstInternal) != nullptr;
    if (lease.expires > now && room && !known && !table_.isHeld(lease) && isAllowed(lease)) {
      table_.add(std::move(lease));
      ++revision_;
    }
  }
}

void Server::rollBack(LeaseTable table) {
  table_ = std::move(table);
  ++revision_;
}

void Server::noteRefusal(const MapRequest& request, const Refusal& refusal) {
  ++counts_.refused;
  const std::uint16_t size = request.map->portSet ? request.map->portSet->size : 1;
  const std::uint16_t first =
      request.map->externalPort != 0 ? request.map->externalPort : request.map->internalPort;
  RefusedRequest note{.peer = request.peer->id,
                      .peerName = request.peer->name,
                      .client = request.source.address,
                      .target = request.target,
                      .external = {request.map->protocol, first,
                                   static_cast<std::uint16_t>(std::min(first + size - 1, 65535))},
                      .internalPort = request.map->internalPort,
                      .code = refusal.code,
                      .reason = refusal.reason,
                      .last = clock_.now(),
                      .count = 1};
  const auto same = [&](const RefusedRequest& other) {
    return other.peer == note.peer && other.target == note.target &&
           other.external == note.external && other.internalPort == note.internalPort;
  };
  const auto mine = [&](const RefusedRequest& other) { return other.peer == note.peer; };
  if (const auto known = std::ranges::find_if(refusals_, same); known != refusals_.end()) {
    note.count += known->count;
    refusals_.erase(known);
  } else if (std::ranges::count_if(refusals_, mine) >=
             static_cast<std::ptrdiff_t>(kMostRefusalsPerPeer)) {
    refusals_.erase(std::ranges::find_if(refusals_, mine));
  } else if (refusals_.size() == kMostRefusals) {
    refusals_.pop_front();
  }
  refusals_.push_back(std::move(note));
}

std::vector<RefusedRequest> Server::refusals() const {
  std::vector<RefusedRequest> recent;
  std::ranges::copy_if(refusals_, std::back_inserter(recent), [&](const RefusedRequest& refused) {
    return clock_.now() - refused.last < kRefusalsKept;
  });
  return recent;
}

}  // namespace adit::pcp
