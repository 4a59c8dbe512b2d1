// Endpoint names to addresses, in the background: the loop never waits for DNS.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "control/event_loop.hpp"
#include "util/result.hpp"

namespace adit::control {

/// All addresses of a name, in the order that the system prefers (RFC 6724).
using Resolution = Result<std::vector<Endpoint>>;

class Resolver {
 public:
  virtual ~Resolver() = default;
  /// Calls back from the loop, exactly once, never from within this call.
  virtual void resolve(const config::EndpointName& name,
                       std::function<void(Resolution)> callback) = 0;
};

/// getaddrinfo(3) on threads of its own, at most eight at a time. A look-up that hangs holds up
/// neither the loop nor the end of the process.
class SystemResolver final : public Resolver {
 public:
  explicit SystemResolver(EventLoop& loop);
  ~SystemResolver() override;
  void resolve(const config::EndpointName& name, std::function<void(Resolution)> callback) override;

 private:
  struct Shared;
  struct Request;

  void startWaiting();
  void deliver();

  std::shared_ptr<Shared> shared_;
  std::vector<Request> waiting_;
  EventSource source_;
};

/// A literal address needs no look-up: the endpoint, or why it is none (a zone without interface).
Result<Endpoint> literalEndpoint(const config::EndpointName& name);

}  // namespace adit::control
