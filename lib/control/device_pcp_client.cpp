#include "control/device_pcp_client.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "crypto/hash.hpp"

namespace adit::control {
namespace {

constexpr unsigned kMostAtOnce = 64;
constexpr auto kWithdrawalPatience = std::chrono::seconds(1);

/// The one that announcements come to; where another program has it, answers come all the same.
Result<PortSocket> openFor(const std::string& interface, const IpAddress& self) {
  auto socket = PortSocket::open(interface, {self, pcp::kClientPort, 0});
  if (!socket && socket.error().code == EADDRINUSE) {
    return PortSocket::open(interface, {self, 0, 0});
  }
  return socket;
}

}  // namespace

PortClient::PortClient(Parts parts)
    : parts_(std::move(parts)),
      client_(parts_.clock, *this, parts_.timing),
      timer_(parts_.loop.timer([this] { poll(); })) {}

PortClient::~PortClient() = default;

void PortClient::update(const std::vector<pcp::WantedMapping>& wanted,
                        const std::vector<pcp::Path>& paths,
                        const std::optional<crypto::PrivateKey>& key) {
  if (wanted == wanted_ && paths == paths_ && key == key_ && sockets_.size() == paths.size()) {
    return;
  }
  key_ = key;
  openSockets(paths);
  client_.want(wanted, paths);
  wanted_ = wanted;
  paths_ = paths;
  // Not from here: the tunnel may not be up yet.
  schedule();
}

void PortClient::openSockets(const std::vector<pcp::Path>& paths) {
  std::erase_if(sockets_, [&](const Speaking& speaking) {
    return std::ranges::find(paths, speaking.path) == paths.end();
  });
  std::string trouble;
  for (const pcp::Path& path : paths) {
    if (std::ranges::find(sockets_, path, &Speaking::path) != sockets_.end()) {
      continue;
    }
    auto socket = openFor(parts_.interface, path.self);
    if (!socket) {
      trouble = fmt::format("the server cannot be asked for ports: {}", socket.error().message);
      continue;
    }
    const int descriptor = socket->descriptor();
    sockets_.push_back({std::move(*socket), path,
                        parts_.loop.watch(descriptor, EPOLLIN, [this, descriptor](std::uint32_t) {
                          receive(descriptor);
                        })});
  }
  if (trouble != trouble_ && !trouble.empty()) {
    spdlog::warn("{}: {}", parts_.interface, trouble);
  }
  trouble_ = std::move(trouble);
}

void PortClient::receive(int descriptor) {
  const auto found = std::ranges::find_if(sockets_, [&](const Speaking& speaking) {
    return speaking.socket.descriptor() == descriptor;
  });
  if (found->socket.takeRefusals()) {
    client_.unreachable(found->path.server);
  }
  found->socket.receive(kMostAtOnce,
                        [&](std::span<const std::uint8_t> message, const Endpoint& source) {
                          if (source.port == pcp::kServerPort) {
                            client_.receive(message, source.address);
                          }
                        });
  poll();
}

void PortClient::poll() {
  client_.poll();
  if (withdrawn_ != nullptr && !client_.isLeaving()) {
    *withdrawn_ = true;
  }
  schedule();
}

void PortClient::schedule() {
  if (const auto next = client_.nextPoll()) {
    timer_.schedule(*next);
  } else {
    timer_.cancel();
  }
}

void PortClient::withdraw() {
  client_.want({}, paths_);
  wanted_.clear();
  bool done = !client_.isLeaving();
  withdrawn_ = &done;
  EventSource deadline = parts_.loop.timer([&done] { done = true; });
  deadline.schedule(parts_.clock.now() + kWithdrawalPatience);
  poll();
  parts_.loop.pumpUntil(done);
  withdrawn_ = nullptr;
  timer_.cancel();
  sockets_.clear();
}

void PortClient::send(const pcp::Path& path, const pcp::Bytes& message) {
  const auto found = std::ranges::find(sockets_, path, &Speaking::path);
  if (found != sockets_.end()) {
    found->socket.send(message, {path.server, pcp::kServerPort, 0});
  }
}

pcp::Nonce PortClient::nonceFor(const pcp::WantedMapping& mapping) const {
  constexpr std::string_view kPurpose = "adit: nonce of a port mapping, 1";
  const auto target = pcp::addressField(mapping.target);
  const std::array<std::uint8_t, 3> port{mapping.protocol,
                                         static_cast<std::uint8_t>(mapping.firstInternal >> 8U),
                                         static_cast<std::uint8_t>(mapping.firstInternal)};
  pcp::Nonce nonce{};
  if (!key_) {
    parts_.random.fill(nonce);
    return nonce;
  }
  const auto* purpose = static_cast<const std::uint8_t*>(static_cast<const void*>(kPurpose.data()));
  const crypto::Mac mac = crypto::keyedBlake2s(key_->secret().bytes(),
                                               {std::span(purpose, kPurpose.size()), target, port});
  std::ranges::copy(std::span(mac).first(nonce.size()), nonce.begin());
  return nonce;
}

double PortClient::random() {
  std::array<std::uint8_t, 2> bytes{};
  parts_.random.fill(bytes);
  constexpr double kMiddle = 32767.5;
  return (bytes[0] * 256 + bytes[1] - kMiddle) / kMiddle;
}

std::string PortClient::trouble() const {
  return trouble_.empty() ? client_.trouble() : trouble_;
}

std::vector<PortRequestSnapshot> PortClient::snapshots() const {
  using State = PortRequestSnapshot::State;
  std::vector<PortRequestSnapshot> all;
  for (const pcp::MappingState& state : client_.states()) {
    const auto wanted = std::ranges::find_if(wanted_, [&](const pcp::WantedMapping& mapping) {
      return mapping.label == state.label && mapping.target == state.target;
    });
    if (wanted == wanted_.end()) {
      continue;
    }
    using Kind = pcp::MappingState::Kind;
    all.push_back({.role = PortRequestSnapshot::Role::Request,
                   .state = state.kind == Kind::Granted   ? State::Granted
                            : state.kind == Kind::Refused ? State::Refused
                                                          : State::Asking,
                   .protocol = "PCP",
                   .listen = wanted->external().toString(),
                   .target = Endpoint{wanted->target, wanted->firstInternal, 0}.toString(),
                   .reason = state.reason,
                   .lifetime = static_cast<std::uint64_t>(state.remaining.count())});
  }
  return all;
}

}  // namespace adit::control
