#include "dataplane/user/tx_loop.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/segmenter.hpp"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kMaxRead = sizeof(VirtioNetHeader) + 65535;
// Behind each packet, for padding.
constexpr std::size_t kSlack = 64;
// A full batch of MTU-sized packets and one more super-packet.
constexpr std::size_t kArena = 160 * 1024 + kMaxRead + kSlack;

}  // namespace

TxLoop::TxLoop(Device& device, std::size_t seat, int tun)
    : device_(device), seat_(seat), tun_(tun), batch_(device), arena_(kArena) {}

void TxLoop::stop() {
  stop_.store(true, std::memory_order_relaxed);
  event_.notify();
}

void TxLoop::run() {
  std::array<pollfd, 2> descriptors{pollfd{tun_, POLLIN, 0}, pollfd{event_.get(), POLLIN, 0}};
  while (!stop_.load(std::memory_order_relaxed)) {
    idle_.waitReady(descriptors);
    const bool woken = descriptors[1].revents != 0;
    if (woken) event_.drain();
    // The interface was deleted: nothing comes from it any more, and poll would return at once for
    // ever.
    if ((descriptors[0].revents & (POLLERR | POLLNVAL)) != 0) descriptors[0].fd = -1;
    const BatchGate::Batch guard(device_.gate, seat_);
    now_ = device_.clock.now();
    batch_.setTime(now_);
    if (woken) flushStaged();
    runBatch();
  }
}

void TxLoop::runBatch() {
  while (readOne()) {
    if (device_.gate.exclusiveWanted() || stop_.load(std::memory_order_relaxed)) break;
  }
  batch_.flush();
  used_ = 0;
}

bool TxLoop::readOne() {
  if (batch_.pending() == 0) used_ = 0;
  if (used_ + kMaxRead + kSlack > arena_.size()) {
    batch_.flush();
    used_ = 0;
  }
  std::uint8_t* at = arena_.data() + used_;
  const ssize_t got = ::read(tun_, at, kMaxRead);
  if (got < 0) return errno == EINTR;
  const auto length = static_cast<std::size_t>(got);
  if (length <= sizeof(VirtioNetHeader)) return true;
  used_ += (length + kSlack + kSlack - 1) / kSlack * kSlack;
  handle(load<VirtioNetHeader>(at),
         {at + sizeof(VirtioNetHeader), length - sizeof(VirtioNetHeader)});
  return true;
}

void TxLoop::handle(const VirtioNetHeader& header, std::span<std::uint8_t> packet) {
  const auto inner = parseInnerPacket(packet);
  if (!inner) {
    device_.drop(Drop::NotIp);
    return;
  }
  packet = packet.first(inner->totalLength);
  const AllowedIps& allowed = device_.table.allowedIps();
  Peer* peer = inner->v6 ? allowed.findV6(&packet[24]) : allowed.findV4(&packet[16]);
  if (peer == nullptr) {
    refuse(Drop::NoPeer, nullptr, packet);
    return;
  }
  Session* session = peer->slots.current();
  if (session == nullptr || !session->canSend(now_)) {
    stageAll(*peer, header, packet, *inner);
    return;
  }
  // What waited for the key goes first.
  if (!peer->staging.empty()) flushStaged(*peer, *session);
  sendPacket(*session, header, packet, *inner);
}

void TxLoop::sendPacket(Session& session, const VirtioNetHeader& header,
                        std::span<std::uint8_t> packet, const InnerPacket& inner) {
  if (header.gsoType != kGsoNone) {
    auto segmenter = Segmenter::create(packet, inner, header);
    if (!segmenter) {
      device_.drop(Drop::NotIp, &session.peer());
      return;
    }
    batch_.addSegments(session, *segmenter, inner.tos);
    return;
  }
  if ((header.flags & kVirtioNeedsChecksum) != 0 && !completeChecksum(packet, header)) {
    device_.drop(Drop::NotIp, &session.peer());
    return;
  }
  batch_.addPacket(session, packet, inner.tos);
}

void TxLoop::stageAll(Peer& peer, const VirtioNetHeader& header, std::span<std::uint8_t> packet,
                      const InnerPacket& inner) {
  if (!peer.endpoint.endpoint()) {
    refuse(Drop::NoEndpoint, &peer, packet);
    return;
  }
  if (header.gsoType != kGsoNone) {
    auto segmenter = Segmenter::create(packet, inner, header);
    while (segmenter && segmenter->remaining() > 0) {
      stagePacket(device_, peer, segmenter->next(), inner.tos);
    }
    if (segmenter) return;
  } else if ((header.flags & kVirtioNeedsChecksum) == 0 || completeChecksum(packet, header)) {
    stagePacket(device_, peer, packet, inner.tos);
    return;
  }
  device_.drop(Drop::NotIp, &peer);
}

void TxLoop::refuse(Drop reason, Peer* peer, std::span<const std::uint8_t> packet) {
  device_.drop(reason, peer);
  IcmpBuffer buffer;
  const auto reply = buildUnreachable(packet, buffer);
  if (reply.empty() || !icmpLimiter_.take(now_)) return;
  VirtioNetHeader header{};
  const std::array<iovec, 2> pieces{iovec{&header, sizeof(header)},
                                    iovec{const_cast<std::uint8_t*>(reply.data()), reply.size()}};
  // A courtesy: nothing depends on it.
  [[maybe_unused]] const auto written = ::writev(tun_, pieces.data(), pieces.size());
}

void TxLoop::flushStaged() {
  for (const auto& [id, peer] : device_.table.peers()) {
    if (!peer->flushWanted.exchange(false)) continue;
    Session* session = peer->slots.current();
    if (session != nullptr && session->canSend(now_)) flushStaged(*peer, *session);
  }
}

void TxLoop::flushStaged(Peer& peer, Session& session) {
  auto packets = peer.staging.takeAll();
  for (StagingQueue::Packet& packet : packets) {
    batch_.addPacket(session, std::span(packet.bytes).first(packet.length), packet.tos);
  }
  // Before the packets' memory goes.
  batch_.flush();
}

}  // namespace adit::dataplane::user
