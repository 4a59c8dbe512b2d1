// A unix stream socket that answers requests: the frame of adit's control socket and of
// WireGuard's cross-platform socket.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "control/event_loop.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

/// Makes a listening socket at `path`, mode 0600. A socket that nobody listens at any more is
/// replaced; one that is in use is an error that says so.
Result<UniqueFd> listenAt(const std::string& path);

class StreamServer {
 public:
  struct Options {
    /// What ends a request; handed over without it.
    std::string delimiter;
    /// A client that sends a longer request is answered by closing its connection.
    std::size_t maximumRequest = std::size_t{4} << 20;
    std::size_t maximumConnections = 64;
  };
  using Handler = std::function<std::string(std::string_view request)>;

  /// Takes a listening socket. Only root and this process's own user are served, whatever the
  /// permissions of the path say.
  StreamServer(EventLoop& loop, UniqueFd listener, Options options, Handler handler);
  ~StreamServer();

  /// Calls back once, when no answer waits to be written any more.
  void whenFlushed(std::function<void()> callback);

 private:
  struct Connection;

  void accept();
  void serve(Connection& connection, std::uint32_t events);
  /// False when the connection is over.
  bool read(Connection& connection);
  bool write(Connection& connection);
  void answerRequests(Connection& connection);
  void close(Connection& connection);
  void checkFlushed();

  EventLoop& loop_;
  UniqueFd listener_;
  Options options_;
  Handler handler_;
  std::list<Connection> connections_;
  std::function<void()> flushed_;
  EventSource accepting_;
};

}  // namespace adit::control
