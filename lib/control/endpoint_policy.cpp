#include "control/endpoint_policy.hpp"

#include <algorithm>

namespace adit::control {

void EndpointPolicy::configure(const std::optional<config::EndpointName>& name) {
  if (name == name_) {
    return;
  }
  name_ = name;
  candidates_.clear();
  current_.reset();
  unanswered_ = 0;
  silence_ = 0;
  wait_ = {};
  nextLookup_ = {};
  lastError_.clear();
}

bool EndpointPolicy::healthy(BootTime now) const {
  return lastHandshake_ && now - *lastHandshake_ < timing_.stale;
}

bool EndpointPolicy::wantsLookup(BootTime now) const {
  if (!name_ || lookingUp_ || now < nextLookup_) {
    return false;
  }
  // A name without an address is looked up until it has one. Later only silence is a reason: a
  // session that nobody uses has an old handshake and is well.
  return candidates_.empty() || (silence_ >= timing_.patience && !healthy(now));
}

std::optional<BootTime> EndpointPolicy::nextLookup() const {
  if (!name_ || lookingUp_ || !candidates_.empty()) {
    return std::nullopt;
  }
  return nextLookup_;
}

void EndpointPolicy::lookupStarted() {
  lookingUp_ = true;
}

std::optional<Endpoint> EndpointPolicy::lookupFinished(const Result<std::vector<Endpoint>>& result,
                                                       BootTime now) {
  lookingUp_ = false;
  wait_ = std::clamp(wait_ * 2, timing_.firstWait, timing_.maximumWait);
  nextLookup_ = now + wait_;
  if (!result) {
    lastError_ = result.error().message;
    return std::nullopt;
  }
  lastError_.clear();
  candidates_ = ordered(*result);
  const bool stillThere =
      current_ && std::ranges::find(candidates_, *current_) != candidates_.end();
  if (stillThere || (current_ && healthy(now))) {
    return std::nullopt;
  }
  return use(candidates_.front());
}

std::vector<Endpoint> EndpointPolicy::ordered(std::vector<Endpoint> endpoints) const {
  const auto rank = [this](const Endpoint& endpoint) {
    const bool worked = workedFamily_ && endpoint.address.family() == *workedFamily_;
    return (hasRoute_(endpoint.address) ? 0 : 2) + (worked ? 0 : 1);
  };
  std::ranges::stable_sort(endpoints, {}, rank);
  // Without a route an address is no candidate, as long as another has one.
  const auto firstUnreachable = std::ranges::find_if(
      endpoints, [this](const Endpoint& endpoint) { return !hasRoute_(endpoint.address); });
  if (firstUnreachable != endpoints.begin()) {
    endpoints.erase(firstUnreachable, endpoints.end());
  }
  return endpoints;
}

std::optional<Endpoint> EndpointPolicy::use(const Endpoint& endpoint) {
  unanswered_ = 0;
  if (current_ == endpoint) {
    return std::nullopt;
  }
  current_ = endpoint;
  return endpoint;
}

std::optional<Endpoint> EndpointPolicy::initiationSent(BootTime now) {
  ++unanswered_;
  ++silence_;
  if (unanswered_ <= timing_.patience || candidates_.empty() || healthy(now)) {
    return std::nullopt;
  }
  const auto at = current_ ? std::ranges::find(candidates_, *current_) : candidates_.end();
  const bool last = at == candidates_.end() || at + 1 == candidates_.end();
  return use(last ? candidates_.front() : *(at + 1));
}

void EndpointPolicy::handshakeCompleted(BootTime now) {
  lastHandshake_ = now;
  unanswered_ = 0;
  silence_ = 0;
  wait_ = {};
  nextLookup_ = now;
  if (current_) {
    workedFamily_ = current_->address.family();
  }
}

}  // namespace adit::control
