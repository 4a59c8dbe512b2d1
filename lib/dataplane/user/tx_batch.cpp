#include "dataplane/user/tx_batch.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/ecn.hpp"
#include "wire/messages.h"

namespace adit::dataplane::user {
namespace {

// How long a path that refused segmentation offload is spared.
constexpr std::chrono::minutes kSinglyFor{5};

}  // namespace

void stagePacket(Device& device, Peer& peer, std::span<const std::uint8_t> packet,
                 std::uint8_t innerTos) {
  const auto pushed = peer.staging.push(packet, innerTos);
  if (pushed.droppedOldest) device.drop(Drop::QueueFull, &peer);
  if (pushed.first) device.controlSignal.notify();
}

TxBatch::TxBatch(Device& device) : device_(device), buffer_(kMaxUdpPayload) {}

std::size_t TxBatch::room() const {
  return std::min(kMaxSegments - count_, (kMaxUdpPayload - bytes_) / segment_);
}

void TxBatch::makeRoom(Session& session, std::uint8_t innerTos, std::size_t length) {
  const std::uint8_t tos = outerTos(innerTos);
  if (count_ > 0) {
    if (session_ == &session && tos_ == tos && !closed_ && length <= segment_ && room() > 0) return;
    flush();
  }
  session_ = &session;
  tos_ = tos;
  segment_ = length;
}

void TxBatch::placed(std::size_t length) {
  ++count_;
  bytes_ += length;
  if (length < segment_) closed_ = true;
}

std::uint8_t* TxBatch::writeHeader(std::uint8_t* datagram, std::uint64_t counter) const {
  const adit_message_data header{
      {ADIT_MESSAGE_DATA, static_cast<std::uint8_t>(session_->suite()), {0, 0}},
      htole32(session_->remoteIndex()),
      htole64(counter)};
  std::memcpy(datagram, &header, sizeof(header));
  return datagram + sizeof(header);
}

void TxBatch::addPacket(Session& session, std::span<std::uint8_t> packet, std::uint8_t innerTos) {
  const std::size_t padded =
      paddedLength(packet.size(), device_.mtu.load(std::memory_order_relaxed));
  const std::size_t length = padded + ADIT_DATA_OVERHEAD;
  if (length > kMaxUdpPayload) {
    device_.drop(Drop::SendFailed, &session.peer());
    return;
  }
  makeRoom(session, innerTos, length);
  std::memset(packet.data() + packet.size(), 0, padded - packet.size());
  jobs_[pending_] = {.in = packet.data(),
                     .out = buffer_.data() + bytes_,
                     .length = static_cast<std::uint32_t>(padded),
                     .counter = 0};
  lengths_[pending_] = static_cast<std::uint16_t>(packet.size());
  ++pending_;
  innerTos_ = innerTos;
  hasData_ = hasData_ || !packet.empty();
  placed(length);
}

void TxBatch::sealPending() {
  if (pending_ == 0) return;
  const auto jobs = std::span(jobs_).first(pending_);
  const auto first = session_->reserve(pending_);
  if (!first) {
    // The key is used up. Only the places at the end of the batch are given up.
    for (std::size_t i = 0; i < pending_; ++i) {
      if (lengths_[i] > 0) stage({jobs[i].in, lengths_[i]});
      bytes_ -= jobs[i].length + ADIT_DATA_OVERHEAD;
    }
    count_ -= pending_;
    pending_ = 0;
    return;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].counter = *first + i;
    jobs[i].out = writeHeader(jobs[i].out, jobs[i].counter);
  }
  worker_.seal(session_->sendKey(), jobs);
  pending_ = 0;
}

void TxBatch::addSegments(Session& session, Segmenter& segmenter, std::uint8_t innerTos) {
  const unsigned mtu = device_.mtu.load(std::memory_order_relaxed);
  while (segmenter.remaining() > 0) {
    const std::size_t length = paddedLength(segmenter.nextLength(), mtu) + ADIT_DATA_OVERHEAD;
    if (length > kMaxUdpPayload) {
      device_.drop(Drop::SendFailed, &session.peer(), segmenter.remaining());
      return;
    }
    makeRoom(session, innerTos, length);
    innerTos_ = innerTos;
    hasData_ = true;
    // A datagram that is shorter than those before it is the last one.
    const std::size_t count = length < segment_ ? 1 : std::min(room(), segmenter.remaining());
    sealPending();
    const auto counter = session.reserve(count);
    if (!counter) {
      while (segmenter.remaining() > 0) {
        stage(segmenter.next());
      }
      return;
    }
    sealSegments(segmenter, count, *counter, mtu);
  }
}

void TxBatch::sealSegments(Segmenter& segmenter, std::size_t count, std::uint64_t counter,
                           unsigned mtu) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::uint8_t> packet = segmenter.next();
    const std::size_t padded = paddedLength(packet.size(), mtu);
    const std::size_t padding = padded - packet.size();
    // Padding lies on the next segment's payload: put that back afterwards.
    std::array<std::uint8_t, ADIT_PADDING_MULTIPLE> saved;
    std::uint8_t* end = packet.data() + packet.size();
    std::memcpy(saved.data(), end, saved.size());
    std::memset(end, 0, padding);
    crypto::AeadJob job{.in = packet.data(),
                        .out = writeHeader(buffer_.data() + bytes_, counter + i),
                        .length = static_cast<std::uint32_t>(padded),
                        .counter = counter + i};
    worker_.seal(session_->sendKey(), {&job, 1});
    std::memcpy(end, saved.data(), saved.size());
    placed(padded + ADIT_DATA_OVERHEAD);
  }
}

void TxBatch::stage(std::span<const std::uint8_t> packet) {
  stagePacket(device_, session_->peer(), packet, innerTos_);
}

void TxBatch::flush() {
  sealPending();
  if (count_ > 0) send();
  reset();
}

void TxBatch::reset() {
  session_ = nullptr;
  closed_ = false;
  hasData_ = false;
  segment_ = 0;
  count_ = 0;
  bytes_ = 0;
}

void TxBatch::send() {
  Peer& peer = session_->peer();
  // Also when it fails below: the timers' answer to silence is the same.
  peer.activity.noteSent(now_, hasData_);
  const auto destination = peer.endpoint.destination();
  if (!destination || sockets_ == nullptr) {
    device_.drop(Drop::NoEndpoint, &peer, count_);
    return;
  }
  const bool offload =
      device_.segmentSends.load(std::memory_order_relaxed) && now_ >= destination->singlyUntil;
  const SendOutcome outcome = sendDatagrams(
      *sockets_, *destination, std::span(buffer_).first(bytes_), segment_, tos_, offload);
  if (outcome.segmentationRefused) peer.endpoint.refuseSegmentation(now_ + kSinglyFor);
  if (outcome.sourceRefused) peer.endpoint.forgetSource(destination->source);
  if (outcome.sent < count_) device_.drop(Drop::SendFailed, &peer, count_ - outcome.sent);
  peer.txPackets.add(outcome.sent);
  peer.txBytes.add(outcome.sent == count_ ? bytes_ : std::min(outcome.sent * segment_, bytes_));
  if (session_->agedForSending(now_) && peer.slots.current() == session_) {
    const bool first = peer.activity.keyAged.get() == BootTime{};
    peer.activity.keyAged.set(now_);
    if (first) device_.controlSignal.notify();
  }
}

}  // namespace adit::dataplane::user
