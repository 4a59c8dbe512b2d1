// Events of the module, and what is done when some of them were lost.
#include <algorithm>

#include "dataplane/kernel/kernel_data_plane.hpp"

namespace adit::dataplane::kernel {
namespace {

constexpr std::size_t kEventsPerDispatch = 64;

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

void KernelDataPlane::dispatch(EventSink& sink) {
  const auto read = channel_->readEvents(
      kEventsPerDispatch, [&](std::uint8_t command, const netlink::Attributes& message) {
        if (const auto received = event(command, message, interface_)) handOver(*received, sink);
      });
  // An error of the socket itself may hide events as well.
  if (!read || read->lost) recoveryWanted_ = true;
  if (recoveryWanted_) recover(sink);
}

void KernelDataPlane::handOver(const Event& event, EventSink& sink) {
  std::visit(Overloaded{
                 [&](const NeedHandshakeEvent& it) { sink.needHandshake(it.peer, it.reason); },
                 [&](const KeyConfirmedEvent& it) {
                   if (Peer* peer = find(it.peer)) peer->unconfirmedSince.reset();
                   sink.keyConfirmed(it.peer);
                 },
                 [&](const KeysExpiredEvent& it) {
                   if (Peer* peer = find(it.peer)) {
                     peer->hasKeys = false;
                     peer->unconfirmedSince.reset();
                   }
                   sink.keysExpired(it.peer);
                 },
                 [&](const EndpointMovedEvent& it) {
                   if (Peer* peer = find(it.peer)) peer->endpoint = it.endpoint;
                   sink.endpointMoved(it.peer, it.endpoint);
                 },
                 [&](const ControlEvent& it) { sink.control(it.peer, it.message); },
                 [&](const HandshakeEvent& it) {
                   sink.handshake(it.datagram, it.source, it.local, it.backlog);
                 },
             },
             event);
}

/// What is lost for good heals by itself: the module repeats its wish for a handshake, and peers
/// repeat their datagrams and control messages. The rest shows in the peers' state.
void KernelDataPlane::recover(EventSink& sink) {
  const auto answers = readPeers();
  if (!answers) return;
  recoveryWanted_ = false;
  for (const PeerAnswer& answer : *answers) {
    recoverPeer(answer, sink);
  }
}

void KernelDataPlane::recoverPeer(const PeerAnswer& answer, EventSink& sink) {
  const PeerId id = answer.settings.id;
  Peer* peer = find(id);
  if (peer == nullptr) return;
  const PeerStats& stats = answer.stats;
  const bool moved = stats.endpoint && stats.endpoint != peer->endpoint;
  const bool confirmed = peer->unconfirmedSince && stats.suite && !stats.sessionInitiator &&
                         stats.sessionStart >= *peer->unconfirmedSince;
  const bool expired = peer->hasKeys && !stats.suite && !peer->unconfirmedSince;
  if (moved) peer->endpoint = stats.endpoint;
  if (confirmed) peer->unconfirmedSince.reset();
  if (expired) peer->hasKeys = false;
  // From here on `peer` may be gone: the sink may remove it.
  if (moved) sink.endpointMoved(id, *stats.endpoint);
  if (confirmed) sink.keyConfirmed(id);
  if (expired) sink.keysExpired(id);
}

}  // namespace adit::dataplane::kernel
