#include "control/stream_server.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace adit::control {
namespace {

constexpr std::chrono::seconds kLockPatience{2};
constexpr std::chrono::milliseconds kLockInterval{20};

Result<sockaddr_un> unixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail("the socket path {} is longer than {} bytes", path, sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool someoneListensAt(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

/// Held while a socket is made: between the look at an old one and listen() another starter must
/// not see a dead socket.
UniqueFd lockFolderOf(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  UniqueFd descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Anybody who may see the folder can hold the lock: then the start goes on without it.
  const auto until = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLockInterval);
  }
  return descriptor;
}

/// The supplementary groups of the process that has connected.
std::vector<gid_t> groupsOf(int descriptor) {
  constexpr std::size_t kMaxGroups = 65536;  // NGROUPS_MAX
  std::vector<gid_t> groups(kMaxGroups);
  socklen_t length = kMaxGroups * sizeof(gid_t);
  const bool known =
      ::getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0;
  groups.resize(known ? length / sizeof(gid_t) : 0);
  return groups;
}

/// Who has made the listening socket; root where that cannot be told.
uid_t makerOf(int listener) {
  ucred maker{};
  socklen_t length = sizeof(maker);
  const bool known = ::getsockopt(listener, SOL_SOCKET, SO_PEERCRED, &maker, &length) == 0;
  return known && maker.pid != 0 ? maker.uid : 0;
}

/// Nothing for who may not connect at all.
/// The worker's own user is nobody special: what faces the network must not command the worker of
/// another interface.
std::optional<Access> accessOf(int descriptor, uid_t owner, std::optional<gid_t> readers) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  if (peer.uid == 0 || peer.uid == owner) return Access::Full;
  if (!readers) return std::nullopt;
  const std::vector<gid_t> groups = groupsOf(descriptor);
  const bool reads = peer.gid == *readers || std::ranges::find(groups, *readers) != groups.end();
  return reads ? std::optional(Access::Read) : std::nullopt;
}

}  // namespace

Result<UniqueFd> listenAt(const std::string& path, std::optional<gid_t> readers) {
  const auto address = unixAddress(path);
  if (!address) {
    return tl::unexpected(address.error());
  }
  const UniqueFd lock = lockFolderOf(path);
  if (someoneListensAt(*address)) {
    return fail("{} is in use by another daemon", path);
  }
  ::unlink(path.c_str());
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The mode must hold from the first moment on, hence the mask and not a chmod afterwards.
  const mode_t oldMask = ::umask(0177);
  const int bound =
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address));
  const int code = errno;
  ::umask(oldMask);
  if (bound != 0) {
    return failErrno(code, "cannot make the socket {}", path);
  }
  // Where there is no such group, as in a user namespace, the socket stays 0600.
  if (readers && ::chown(path.c_str(), ::geteuid(), *readers) == 0 &&
      ::chmod(path.c_str(), 0660) != 0) {
    return failErrno(errno, "cannot open {} to its group", path);
  }
  if (::listen(listener.get(), SOMAXCONN) != 0) {
    return failErrno(errno, "cannot listen at {}", path);
  }
  return listener;
}

bool isServed(const std::string& path) {
  const auto address = unixAddress(path);
  return address && someoneListensAt(*address);
}

struct StreamServer::Connection {
  UniqueFd descriptor;
  Access access = Access::Read;
  std::string input;
  std::string output;
  /// The client has said all that it will.
  bool over = false;
  /// A request is being answered.
  bool busy = false;
  EventSource source;
};

StreamServer::StreamServer(EventLoop& loop, UniqueFd listener, Options options, Handler handler)
    : loop_(loop),
      listener_(std::move(listener)),
      owner_(makerOf(listener_.get())),
      options_(std::move(options)),
      handler_(std::move(handler)),
      self_(std::make_shared<StreamServer*>(this)),
      accepting_(loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); })) {}

StreamServer::~StreamServer() {
  *self_ = nullptr;
}

void StreamServer::accept() {
  UniqueFd descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!descriptor) {
    return;
  }
  const auto access = accessOf(descriptor.get(), owner_, options_.readers);
  if (!access || !hasRoomFor(*access)) {
    spdlog::debug("refused a connection to the control socket");
    return;
  }
  const auto connection = connections_.emplace_back(std::make_shared<Connection>());
  connection->descriptor = std::move(descriptor);
  connection->access = *access;
  connection->source = loop_.watch(connection->descriptor.get(), EPOLLIN,
                                   [this, weak = std::weak_ptr(connection)](std::uint32_t events) {
                                     if (const auto alive = weak.lock()) {
                                       serve(alive, events);
                                     }
                                   });
}

/// Readers have half of the places, so that they cannot keep root out.
bool StreamServer::hasRoomFor(Access access) const {
  if (connections_.size() >= options_.maximumConnections) {
    return false;
  }
  const auto readers = std::ranges::count_if(
      connections_, [](const auto& each) { return each->access == Access::Read; });
  return access == Access::Full ||
         static_cast<std::size_t>(readers) < options_.maximumConnections / 2;
}

void StreamServer::serve(const std::shared_ptr<Connection>& connection, std::uint32_t events) {
  bool alive = (events & EPOLLERR) == 0;
  if (alive && (events & (EPOLLIN | EPOLLHUP)) != 0) {
    alive = read(*connection);
  }
  if (!alive || !advance(connection)) {
    close(connection);
  }
  checkFlushed();
}

bool StreamServer::read(Connection& connection) {
  std::array<char, 65536> buffer;  // NOLINT: filled by read(2)
  const ssize_t count = ::read(connection.descriptor.get(), buffer.data(), buffer.size());
  if (count < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  connection.over = count == 0;
  connection.input.append(buffer.data(), static_cast<std::size_t>(count));
  // Requests can hold keys, here and below.
  sodium_memzero(buffer.data(), static_cast<std::size_t>(count));
  return connection.input.size() <= options_.maximumRequest;
}

void StreamServer::startRequest(const std::shared_ptr<Connection>& connection) {
  // Who does not take the answers gets no more of them.
  if (connection->busy || !connection->output.empty()) {
    return;
  }
  std::string& input = connection->input;
  const auto end = input.find(options_.delimiter);
  if (end == std::string::npos) {
    return;
  }
  connection->busy = true;
  std::string request = input.substr(0, end);
  sodium_memzero(input.data(), end);
  input.erase(0, end + options_.delimiter.size());
  loop_.post([self = self_, connection, request = std::move(request)]() mutable {
    if (*self != nullptr) {
      (*self)->answer(connection, std::move(request));
    }
  });
}

void StreamServer::answer(const std::shared_ptr<Connection>& connection, std::string request) {
  connection->output += handler_(request, connection->access);
  sodium_memzero(request.data(), request.size());
  connection->busy = false;
  // The client may have gone while its answer was being made.
  if (connection->source && !advance(connection)) {
    close(connection);
  }
  checkFlushed();
}

bool StreamServer::advance(const std::shared_ptr<Connection>& shared) {
  Connection& connection = *shared;
  while (!connection.output.empty()) {
    const ssize_t count = ::send(connection.descriptor.get(), connection.output.data(),
                                 connection.output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        return false;
      }
      break;
    }
    sodium_memzero(connection.output.data(), static_cast<std::size_t>(count));
    connection.output.erase(0, static_cast<std::size_t>(count));
  }
  startRequest(shared);
  if (connection.output.empty() && connection.over && !connection.busy) {
    return false;
  }
  // A client that has hung up would wake the loop over and over while its request is answered.
  const std::uint32_t wanted = connection.output.empty() ? EPOLLIN : EPOLLOUT;
  connection.source.setEvents(connection.over ? (wanted & EPOLLOUT) | EPOLLET : wanted);
  return true;
}

void StreamServer::close(const std::shared_ptr<Connection>& connection) {
  connection->source = {};
  connections_.remove(connection);
}

void StreamServer::whenFlushed(std::function<void()> callback) {
  flushed_ = std::move(callback);
}

void StreamServer::checkFlushed() {
  if (!flushed_) {
    return;
  }
  for (const auto& connection : connections_) {
    if (connection->busy || !connection->output.empty()) {
      return;
    }
  }
  std::exchange(flushed_, nullptr)();
}

}  // namespace adit::control
