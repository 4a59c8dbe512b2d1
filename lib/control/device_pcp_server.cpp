#include "control/device_pcp_server.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "control/device_pcp_state.hpp"

namespace adit::control {
namespace {

/// Of one socket, before other events have their turn.
constexpr unsigned kMostAtOnce = 64;
/// Renewals alone: what a daemon that is killed may forget.
constexpr auto kSaveDelay = std::chrono::seconds(5);
/// After a power cut clients are told to ask again anyway.
constexpr auto kDurableDelay = std::chrono::seconds(60);
/// Announcements: at once, and then 1, 2, 4, … seconds later.
constexpr unsigned kRounds = 6;
constexpr unsigned kMostTold = 12;

}  // namespace

PortServer::PortServer(Parts parts, Actions actions)
    : parts_(std::move(parts)),
      actions_(std::move(actions)),
      expiry_(parts_.loop.timer([this] { endLeases(); })),
      saving_(parts_.loop.timer([this] { save(); })),
      durableSaving_(parts_.loop.timer([this] {
        const auto saved = parts_.state.saveLeases(
            leasesToText(server_->leases(), std::nullopt, parts_.clock), Durability::PowerCut);
        if (!saved) {
          spdlog::warn("{}: {}", parts_.interface, saved.error().message);
        }
      })),
      announcing_(parts_.loop.timer([this] { announceRound(); })) {}

PortServer::~PortServer() = default;

void PortServer::restore() {
  const StateStore::LeasesText text = parts_.state.leases();
  StoredLeases stored;
  if (!text.text.empty()) {
    if (auto read = leasesFromText(text.text, parts_.clock)) {
      stored = std::move(*read);
    } else {
      spdlog::warn("{}: {}; peers are told to ask again", parts_.interface, read.error().message);
    }
  }
  const bool goesOn = text.current && stored.epochStart;
  const pcp::Host& host = *this;
  server_ = std::make_unique<pcp::Server>(parts_.clock, host, parts_.limits,
                                          goesOn ? *stored.epochStart : parts_.clock.now());
  server_->restore(std::move(stored.leases));
  if (!server_->leases().empty()) {
    spdlog::info("{}: {} leases of ports go on", parts_.interface, server_->leases().size());
  }
  save();
  if (!goesOn) {
    startAnnouncing();
  }
}

void PortServer::update(PortServerFacts facts) {
  const bool policyChanged =
      facts.peers != facts_.peers || facts.ruleset.mappings != facts_.ruleset.mappings;
  const bool addressesChanged = facts.addresses != facts_.addresses;
  if (facts.ruleset != facts_.ruleset) {
    holdersRead_.reset();
  }
  facts_ = std::move(facts);
  if (addressesChanged || sockets_.empty()) {
    listen();
  }
  if (!server_) {
    restore();
  } else {
    const std::vector<pcp::Lease> before = server_->leases();
    server_->expire();
    for (const pcp::Datagram& news : server_->revise()) {
      send(news.bytes, news.destination);
    }
    if (server_->leases().size() != before.size()) {
      logChanges(before);
      save();
    }
    if (policyChanged) {
      startAnnouncing();
    }
  }
  scheduleExpiry();
}

void PortServer::listen() {
  sockets_.clear();
  std::string trouble;
  for (const InterfaceAddress& own : facts_.addresses) {
    auto socket = PortSocket::open(parts_.interface, {own.address, pcp::kServerPort, 0});
    if (!socket) {
      trouble = fmt::format("peers cannot ask for ports (PCP): {}", socket.error().message);
      continue;
    }
    Listening& listening = sockets_.emplace_back(Listening{std::move(*socket), {}});
    listening.readable =
        parts_.loop.watch(listening.socket.descriptor(), EPOLLIN,
                          [this, descriptor = listening.socket.descriptor()](std::uint32_t) {
                            const auto found = std::ranges::find_if(
                                sockets_, [descriptor](const Listening& candidate) {
                                  return candidate.socket.descriptor() == descriptor;
                                });
                            serve(found->socket);
                          });
  }
  if (trouble != trouble_ && !trouble.empty()) {
    spdlog::warn("{}: {}", parts_.interface, trouble);
  }
  trouble_ = std::move(trouble);
}

void PortServer::serve(const PortSocket& socket) {
  static_cast<void>(socket.takeRefusals());
  if (actions_.busy()) {
    // Lost, and sent again.
    socket.receive(kMostAtOnce, [](auto, const auto&) {});
    return;
  }
  const pcp::LeaseTable before = server_->table();
  const std::uint64_t revision = server_->revision();
  std::vector<Exchange> exchanges;
  socket.receive(kMostAtOnce, [&](std::span<const std::uint8_t> message, const Endpoint& client) {
    auto answer = server_->receive(message, client);
    if (const pcp::PeerPolicy* peer = peerOf(client.address)) {
      uninformed_.erase(peer->id);
    }
    if (answer) {
      exchanges.push_back({{message.begin(), message.end()}, client, std::move(answer)});
    }
  });
  if (server_->revision() != revision && !enforce(before)) {
    for (Exchange& exchange : exchanges) {
      exchange.answer = server_->noResources(exchange.request);
    }
  }
  for (const Exchange& exchange : exchanges) {
    socket.send(*exchange.answer, exchange.client);
  }
  if (!exchanges.empty()) {
    saveLater();
    scheduleExpiry();
  }
}

bool PortServer::enforce(const pcp::LeaseTable& before) {
  if (auto applied = actions_.apply(); !applied) {
    spdlog::warn("{}: a request for ports is refused: {}", parts_.interface,
                 applied.error().message);
    server_->rollBack(before);
    return false;
  }
  logChanges(before.all());
  save();
  return true;
}

void PortServer::logChanges(const std::vector<pcp::Lease>& before) const {
  const auto in = [](const std::vector<pcp::Lease>& leases, const pcp::Lease& wanted) {
    return std::ranges::any_of(leases, [&](const pcp::Lease& lease) {
      return lease.external() == wanted.external() && lease.target == wanted.target;
    });
  };
  for (const pcp::Lease& lease : server_->leases()) {
    if (!in(before, lease)) {
      spdlog::info("{}: {} leads to {} now, asked for by {}", parts_.interface,
                   lease.external().toString(),
                   Endpoint{lease.target, lease.firstInternal, 0}.toString(), nameOf(lease.peer));
    }
  }
  for (const pcp::Lease& lease : before) {
    if (!in(server_->leases(), lease)) {
      spdlog::info("{}: {} of {} is closed again", parts_.interface, lease.external().toString(),
                   nameOf(lease.peer));
    }
  }
}

void PortServer::endLeases() {
  if (!server_ || actions_.busy()) {
    expiry_.schedule(parts_.clock.now() + std::chrono::seconds(1));
    return;
  }
  const std::vector<pcp::Lease> before = server_->leases();
  if (server_->expire()) {
    logChanges(before);
    save();
    if (auto applied = actions_.apply(); !applied) {
      spdlog::warn("{}: {}", parts_.interface, applied.error().message);
    }
  }
  scheduleExpiry();
}

void PortServer::scheduleExpiry() {
  if (const auto next = server_->nextExpiry()) {
    expiry_.schedule(*next);
  } else {
    expiry_.cancel();
  }
}

void PortServer::save() {
  saving_.cancel();
  const auto saved = parts_.state.saveLeases(
      leasesToText(server_->leases(), server_->epochStart(), parts_.clock), Durability::Process);
  if (!saved) {
    spdlog::warn("{}: {}", parts_.interface, saved.error().message);
  }
  durableSaving_.schedule(parts_.clock.now() + kDurableDelay);
}

void PortServer::saveLater() {
  saving_.schedule(parts_.clock.now() + kSaveDelay);
}

void PortServer::stop() {
  sockets_.clear();
  if (!server_) {
    return;
  }
  const auto saved = parts_.state.saveLeases(
      leasesToText(server_->leases(), std::nullopt, parts_.clock), Durability::PowerCut);
  if (!saved) {
    spdlog::warn("{}: {}", parts_.interface, saved.error().message);
  }
  for (EventSource* timer : {&expiry_, &saving_, &durableSaving_, &announcing_}) {
    timer->cancel();
  }
}

std::vector<nat::Mapping> PortServer::mappings() const {
  return server_ ? leaseMappings(server_->leases(), facts_.peers) : std::vector<nat::Mapping>{};
}

bool PortServer::wantsNews(const PortPeer& peer) const {
  const auto leadsThere = [&](const nat::Mapping& mapping) {
    return std::ranges::any_of(peer.allowedIps, [&](const Prefix& prefix) {
      return (mapping.targetV4 && prefix.contains(*mapping.targetV4)) ||
             (mapping.targetV6 && prefix.contains(*mapping.targetV6));
    });
  };
  return !peer.policy.grants.empty() || std::ranges::any_of(facts_.ruleset.mappings, leadsThere);
}

void PortServer::startAnnouncing() {
  uninformed_.clear();
  for (const PortPeer& peer : facts_.peers) {
    if (wantsNews(peer)) {
      uninformed_[peer.policy.id] = 0;
    }
  }
  rounds_ = 0;
  // Not from here: the link may not be up yet.
  announcing_.schedule(parts_.clock.now());
}

void PortServer::announceRound() {
  for (const auto& [peer, told] : std::map(uninformed_)) {
    announceTo(peer);
  }
  if (!uninformed_.empty() && rounds_ < kRounds) {
    announcing_.schedule(parts_.clock.now() + std::chrono::seconds(1U << rounds_));
    ++rounds_;
  }
}

void PortServer::sessionUp(const std::string& peerId) {
  if (server_ && uninformed_.contains(peerId)) {
    announceTo(peerId);
  }
}

/// To the addresses that a peer has alone, and to those it has asked from: multicast, as section
/// 14.1 has it, does not pass a tunnel.
void PortServer::announceTo(const std::string& peerId) {
  const auto peer = std::ranges::find_if(
      facts_.peers, [&](const PortPeer& other) { return other.policy.id == peerId; });
  if (peer == facts_.peers.end() || ++uninformed_[peerId] > kMostTold) {
    uninformed_.erase(peerId);
    return;
  }
  std::vector<IpAddress> addresses;
  for (const Prefix& prefix : peer->allowedIps) {
    if (prefix.length() == prefix.address().bits()) {
      addresses.push_back(prefix.address());
    }
  }
  for (const pcp::Lease& lease : server_->leases()) {
    if (lease.peer == peerId) {
      addresses.push_back(lease.client.address);
    }
  }
  std::ranges::sort(addresses);
  const auto repeated = std::ranges::unique(addresses);
  addresses.erase(repeated.begin(), repeated.end());
  for (const IpAddress& address : addresses) {
    send(server_->announcement(), {address, pcp::kClientPort, 0});
    if (address.isV4()) {
      send(server_->natPmpAnnouncement(), {address, pcp::kClientPort, 0});
    }
  }
}

void PortServer::send(const pcp::Bytes& message, const Endpoint& destination) const {
  const auto own = std::ranges::find_if(sockets_, [&](const Listening& listening) {
    return listening.socket.address().family() == destination.address.family();
  });
  if (own != sockets_.end()) {
    own->socket.send(message, destination);
  }
}

std::string PortServer::nameOf(const std::string& peerId) const {
  const auto peer = std::ranges::find_if(
      facts_.peers, [&](const PortPeer& other) { return other.policy.id == peerId; });
  return peer == facts_.peers.end() ? peerId : peer->policy.name;
}

}  // namespace adit::control
