// A unix stream socket that answers requests: the frame of adit's control socket and of
// WireGuard's cross-platform socket.
#pragma once

#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/access.hpp"
#include "control/event_loop.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

/// Makes a listening socket at `path`, mode 0600, or 0660 of the group `readers`. A socket that
/// nobody listens at any more is replaced; one that is in use is an error that says so.
Result<UniqueFd> listenAt(const std::string& path, std::optional<gid_t> readers = {});
/// Whether somebody listens at `path`.
bool isServed(const std::string& path);

class StreamServer {
 public:
  struct Options {
    /// What ends a request; handed over without it.
    std::string delimiter;
    /// A client that sends a longer request is answered by closing its connection.
    std::size_t maximumRequest = std::size_t{4} << 20;
    std::size_t maximumConnections = 64;
    /// A group whose members have Access::Read.
    std::optional<gid_t> readers = {};
  };
  /// Called as a task of the loop, so that it may pump the loop; a connection's next request waits
  /// for the answer, those of other connections do not.
  using Handler = std::function<std::string(std::string_view request, Access access)>;

  /// Takes a listening socket. Root and whoever has made it have Access::Full; of the others only
  /// the readers are served, whatever the permissions of the path say.
  StreamServer(EventLoop& loop, UniqueFd listener, Options options, Handler handler);
  ~StreamServer();

  /// Calls back once, when no answer is being made or waits to be written.
  void whenFlushed(std::function<void()> callback);
  /// Looks whether that is now.
  void checkFlushed();

 private:
  struct Connection;

  void accept();
  void serve(const std::shared_ptr<Connection>& connection, std::uint32_t events);
  /// False when the connection is over.
  bool read(Connection& connection);
  /// Sends what there is, and goes on with the next request. False when the connection is over.
  bool advance(const std::shared_ptr<Connection>& shared);
  [[nodiscard]] bool hasRoomFor(Access access) const;
  void startRequest(const std::shared_ptr<Connection>& connection);
  void answer(const std::shared_ptr<Connection>& connection, std::string request);
  void close(const std::shared_ptr<Connection>& connection);

  EventLoop& loop_;
  UniqueFd listener_;
  /// Of the listening socket: root, but for a daemon that somebody runs for himself.
  uid_t owner_;
  Options options_;
  Handler handler_;
  /// Tasks that are still posted when the server goes find it gone by this.
  std::shared_ptr<StreamServer*> self_;
  std::list<std::shared_ptr<Connection>> connections_;
  std::function<void()> flushed_;
  EventSource accepting_;
};

}  // namespace adit::control
