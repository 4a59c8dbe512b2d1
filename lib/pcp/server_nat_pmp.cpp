// The server's NAT-PMP (RFC 6886): the same decisions behind the older messages.
#include "pcp/server.hpp"

namespace adit::pcp {

std::optional<Bytes> Server::receiveNatPmp(std::span<const std::uint8_t> message,
                                           const Endpoint& source, const PeerPolicy& peer) {
  const ParsedNatPmp parsed = parseNatPmp(message);
  // The protocol has no IPv6.
  if (!source.address.isV4() || (!parsed.request && !parsed.refusal)) {
    return std::nullopt;
  }
  if (parsed.refusal) {
    ++counts_.refused;
    return natPmpError(message[1], *parsed.refusal, epoch());
  }
  if (parsed.request->kind == NatPmpRequest::Kind::ExternalAddress) {
    return natPmpAnnouncement();
  }
  return answerNatPmpMap(*parsed.request, source, peer);
}

Bytes Server::answerNatPmpMap(const NatPmpRequest& request, const Endpoint& source,
                              const PeerPolicy& peer) {
  MapMessage map;
  map.protocol = request.protocol();
  map.internalPort = request.internalPort;
  map.externalPort = request.externalPort;
  const MapRequest asked{.peer = &peer,
                         .source = source,
                         .target = source.address,
                         .map = &map,
                         .lifetime = request.lifetime,
                         .natPmp = true};
  const Decision decision = decide(asked);
  if (!decision) {
    const Refusal& refusal = decision.error().refusal;
    noteRefusal(asked, refusal);
    // What failed has neither a port nor a lifetime (section 3.3).
    return natPmpMapping(request, natPmpResult(refusal.code), epoch(), 0, 0);
  }
  // A mapping that is gone has external port 0 (section 3.4).
  return natPmpMapping(request, NatPmpResult::Success, epoch(),
                       request.lifetime == 0 ? 0 : decision->firstExternal, decision->lifetime);
}

}  // namespace adit::pcp
