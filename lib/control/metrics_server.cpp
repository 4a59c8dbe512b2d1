#include "control/metrics_server.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "control/stream_server.hpp"

namespace adit::control {
namespace {

constexpr mode_t kForAll = 0666;

Result<UniqueFd> listenAtPath(const std::string& path) {
  auto listener = listenAt(path);
  if (!listener) return wrapError(listener.error(), "Metrics");
  if (::chmod(path.c_str(), kForAll) != 0) return failErrno(errno, "Metrics: {}", path);
  return listener;
}

Result<UniqueFd> listenAtPort(const Endpoint& endpoint) {
  UniqueFd listener(
      ::socket(endpoint.address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return failErrno(errno, "Metrics: socket");
  // A restart need not wait for connections of the one before.
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage address{};
  const socklen_t length = endpoint.toSockaddr(address);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return failErrno(errno, "Metrics: cannot listen at {}; choose another port",
                     endpoint.toString());
  }
  return listener;
}

}  // namespace

Result<UniqueFd> listenForScrapes(const config::MetricsAddress& address) {
  return address.path.empty() ? listenAtPort(address.endpoint) : listenAtPath(address.path);
}

struct MetricsServer::Connection {
  UniqueFd descriptor;
  BootTime end{};
  std::string input;
  /// Empty until there is an answer.
  std::string output;
  std::size_t written = 0;
  EventSource source;
};

MetricsServer::MetricsServer(EventLoop& loop, const Clock& clock, UniqueFd listener,
                             metrics::Hosts hosts, std::function<std::string()> page, Limits limits)
    : loop_(loop),
      clock_(clock),
      listener_(std::move(listener)),
      hosts_(hosts),
      makePage_(std::move(page)),
      limits_(limits),
      accepting_(loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); })),
      deadline_(loop_.timer([this] { endLate(); })) {}

MetricsServer::~MetricsServer() = default;

void MetricsServer::accept() {
  UniqueFd descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!descriptor) return;
  // Whoever holds connections open must not keep a scraper out.
  if (connections_.size() >= limits_.connections) connections_.pop_front();
  const auto connection = connections_.insert(connections_.end(), std::make_unique<Connection>());
  (*connection)->descriptor = std::move(descriptor);
  (*connection)->end = clock_.now() + limits_.patience;
  (*connection)->source = loop_.watch((*connection)->descriptor.get(), EPOLLIN,
                                      [this, connection](std::uint32_t) { serve(connection); });
  deadline_.schedule(connections_.front()->end);
}

void MetricsServer::serve(Handle connection) {
  Connection& current = **connection;
  const bool alive = current.output.empty() ? read(current) : write(current);
  if (!alive) connections_.erase(connection);
}

bool MetricsServer::read(Connection& connection) {
  std::array<char, metrics::kMaxHead> buffer{};
  const ssize_t count = ::recv(connection.descriptor.get(), buffer.data(), buffer.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  connection.input.append(buffer.data(), static_cast<std::size_t>(count));
  auto answer = metrics::answerTo(connection.input, hosts_, [this] { return page(); });
  if (!answer) return true;
  connection.output = *std::move(answer);
  connection.input.clear();
  return write(connection);
}

bool MetricsServer::write(Connection& connection) {
  while (connection.written < connection.output.size()) {
    const ssize_t count =
        ::send(connection.descriptor.get(), connection.output.data() + connection.written,
               connection.output.size() - connection.written, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      connection.source.setEvents(EPOLLOUT);
      return errno == EAGAIN;
    }
    connection.written += static_cast<std::size_t>(count);
  }
  ::shutdown(connection.descriptor.get(), SHUT_WR);
  return false;
}

void MetricsServer::endLate() {
  const BootTime now = clock_.now();
  while (!connections_.empty() && connections_.front()->end <= now) {
    connections_.pop_front();
  }
  if (!connections_.empty()) deadline_.schedule(connections_.front()->end);
}

const std::string& MetricsServer::page() {
  const BootTime now = clock_.now();
  if (!pageMade_ || now - *pageMade_ >= limits_.fresh) {
    page_ = makePage_();
    pageMade_ = now;
  }
  return page_;
}

}  // namespace adit::control
