#include "dataplane/user/peer_timers.hpp"

#include <algorithm>

#include "wire/timing.h"

namespace adit::dataplane::user {
namespace {

using std::chrono::seconds;

constexpr seconds kPassiveKeepalive{ADIT_KEEPALIVE_TIMEOUT};
constexpr seconds kNoReply{ADIT_KEEPALIVE_TIMEOUT + ADIT_REKEY_TIMEOUT};
constexpr seconds kAskAgain{ADIT_REKEY_TIMEOUT};
// A wish ends this long after the traffic that raised it: a handshake is not tried for longer
// (paper, section 6.4), and without traffic there is no reason to start another.
constexpr seconds kWishLasts{ADIT_REKEY_ATTEMPT_TIME};
constexpr int kWipeAfterRejects = 3;

bool never(BootTime time) {
  return time == BootTime{};
}

}  // namespace

// Tells what is due, and remembers the earliest time of what is not.
class PeerTimers::Agenda {
 public:
  explicit Agenda(BootTime now) : now_(now) {}

  bool due(BootTime time) {
    if (now_ >= time) return true;
    next_ = next_ ? std::min(*next_, time) : time;
    return false;
  }
  [[nodiscard]] std::optional<BootTime> next() const { return next_; }

 private:
  BootTime now_;
  std::optional<BootTime> next_;
};

TimerActions PeerTimers::evaluate(BootTime now, const PeerActivity& activity,
                                  const PeerSessions& sessions, const PeerNeeds& needs) {
  TimerActions actions;
  Agenda agenda(now);
  if (sessions.any) {
    actions.wipeKeys = agenda.due(sessions.newestStart + kWipeAfterRejects * sessions.rejectAfter);
  }
  auto reason = wanted(now, activity, sessions, needs, agenda);
  if (sessions.usable && !never(activity.unacknowledgedSince) &&
      agenda.due(activity.unacknowledgedSince + kPassiveKeepalive)) {
    actions.sendKeepalive = true;
  }
  if (needs.persistentKeepalive != 0 && needs.hasEndpoint) {
    const BootTime last = std::max(activity.lastSent, activity.lastReceived);
    if (never(last) || agenda.due(last + seconds(needs.persistentKeepalive))) {
      if (sessions.usable) {
        actions.sendKeepalive = true;
      } else if (!reason) {
        reason = HandshakeReason::Keepalive;
      }
    }
  }
  if (!reason || !needs.hasEndpoint) {
    lastAsked_.reset();
  } else if (!lastAsked_ || agenda.due(*lastAsked_ + kAskAgain)) {
    lastAsked_ = now;
    actions.handshake = reason;
    agenda.due(now + kAskAgain);
  }
  actions.next = agenda.next();
  return actions;
}

std::optional<HandshakeReason> PeerTimers::wanted(BootTime now, const PeerActivity& activity,
                                                  const PeerSessions& sessions,
                                                  const PeerNeeds& needs, Agenda& agenda) const {
  if (needs.staged && !sessions.usable) return HandshakeReason::Staged;
  if (!never(activity.unansweredSince) && agenda.due(activity.unansweredSince + kNoReply) &&
      now < activity.lastDataSent + kNoReply + kWishLasts) {
    return HandshakeReason::NoReply;
  }
  if (!never(activity.keyAged) && now < activity.keyAged + kWishLasts) {
    return HandshakeReason::KeyAging;
  }
  return std::nullopt;
}

}  // namespace adit::dataplane::user
