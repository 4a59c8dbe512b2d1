// When a peer needs a keepalive, a handshake, or to have its keys wiped: the timers of the
// WireGuard paper, section 6, as a function of what was sent and received when.
//
// Pure: packet threads note times, the control thread evaluates them. Nothing here reads a clock.
#pragma once

#include <optional>

#include "dataplane/dataplane.hpp"
#include "noise/types.hpp"
#include "util/clock.hpp"

namespace adit::dataplane::user {

/// What packet threads noted. Zero is never. "Data" is a packet with content, IP or control;
/// "anything" includes keepalives.
struct PeerActivity {
  BootTime lastSent{};      ///< anything
  BootTime lastReceived{};  ///< anything authenticated
  BootTime lastDataSent{};
  BootTime unansweredSince{};      ///< first data sent since anything was received
  BootTime unacknowledgedSince{};  ///< first data received since anything was sent
  BootTime keyAged{};              ///< last use of the current key past its rekey limits
};

/// The sessions as they are.
struct PeerSessions {
  bool usable = false;                     ///< the current session may send
  bool any = false;                        ///< in any slot
  BootTime newestStart{};                  ///< of the sessions in all slots
  std::chrono::nanoseconds rejectAfter{};  ///< of the newest session
};

/// The rest of the state that timers depend on.
struct PeerNeeds {
  bool staged = false;  ///< packets wait for a key
  bool hasEndpoint = false;
  std::uint16_t persistentKeepalive = 0;  ///< seconds; 0 is off
};

struct TimerActions {
  bool sendKeepalive = false;
  bool wipeKeys = false;
  std::optional<HandshakeReason> handshake;
  /// When to evaluate again at the latest if nothing happens; nothing for never.
  std::optional<BootTime> next;
};

class PeerTimers {
 public:
  /// A handshake succeeded: the next wish for one is new, and told at once.
  void keyInstalled() { lastAsked_.reset(); }

  /// To be called at start, when something happened, and at the time that it asked for.
  TimerActions evaluate(BootTime now, const PeerActivity& activity, const PeerSessions& sessions,
                        const PeerNeeds& needs);

 private:
  class Agenda;

  std::optional<HandshakeReason> wanted(BootTime now, const PeerActivity& activity,
                                        const PeerSessions& sessions, const PeerNeeds& needs,
                                        Agenda& agenda) const;

  /// When a handshake was last asked for; nothing while none is wanted.
  std::optional<BootTime> lastAsked_;
};

}  // namespace adit::dataplane::user
