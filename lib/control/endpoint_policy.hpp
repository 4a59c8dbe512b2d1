// Where to look for a peer whose configuration names an endpoint: which address of a name to
// use, when to look the name up again, and what never to touch. Pure.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace adit::control {

struct EndpointTiming {
  /// A session whose handshake is younger is healthy: its endpoint is left alone.
  std::chrono::nanoseconds stale = std::chrono::minutes(3);
  /// Between two look-ups, doubled after each up to `maximumWait`.
  std::chrono::nanoseconds firstWait = std::chrono::seconds(5);
  std::chrono::nanoseconds maximumWait = std::chrono::seconds(60);
  /// Unanswered handshakes after which the next address gets its turn.
  unsigned patience = 2;
};

class EndpointPolicy {
 public:
  /// Whether this machine has a route to an address.
  using HasRoute = std::function<bool(const IpAddress&)>;

  explicit EndpointPolicy(HasRoute hasRoute, const EndpointTiming& timing = {})
      : hasRoute_(std::move(hasRoute)), timing_(timing) {}

  /// What the configuration says now. The same name again changes nothing.
  void configure(const std::optional<config::EndpointName>& name);
  [[nodiscard]] const std::optional<config::EndpointName>& name() const { return name_; }

  /// The name should be looked up now, and no look-up is under way.
  [[nodiscard]] bool wantsLookup(BootTime now) const;
  /// When wantsLookup() may become true by itself.
  [[nodiscard]] std::optional<BootTime> nextLookup() const;
  void lookupStarted();
  /// Returns the endpoint to use from now on, if it is another than the one in use.
  std::optional<Endpoint> lookupFinished(const Result<std::vector<Endpoint>>& result, BootTime now);

  /// Another initiation went unanswered so far. Returns the endpoint to use from now on, if it is
  /// another.
  std::optional<Endpoint> initiationSent(BootTime now);
  void handshakeCompleted(BootTime now);
  /// The endpoint in use was set by hand, or learned from the peer.
  void endpointChanged(const Endpoint& endpoint) { current_ = endpoint; }

  /// The name has no address yet.
  [[nodiscard]] bool unresolved() const { return name_ && candidates_.empty() && !current_; }
  /// Why the last look-up failed; empty when it did not.
  [[nodiscard]] const std::string& lastError() const { return lastError_; }

 private:
  [[nodiscard]] bool healthy(BootTime now) const;
  [[nodiscard]] std::vector<Endpoint> ordered(std::vector<Endpoint> endpoints) const;
  std::optional<Endpoint> use(const Endpoint& endpoint);

  HasRoute hasRoute_;
  EndpointTiming timing_;
  std::optional<config::EndpointName> name_;
  std::vector<Endpoint> candidates_;
  std::optional<Endpoint> current_;
  /// The family that the last finished handshake used.
  std::optional<int> workedFamily_;
  std::optional<BootTime> lastHandshake_;
  /// Initiations since the address in use was chosen, and since a handshake finished.
  unsigned unanswered_ = 0;
  unsigned silence_ = 0;
  bool lookingUp_ = false;
  std::chrono::nanoseconds wait_{};
  BootTime nextLookup_{};
  std::string lastError_;
};

}  // namespace adit::control
