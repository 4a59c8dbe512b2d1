// The client of PCP (RFC 6887): keeps the mappings that this host wants alive on a server.
//
// Pure: time, randomness and the socket come from outside. Each wanted mapping is one request that
// is sent until it is answered, renewed at half its lifetime, sent again at once when the server
// turns out to have lost its state, and withdrawn when it is no longer wanted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pcp/lease.hpp"
#include "pcp/wire.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"

namespace adit::pcp {

/// This host's address of a family, and the server's in the same tunnel.
struct Path {
  IpAddress self = {};
  IpAddress server = {};
  friend bool operator==(const Path&, const Path&) = default;
};

struct WantedMapping {
  /// Names it to the person.
  std::string label = {};
  std::uint8_t protocol = 0;
  std::uint16_t firstExternal = 0;
  std::uint16_t firstInternal = 0;
  std::uint16_t size = 1;
  IpAddress target = {};
  std::vector<Prefix> allow = {};
  bool masquerade = false;
  bool hairpin = false;
  /// Bits per second; 0 is unlimited.
  std::uint64_t rate = 0;

  [[nodiscard]] PortRange external() const {
    return {protocol, firstExternal, static_cast<std::uint16_t>(firstExternal + size - 1)};
  }
  friend bool operator==(const WantedMapping&, const WantedMapping&) = default;
};

/// How one wanted mapping stands.
struct MappingState {
  enum class Kind : std::uint8_t { Asking, Granted, Refused };

  std::string label = {};
  IpAddress target = {};
  Kind kind = Kind::Asking;
  /// When it is refused, or granted with a difference; else empty.
  std::string reason = {};
  /// Of a grant: until it ends unless it is renewed.
  std::chrono::seconds remaining{};
  IpAddress externalAddress = {};
  std::uint16_t externalPort = 0;
};

struct ClientTiming {
  /// What is asked for. A host that vanishes without a word keeps its ports that long.
  std::chrono::seconds lifetime{3600};
  /// Retransmission (section 8.1.1): the first time, doubling up to the other.
  std::chrono::nanoseconds firstRetry = std::chrono::seconds(3);
  std::chrono::nanoseconds longestRetry = std::chrono::seconds(1024);
  /// A server that has not answered for so long, to anything, probably does not speak PCP.
  std::chrono::nanoseconds patience = std::chrono::seconds(20);
  /// What a refusal's lifetime is clamped to.
  std::chrono::seconds shortestRefusal{10};
  std::chrono::seconds longestRefusal{3600};
};

/// What a client acts through.
class ClientActions {
 public:
  virtual ~ClientActions() = default;
  virtual void send(const Path& path, const Bytes& message) = 0;
  /// The same for the same mapping of the same host, also after a restart; unknown to others.
  [[nodiscard]] virtual Nonce nonceFor(const WantedMapping& mapping) const = 0;
  /// Evenly spread from -1 to 1.
  [[nodiscard]] virtual double random() = 0;
};

class Client {
 public:
  Client(const Clock& clock, ClientActions& actions, ClientTiming timing = {});

  /// From now on these. Those that were wanted before and still are go on undisturbed; the others
  /// are withdrawn. `paths`: at most one of each family; a mapping of another family waits.
  void want(const std::vector<WantedMapping>& wanted, const std::vector<Path>& paths);

  /// Sends what is due. To be called at nextPoll(), and after want().
  void poll();
  [[nodiscard]] std::optional<BootTime> nextPoll() const;

  /// A datagram that came from port kServerPort of `source`.
  void receive(std::span<const std::uint8_t> message, const IpAddress& source);
  /// The server's host says that nobody listens there.
  void unreachable(const IpAddress& server);

  /// Some withdrawal is not answered yet.
  [[nodiscard]] bool isLeaving() const;
  [[nodiscard]] std::vector<MappingState> states() const;
  /// Why nothing can be had from a server; empty when it answers, or has not had the time to.
  [[nodiscard]] std::string trouble() const;

 private:
  struct Entry {
    WantedMapping wanted = {};
    Nonce nonce{};
    MappingState::Kind kind = MappingState::Kind::Asking;
    std::string reason = {};
    /// No longer wanted: lifetime 0 is what is sent.
    bool leaving = false;
    /// Refused without being asked: another mapping is of the same internal port.
    bool duplicate = false;
    /// A mapping in the way has been withdrawn, which is tried once.
    bool cleared = false;
    /// That withdrawal is not answered yet.
    bool clearing = false;
    BootTime due{};
    /// Of the last transmission; zero when there is none that waits for an answer.
    std::chrono::nanoseconds retry{};
    unsigned attempts = 0;
    BootTime lastSent{};
    BootTime expires{};
    IpAddress externalAddress = {};
    std::uint16_t externalPort = 0;
  };
  /// A server's answers, of one family.
  struct Server {
    Path path = {};
    /// Of the last answer (section 8.5).
    std::optional<std::uint32_t> epoch = {};
    BootTime epochSeen{};
    /// The first transmission since the last answer.
    std::optional<BootTime> waitingSince = {};
    bool refusesPort = false;
    bool otherVersion = false;
  };

  void usePaths(const std::vector<Path>& paths);
  Server* serverOf(const Entry& entry);
  [[nodiscard]] const Server* serverOf(const Entry& entry) const;
  Server* serverAt(const IpAddress& address);
  [[nodiscard]] bool mustWait(const Entry& entry, bool anyLeaving) const;
  void transmit(Entry& entry, const Server& server, std::uint32_t lifetime);
  void scheduleRetry(Entry& entry);
  void scheduleRenewal(Entry& entry);
  void askAgain(const Server& server);
  /// Whether the server has kept its mappings since its last answer.
  bool epochIsValid(Server& server, std::uint32_t epoch) const;
  void answered(Entry& entry, Server& server, const Response& response);
  void granted(Entry& entry, Server& server, const Response& response);
  void refused(Entry& entry, Server& server, const Response& response);
  void refuse(Entry& entry, std::string reason, std::chrono::seconds lifetime);

  const Clock& clock_;
  ClientActions& actions_;
  ClientTiming timing_;
  std::list<Entry> entries_;
  std::vector<Server> servers_;
};

}  // namespace adit::pcp
