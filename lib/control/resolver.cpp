#include "control/resolver.hpp"

#include <net/if.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <charconv>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "util/unique_fd.hpp"

namespace adit::control {
namespace {

constexpr unsigned kMaximumThreads = 8;

Resolution lookUp(const config::EndpointName& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int result = ::getaddrinfo(name.host.c_str(), nullptr, &hints, &list);
  if (result != 0) {
    return fail("cannot resolve {}: {}", name.host, ::gai_strerror(result));
  }
  std::vector<Endpoint> endpoints;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6) {
      endpoints.push_back(Endpoint::fromSockaddr(entry->ai_addr));
      endpoints.back().port = name.port;
    }
  }
  ::freeaddrinfo(list);
  if (endpoints.empty()) {
    return fail("{} has no address", name.host);
  }
  return endpoints;
}

}  // namespace

struct SystemResolver::Request {
  config::EndpointName name;
  std::function<void(Resolution)> callback;
};

/// Outlives the resolver while a look-up hangs. Callbacks are touched on the loop's thread only.
struct SystemResolver::Shared {
  UniqueFd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  struct Done {
    std::function<void(Resolution)> callback;
    Resolution resolution;
  };
  std::deque<Done> done;
  unsigned running = 0;
};

SystemResolver::SystemResolver(EventLoop& loop)
    : shared_(std::make_shared<Shared>()),
      source_(loop.watch(shared_->wake.get(), EPOLLIN, [this](std::uint32_t) { deliver(); })) {}

SystemResolver::~SystemResolver() = default;

void SystemResolver::resolve(const config::EndpointName& name,
                             std::function<void(Resolution)> callback) {
  waiting_.push_back({name, std::move(callback)});
  startWaiting();
}

void SystemResolver::startWaiting() {
  while (!waiting_.empty() && shared_->running < kMaximumThreads) {
    Request request = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    ++shared_->running;
    std::thread([shared = shared_, request = std::move(request)]() mutable {
      Resolution resolution = lookUp(request.name);
      {
        const std::lock_guard lock(shared->mutex);
        shared->done.push_back({std::move(request.callback), std::move(resolution)});
      }
      ::eventfd_write(shared->wake.get(), 1);
    }).detach();
  }
}

void SystemResolver::deliver() {
  eventfd_t count = 0;
  ::eventfd_read(shared_->wake.get(), &count);
  std::deque<Shared::Done> done;
  {
    const std::lock_guard lock(shared_->mutex);
    done.swap(shared_->done);
  }
  shared_->running -= static_cast<unsigned>(done.size());
  for (Shared::Done& entry : done) {
    entry.callback(std::move(entry.resolution));
  }
  startWaiting();
}

Result<Endpoint> literalEndpoint(const config::EndpointName& name) {
  Endpoint endpoint{*name.literal, name.port, 0};
  if (name.zone.empty()) {
    return endpoint;
  }
  endpoint.scopeId = ::if_nametoindex(name.zone.c_str());
  if (endpoint.scopeId == 0) {
    const char* const end = name.zone.data() + name.zone.size();
    const auto [stop, error] = std::from_chars(name.zone.data(), end, endpoint.scopeId);
    if (error != std::errc{} || stop != end || endpoint.scopeId == 0) {
      return fail("endpoint {}: there is no interface \"{}\"", name.toString(), name.zone);
    }
  }
  return endpoint;
}

}  // namespace adit::control
