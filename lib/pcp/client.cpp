#include "pcp/client.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pcp/nat_pmp.hpp"

namespace adit::pcp {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Requests of one round: a server bounds what it takes from a peer.
constexpr unsigned kMostAtOnce = 8;
/// Withdrawals are in more of a hurry: the tunnel may be going down.
constexpr unsigned kMostWithdrawals = 100;
constexpr auto kRoundInterval = std::chrono::milliseconds(250);
/// Times that a withdrawal is sent; its lifetime ends the mapping in any case.
constexpr unsigned kWithdrawals = 4;
/// Never closer together than this (section 11.2.1).
constexpr auto kClosestRenewals = seconds(4);
constexpr double kJitter = 0.1;

bool sameInternalPort(const WantedMapping& a, const WantedMapping& b) {
  return a.protocol == b.protocol && a.target == b.target &&
         a.firstInternal < b.firstInternal + b.size && b.firstInternal < a.firstInternal + a.size;
}

std::string offered(const PortRange& ports) {
  return fmt::format("the server offers {} instead", ports.toString());
}

}  // namespace

Client::Client(const Clock& clock, ClientActions& actions, ClientTiming timing)
    : clock_(clock), actions_(actions), timing_(timing) {}

const Client::Server* Client::serverOf(const Entry& entry) const {
  const auto found = std::ranges::find_if(servers_, [&](const Server& server) {
    return server.path.self.family() == entry.wanted.target.family();
  });
  return found == servers_.end() ? nullptr : &*found;
}

Client::Server* Client::serverOf(const Entry& entry) {
  return const_cast<Server*>(std::as_const(*this).serverOf(entry));
}

Client::Server* Client::serverAt(const IpAddress& address) {
  const auto found = std::ranges::find_if(
      servers_, [&](const Server& server) { return server.path.server == address; });
  return found == servers_.end() ? nullptr : &*found;
}

void Client::usePaths(const std::vector<Path>& paths) {
  std::erase_if(servers_, [&](const Server& server) {
    return std::ranges::find(paths, server.path) == paths.end();
  });
  for (const Path& path : paths) {
    if (std::ranges::find(servers_, path, &Server::path) == servers_.end()) {
      askAgain(servers_.emplace_back(Server{.path = path}));
    }
  }
}

void Client::want(const std::vector<WantedMapping>& wanted, const std::vector<Path>& paths) {
  usePaths(paths);
  for (Entry& entry : entries_) {
    if (!entry.leaving && std::ranges::find(wanted, entry.wanted) == wanted.end()) {
      entry.leaving = true;
      entry.attempts = 0;
      entry.retry = {};
      entry.due = clock_.now();
    }
  }
  // What was never asked for need not be withdrawn. Whether something is a duplicate is found anew.
  std::erase_if(entries_, [](const Entry& entry) {
    return entry.duplicate || (entry.leaving && entry.lastSent == BootTime{});
  });
  for (const WantedMapping& mapping : wanted) {
    const auto isSame = [&](const Entry& entry) {
      return !entry.leaving && entry.wanted == mapping;
    };
    if (std::ranges::any_of(entries_, isSame)) {
      continue;
    }
    Entry entry{.wanted = mapping, .nonce = actions_.nonceFor(mapping), .due = clock_.now()};
    const auto other = std::ranges::find_if(entries_, [&](const Entry& present) {
      return !present.leaving && sameInternalPort(present.wanted, mapping);
    });
    if (other != entries_.end()) {
      entry.duplicate = true;
      entry.kind = MappingState::Kind::Refused;
      entry.reason = fmt::format(
          "PCP maps a port once, and {} asks for the same one; map this one in the server's file",
          other->wanted.label);
    }
    entries_.push_back(std::move(entry));
  }
}

/// A mapping of the same internal port has to go first.
bool Client::mustWait(const Entry& entry, bool anyLeaving) const {
  return entry.duplicate ||
         (anyLeaving && !entry.leaving && std::ranges::any_of(entries_, [&](const Entry& other) {
            return other.leaving && sameInternalPort(other.wanted, entry.wanted);
          }));
}

void Client::poll() {
  const BootTime now = clock_.now();
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.leaving && entry.due <= now &&
           (entry.attempts == kWithdrawals || serverOf(entry) == nullptr);
  });
  const bool anyLeaving = isLeaving();
  unsigned sent = 0;
  for (Entry& entry : entries_) {
    Server* server = serverOf(entry);
    if (entry.due > now || server == nullptr || mustWait(entry, anyLeaving)) {
      continue;
    }
    if (sent >= (entry.leaving ? kMostWithdrawals : kMostAtOnce)) {
      entry.due = now + kRoundInterval;
      continue;
    }
    ++sent;
    if (entry.kind == MappingState::Kind::Granted && entry.expires <= now) {
      entry.kind = MappingState::Kind::Asking;
      entry.retry = {};
    }
    if (!server->waitingSince) {
      server->waitingSince = now;
    }
    transmit(entry, *server,
             entry.leaving ? 0 : static_cast<std::uint32_t>(timing_.lifetime.count()));
    if (entry.kind == MappingState::Kind::Granted && !entry.leaving) {
      scheduleRenewal(entry);
    } else {
      scheduleRetry(entry);
    }
  }
}

std::optional<BootTime> Client::nextPoll() const {
  const bool anyLeaving = isLeaving();
  std::optional<BootTime> next;
  for (const Entry& entry : entries_) {
    // One that waits becomes due by an answer, or when the one in its way is given up.
    if ((serverOf(entry) != nullptr || entry.leaving) && !mustWait(entry, anyLeaving) &&
        (!next || entry.due < *next)) {
      next = entry.due;
    }
  }
  return next;
}

void Client::transmit(Entry& entry, const Server& server, std::uint32_t lifetime) {
  const WantedMapping& wanted = entry.wanted;
  Request request{.opcode = Opcode::Map, .lifetime = lifetime, .client = server.path.self};
  MapMessage& map = request.map.emplace();
  map.nonce = entry.nonce;
  map.protocol = wanted.protocol;
  map.internalPort = wanted.firstInternal;
  map.externalPort = wanted.firstExternal;
  map.externalAddress = wanted.target.isV4() ? IpAddress::anyV4() : IpAddress::anyV6();
  if (wanted.target != server.path.self) {
    map.thirdParty = wanted.target;
  }
  if (wanted.size > 1) {
    map.portSet = PortSet{.size = wanted.size, .firstInternal = wanted.firstInternal};
  }
  if (lifetime != 0) {
    map.preferFailure = wanted.size == 1;
    if (!wanted.allow.empty()) {
      map.filters.push_back({});
    }
    for (const Prefix& network : wanted.allow) {
      map.filters.push_back({.network = network});
    }
    map.extras =
        Extras{.masquerade = wanted.masquerade, .hairpin = wanted.hairpin, .rate = wanted.rate};
  }
  entry.lastSent = clock_.now();
  ++entry.attempts;
  actions_.send(server.path, build(request));
}

void Client::scheduleRetry(Entry& entry) {
  const nanoseconds doubled = entry.retry == nanoseconds{}
                                  ? timing_.firstRetry
                                  : std::min(2 * entry.retry, timing_.longestRetry);
  entry.retry = nanoseconds(static_cast<std::int64_t>(static_cast<double>(doubled.count()) *
                                                      (1 + kJitter * actions_.random())));
  entry.due = clock_.now() + entry.retry;
}

/// At a half, three quarters, seven eighths, … of the lifetime (section 11.2.1).
void Client::scheduleRenewal(Entry& entry) {
  const BootTime now = clock_.now();
  const nanoseconds left = std::max(entry.expires - now, nanoseconds{});
  const nanoseconds spread(
      static_cast<std::int64_t>(static_cast<double>(left.count()) / 32 * (1 + actions_.random())));
  entry.due = now + std::max<nanoseconds>(left / 2 + spread, kClosestRenewals);
}

bool Client::epochIsValid(Server& server, std::uint32_t epoch) const {
  const BootTime now = clock_.now();
  const std::optional<std::uint32_t> before = server.epoch;
  const auto passed = std::chrono::duration_cast<seconds>(now - server.epochSeen).count();
  server.epoch = epoch;
  server.epochSeen = now;
  if (!before) {
    return true;
  }
  const std::int64_t server_delta = static_cast<std::int64_t>(epoch) - *before;
  if (server_delta < -1) {
    return false;
  }
  return passed + 2 >= server_delta - server_delta / 16 && server_delta + 2 >= passed - passed / 16;
}

void Client::askAgain(const Server& server) {
  for (Entry& entry : entries_) {
    if (!entry.leaving && !entry.duplicate && serverOf(entry) == &server) {
      entry.due = clock_.now();
      entry.retry = {};
      entry.attempts = 0;
      entry.cleared = false;
    }
  }
}

void Client::receive(std::span<const std::uint8_t> message, const IpAddress& source) {
  Server* server = serverAt(source);
  if (server == nullptr) {
    return;
  }
  const std::optional<Response> response = parseResponse(message);
  const bool natPmp = message.size() >= 8 && message[0] == kNatPmpVersion && message[1] >= 0x80;
  if ((response && response->version != kVersion) || (!response && natPmp)) {
    server->otherVersion = true;
    return;
  }
  if (!response) {
    return;
  }
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& candidate) {
    return response->map && candidate.nonce == response->map->nonce &&
           candidate.wanted.protocol == response->map->protocol &&
           candidate.wanted.firstInternal == response->map->internalPort &&
           serverOf(candidate) == server;
  });
  if (response->opcode == Opcode::Map ? entry == entries_.end()
                                      : response->opcode != Opcode::Announce) {
    return;
  }
  server->waitingSince.reset();
  server->refusesPort = server->otherVersion = false;
  // A server that has lost its state soon after it started has much the same epoch again. One that
  // announces itself has a reason to.
  if (!epochIsValid(*server, response->epoch) || response->opcode == Opcode::Announce) {
    askAgain(*server);
  }
  if (response->opcode == Opcode::Map) {
    answered(*entry, *server, *response);
  }
}

void Client::answered(Entry& entry, Server& server, const Response& response) {
  if (entry.leaving) {
    // Also an older answer to the request itself comes here; the withdrawal's is the one of 0.
    if (response.lifetime == 0 || response.result != ResultCode::Success) {
      entries_.remove_if([&](const Entry& other) { return &other == &entry; });
      for (Entry& other : entries_) {
        other.due = other.lastSent == BootTime{} ? std::min(other.due, clock_.now()) : other.due;
      }
    }
    return;
  }
  if (response.result == ResultCode::Success) {
    granted(entry, server, response);
  } else {
    refused(entry, server, response);
  }
}

void Client::granted(Entry& entry, Server& server, const Response& response) {
  const MapMessage& map = *response.map;
  if (response.lifetime == 0) {
    // A mapping update: the server has taken it back (section 14.2). Or the answer to a withdrawal
    // that was to clear the way.
    if (entry.clearing || entry.kind == MappingState::Kind::Granted) {
      entry.kind = entry.clearing ? entry.kind : MappingState::Kind::Asking;
      entry.clearing = false;
      entry.retry = {};
      entry.due = clock_.now();
    }
    return;
  }
  const std::uint16_t size = map.portSet ? map.portSet->size : std::uint16_t{1};
  if (map.externalPort != entry.wanted.firstExternal || size != entry.wanted.size) {
    transmit(entry, server, 0);
    const PortRange other{map.protocol, map.externalPort,
                          static_cast<std::uint16_t>(map.externalPort + size - 1)};
    refuse(entry, offered(other), timing_.longestRefusal);
    return;
  }
  entry.kind = MappingState::Kind::Granted;
  entry.reason.clear();
  const bool special = entry.wanted.masquerade || entry.wanted.hairpin || entry.wanted.rate != 0;
  if (!map.extras && special) {
    entry.reason = "the server does not apply Source, Hairpin and Rate of this file";
  }
  entry.externalAddress = map.externalAddress;
  entry.externalPort = map.externalPort;
  entry.attempts = 0;
  entry.retry = {};
  entry.cleared = entry.clearing = false;
  entry.expires = clock_.now() + seconds(response.lifetime);
  scheduleRenewal(entry);
}

void Client::refused(Entry& entry, Server& server, const Response& response) {
  if (response.result == ResultCode::CannotProvideExternal && !entry.cleared) {
    // Perhaps it is held by a mapping of ours from before the file was changed.
    entry.cleared = entry.clearing = true;
    transmit(entry, server, 0);
    scheduleRetry(entry);
    return;
  }
  const auto& extras = response.map ? response.map->extras : std::nullopt;
  const std::string said = extras ? extras->reason : std::string();
  refuse(entry,
         fmt::format("{}: {}", resultName(response.result),
                     said.empty() ? std::string(resultText(response.result)) : said),
         seconds(response.lifetime));
}

void Client::refuse(Entry& entry, std::string reason, seconds lifetime) {
  entry.kind = MappingState::Kind::Refused;
  entry.reason = std::move(reason);
  entry.attempts = 0;
  entry.retry = {};
  entry.due = clock_.now() + std::clamp(lifetime, timing_.shortestRefusal, timing_.longestRefusal);
}

void Client::unreachable(const IpAddress& server) {
  if (Server* found = serverAt(server)) {
    found->refusesPort = true;
  }
}

bool Client::isLeaving() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.leaving; });
}

std::vector<MappingState> Client::states() const {
  const BootTime now = clock_.now();
  std::vector<MappingState> states;
  for (const Entry& entry : entries_) {
    if (entry.leaving) {
      continue;
    }
    const bool holds = entry.kind == MappingState::Kind::Granted && entry.expires > now;
    MappingState state{.label = entry.wanted.label,
                       .target = entry.wanted.target,
                       .kind = holds ? entry.kind
                               : entry.kind == MappingState::Kind::Granted
                                   ? MappingState::Kind::Asking
                                   : entry.kind,
                       .reason = entry.reason,
                       .externalAddress = entry.externalAddress,
                       .externalPort = entry.externalPort};
    if (holds) {
      state.remaining = std::chrono::duration_cast<seconds>(entry.expires - now);
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::string Client::trouble() const {
  for (const Server& server : servers_) {
    const std::string name = server.path.server.toString();
    if (server.otherVersion) {
      return fmt::format("the server at {} speaks no PCP that this version knows", name);
    }
    const bool silent =
        server.waitingSince && clock_.now() - *server.waitingSince >= timing_.patience;
    if (server.refusesPort || silent) {
      return fmt::format("the server at {} takes no requests for ports (PCP, UDP port {})", name,
                         kServerPort);
    }
  }
  return {};
}

}  // namespace adit::pcp
