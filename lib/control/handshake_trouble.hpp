// Says in a person's words why handshakes fail: a wrong key is the commonest mistake of all, and
// the protocol itself stays silent about it. Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/device_api.hpp"
#include "noise/sessions.hpp"
#include "util/clock.hpp"

namespace adit::control {

class HandshakeTrouble {
 public:
  /// Something about a refused handshake that the log should say now; nothing when it said the
  /// like within the last minute. `peer` names the peer that it is about, and is empty for none;
  /// `ownKey` is ours. A known peer's trouble is kept by its id, all other by its reason alone: who
  /// sends made-up handshakes makes nothing grow.
  std::optional<std::string> refused(const noise::RefusedHandshake& handshake,
                                     const std::string& peer, const std::string& ownKey,
                                     BootTime now);
  /// The data plane has counted `total` handshakes that were meant for another key than ours, from
  /// wherever.
  std::optional<std::string> foreignHandshakes(std::uint64_t total, const std::string& ownKey,
                                               BootTime now);
  /// A handshake with the peer succeeded, or the peer has gone.
  void forget(noise::PeerId peer);
  /// Somebody has changed the configuration: what is still wrong will be heard of again.
  void clear() { entries_.clear(); }

  [[nodiscard]] bool concerns(noise::PeerId peer, BootTime now) const;
  /// What was refused lately, for `adit status`.
  [[nodiscard]] std::vector<TroubleSnapshot> recent(BootTime now) const;

 private:
  struct Entry {
    std::string peer;
    std::string text;
    BootTime last;
    std::optional<BootTime> told;
  };
  std::optional<std::string> note(std::pair<noise::HandshakeDrop, noise::PeerId> about,
                                  const std::string& peer, std::string text, BootTime now);

  /// Id 0 is no peer.
  std::map<std::pair<noise::HandshakeDrop, noise::PeerId>, Entry> entries_;
  std::uint64_t foreign_ = 0;
};

/// "peer nas has not answered for 32 s at 203.0.113.9:51820: ..."
std::string silenceText(const std::string& peer, std::chrono::nanoseconds silence,
                        const std::string& endpoint);

}  // namespace adit::control
