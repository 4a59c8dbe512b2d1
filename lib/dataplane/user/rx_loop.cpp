#include "dataplane/user/rx_loop.hpp"

#include <sodium.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "dataplane/user/bytes.hpp"
#include "dataplane/user/ecn.hpp"
#include "dataplane/user/tx_loop.hpp"

namespace adit::dataplane::user {
namespace {

constexpr std::size_t kHeader = sizeof(adit_message_data);
// Busy sockets are read without asking poll; this often the others get a look too.
constexpr unsigned kPollEvery = 16;
constexpr std::uint8_t kControlNibble = 0;

bool hasHandshakeLength(std::uint8_t type, std::size_t length) {
  switch (type) {
    case ADIT_MESSAGE_INITIATION:
      return length == sizeof(adit_message_initiation);
    case ADIT_MESSAGE_RESPONSE:
      return length == sizeof(adit_message_response);
    case ADIT_MESSAGE_COOKIE:
      return length == sizeof(adit_message_cookie);
    default:
      return false;
  }
}

}  // namespace

RxLoop::RxLoop(Device& device, std::size_t seat, int tun, const TxLoop& transmit)
    : device_(device),
      seat_(seat),
      transmit_(transmit),
      writer_(device, tun),
      headers_(kMaxMessages),
      pieces_(kMaxMessages),
      sources_(kMaxMessages),
      controls_(kMaxMessages),
      received_(kMaxMessages),
      jobs_(kMaxJobs),
      jobMessages_(kMaxJobs) {
  void* memory = ::mmap(nullptr, kMaxMessages * kBufferSize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Huge pages would make the untouched parts resident.
  ::madvise(memory, kMaxMessages * kBufferSize, MADV_NOHUGEPAGE);
  memory_ = static_cast<std::uint8_t*>(memory);
}

RxLoop::~RxLoop() {
  ::munmap(memory_, kMaxMessages * kBufferSize);
}

void RxLoop::stop() {
  stop_.store(true, std::memory_order_relaxed);
  event_.notify();
}

void RxLoop::setSockets(const UdpSockets* sockets) {
  sockets_ = sockets;
  socketsChanged_ = true;
  event_.notify();
}

void RxLoop::awaitSockets() {
  socketsChanged_.wait(true);
}

void RxLoop::setPublicKey(const crypto::PublicKey& key) {
  mac1_.reset();
  if (key.isZero()) return;
  static constexpr std::array<std::uint8_t, 8> kLabel{'m', 'a', 'c', '1', '-', '-', '-', '-'};
  mac1_ = std::make_unique<crypto::KeyedBlake2s>(crypto::blake2s({kLabel, key.bytes}));
}

void RxLoop::run() {
  std::array<pollfd, 3> descriptors{pollfd{event_.get(), POLLIN, 0}, pollfd{-1, POLLIN, 0},
                                    pollfd{-1, POLLIN, 0}};
  unsigned rounds = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const bool busy = descriptors[1].revents != 0 || descriptors[2].revents != 0;
    if (!busy) {
      idle_.waitReady(descriptors);
    } else if (++rounds % kPollEvery == 0) {
      pollNow(descriptors);
    }
    if (descriptors[0].revents != 0) event_.drain();
    const BatchGate::Batch guard(device_.gate, seat_);
    now_ = device_.clock.now();
    if (socketsChanged_.exchange(false)) socketsChanged_.notify_all();
    const std::array<int, 2> sockets{sockets_ != nullptr ? sockets_->v4() : -1,
                                     sockets_ != nullptr ? sockets_->v6() : -1};
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      pollfd& descriptor = descriptors[i + 1];
      if (descriptor.fd != sockets[i]) descriptor = {sockets[i], POLLIN, 0};
      if (descriptor.revents != 0 && !receive(descriptor.fd)) descriptor.revents = 0;
    }
  }
}

bool RxLoop::receive(int fd) {
  for (std::size_t i = 0; i < messages_; ++i) {
    pieces_[i] = {memory_ + i * kBufferSize, kBufferSize};
    msghdr& header = headers_[i].msg_hdr;
    header = {};
    header.msg_name = &sources_[i];
    header.msg_namelen = sizeof(sources_[i]);
    header.msg_iov = &pieces_[i];
    header.msg_iovlen = 1;
    header.msg_control = controls_[i].bytes.data();
    header.msg_controllen = controls_[i].bytes.size();
  }
  const int got =
      ::recvmmsg(fd, headers_.data(), static_cast<unsigned>(messages_), MSG_DONTWAIT, nullptr);
  if (got <= 0) return false;
  bool merged = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    Received& received = received_[i];
    received.bytes = {memory_ + i * kBufferSize, headers_[i].msg_len};
    received.info = parseReceiveInfo(headers_[i].msg_hdr);
    received.source = Endpoint::fromSockaddr(reinterpret_cast<const sockaddr*>(&sources_[i]));
    merged = merged || received.info.segment != 0;
    dispatch(i);
  }
  openJobs();
  writer_.flush();
  messages_ = merged ? kMergedMessages : kMaxMessages;
  return true;
}

// A merged buffer can end with a shorter datagram of another kind, so each is looked at alone.
void RxLoop::dispatch(std::size_t message) {
  const Received& received = received_[message];
  std::span<std::uint8_t> left = received.bytes;
  const std::size_t segment = received.info.segment == 0 ? left.size() : received.info.segment;
  do {
    const std::size_t length = std::min(segment, left.size());
    handleDatagram(left.first(length), message);
    left = left.subspan(length);
  } while (!left.empty());
}

void RxLoop::handleDatagram(std::span<std::uint8_t> datagram, std::size_t message) {
  if (datagram.size() >= sizeof(adit_message_header) && datagram[2] == 0 && datagram[3] == 0) {
    if (datagram[0] == ADIT_MESSAGE_DATA) {
      handleData(datagram, message);
      return;
    }
    if (hasHandshakeLength(datagram[0], datagram.size())) {
      handleHandshake(datagram, received_[message]);
      return;
    }
  }
  device_.drop(Drop::Malformed);
}

void RxLoop::handleData(std::span<std::uint8_t> datagram, std::size_t message) {
  if (datagram.size() < ADIT_DATA_OVERHEAD || datagram[1] >= ADIT_SUITE_COUNT) {
    device_.drop(Drop::Malformed);
    return;
  }
  const std::uint32_t index = loadLe32(&datagram[4]);
  if (session_ == nullptr || session_->localIndex() != index || jobCount_ == kMaxJobs) {
    openJobs();
    session_ = device_.table.session(index);
    if (session_ == nullptr) {
      device_.drop(Drop::UnknownIndex);
      return;
    }
  }
  Peer& peer = session_->peer();
  if (datagram[1] != static_cast<std::uint8_t>(session_->suite())) {
    device_.drop(Drop::Malformed, &peer);
    return;
  }
  const std::uint64_t counter = loadLe64(&datagram[8]);
  if (counter >= session_->limits().rejectAfterMessages || session_->expired(now_)) {
    device_.drop(Drop::KeyExpired, &peer);
    return;
  }
  std::uint8_t* text = datagram.data() + kHeader;
  jobs_[jobCount_] = {.in = text,
                      .out = text,
                      .length = static_cast<std::uint32_t>(datagram.size() - ADIT_DATA_OVERHEAD),
                      .counter = counter};
  jobMessages_[jobCount_] = static_cast<std::uint8_t>(message);
  ++jobCount_;
}

void RxLoop::openJobs() {
  if (session_ == nullptr) return;
  Session& session = *session_;
  dropReplays(session);
  const auto jobs = std::span(jobs_).first(jobCount_);
  session_ = nullptr;
  jobCount_ = 0;
  if (jobs.empty()) return;
  const std::size_t right = worker_.open(session.receiveKey(), jobs);
  if (right < jobs.size()) {
    device_.drop(Drop::Authentication, &session.peer(), jobs.size() - right);
  }
  if (right > 0) acceptJobs(session, jobs);
}

// Spares their decryption; those in the same batch as their originals are found afterwards.
void RxLoop::dropReplays(Session& session) {
  std::size_t fresh = 0;
  {
    const std::lock_guard lock(session.replayMutex());
    for (std::size_t i = 0; i < jobCount_; ++i) {
      if (!adit_replay_check(&session.replay(), jobs_[i].counter)) continue;
      jobs_[fresh] = jobs_[i];
      jobMessages_[fresh++] = jobMessages_[i];
    }
  }
  if (fresh < jobCount_) device_.drop(Drop::Replay, &session.peer(), jobCount_ - fresh);
  jobCount_ = fresh;
}

void RxLoop::acceptJobs(Session& session, std::span<crypto::AeadJob> jobs) {
  std::size_t replayed = 0;
  {
    const std::lock_guard lock(session.replayMutex());
    for (crypto::AeadJob& job : jobs) {
      if (job.ok && !adit_replay_accept(&session.replay(), job.counter)) {
        job.ok = false;
        ++replayed;
      }
    }
  }
  Peer& peer = session.peer();
  if (replayed > 0) device_.drop(Drop::Replay, &peer, replayed);
  std::size_t packets = 0;
  std::size_t bytes = 0;
  bool data = false;
  std::size_t learned = kMaxMessages;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const crypto::AeadJob& job = jobs[i];
    if (!job.ok) continue;
    if (packets++ == 0) confirm(session);
    bytes += job.length + ADIT_DATA_OVERHEAD;
    const Received& received = received_[jobMessages_[i]];
    if (peer.roam && jobMessages_[i] != learned) {
      learned = jobMessages_[i];
      if (peer.endpoint.learn(received.source, received.info.local)) {
        device_.controlSignal.notify();
      }
    }
    if (job.length == 0) continue;
    data = true;
    acceptPlaintext(peer, {job.out, job.length}, received);
  }
  if (packets == 0) return;
  peer.rxPackets.add(packets);
  peer.rxBytes.add(bytes);
  peer.activity.noteReceived(now_, data);
  if (session.agedForReceiving(now_) && peer.slots.current() == &session) {
    const bool first = peer.activity.keyAged.get() == BootTime{};
    peer.activity.keyAged.set(now_);
    if (first) device_.controlSignal.notify();
  }
}

void RxLoop::confirm(Session& session) {
  Peer& peer = session.peer();
  if (!peer.slots.promote(&session)) return;
  peer.activity.keyAged.clear();
  peer.confirmed.store(true, std::memory_order_release);
  device_.controlSignal.notify();
  peer.flushWanted.store(true, std::memory_order_release);
  transmit_.wake();
}

void RxLoop::acceptPlaintext(Peer& peer, std::span<std::uint8_t> plaintext,
                             const Received& received) {
  if ((plaintext[0] >> 4) == kControlNibble) {
    if (peer.controlLimiter.take(now_) && device_.controls.push(peer.id, plaintext)) {
      device_.controlSignal.notify();
    } else {
      device_.drop(Drop::HandshakeQueue, &peer);
    }
    return;
  }
  auto inner = parseInnerPacket(plaintext);
  if (!inner) {
    device_.drop(Drop::NotIp, &peer);
    return;
  }
  const AllowedIps& allowed = device_.table.allowedIps();
  const Peer* owner = inner->v6 ? allowed.findV6(&plaintext[8]) : allowed.findV4(&plaintext[12]);
  if (owner != &peer) {
    device_.drop(Drop::SourceNotAllowed, &peer);
    return;
  }
  const auto tos = decapsulatedTos(inner->tos, received.info.tos);
  if (!tos) {
    device_.drop(Drop::Congestion, &peer);
    return;
  }
  if (*tos != inner->tos) {
    writeTos(plaintext.data(), *tos);
    inner->tos = *tos;
  }
  writer_.add(plaintext.data(), *inner);
}

bool RxLoop::macIsRight(std::span<const std::uint8_t> datagram) {
  if (datagram[0] == ADIT_MESSAGE_COOKIE) return mac1_ != nullptr;
  if (mac1_ == nullptr) return false;
  const std::size_t covered = datagram.size() - sizeof(adit_message_macs);
  const crypto::Mac mac = (*mac1_)(datagram.first(covered));
  return ::sodium_memcmp(mac.data(), &datagram[covered], mac.size()) == 0;
}

void RxLoop::handleHandshake(std::span<const std::uint8_t> datagram, const Received& received) {
  const bool cookie = datagram[0] == ADIT_MESSAGE_COOKIE;
  if (cookie ? datagram[1] != 0 : datagram[1] >= ADIT_SUITE_COUNT) {
    device_.drop(Drop::Malformed);
    return;
  }
  if (!macIsRight(datagram)) {
    device_.drop(Drop::BadMac);
    return;
  }
  switch (device_.handshakes.push(datagram, received.source, received.info.local)) {
    case HandshakeRing::Pushed::First:
      device_.controlSignal.notify();
      break;
    case HandshakeRing::Pushed::Behind:
      break;
    case HandshakeRing::Pushed::Full:
      device_.drop(Drop::HandshakeQueue);
      break;
  }
}

}  // namespace adit::dataplane::user
