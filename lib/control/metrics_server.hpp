// The worker's listener for scrapes: HTTP on a loopback address or a unix socket. Bounded in
// connections, bytes and time, whatever its clients do.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "config/metrics_address.hpp"
#include "control/event_loop.hpp"
#include "metrics/http.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

/// Made while there are the rights for it. A unix socket may be used by everybody who may enter its
/// folder: there is nothing secret behind it, as little as behind a port of the loopback interface.
Result<UniqueFd> listenForScrapes(const config::MetricsAddress& address);

class MetricsServer {
 public:
  struct Limits {
    /// One more ends the oldest.
    std::size_t connections = 16;
    /// From the first byte to the last.
    std::chrono::milliseconds patience{5000};
    /// A page is used again for so long: what a scrape costs does not grow with their number.
    std::chrono::milliseconds fresh{200};
  };
  MetricsServer(EventLoop& loop, const Clock& clock, UniqueFd listener, metrics::Hosts hosts,
                std::function<std::string()> page, Limits limits);
  MetricsServer(EventLoop& loop, const Clock& clock, UniqueFd listener, metrics::Hosts hosts,
                std::function<std::string()> page)
      : MetricsServer(loop, clock, std::move(listener), hosts, std::move(page), Limits{}) {}

  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  [[nodiscard]] std::size_t connections() const { return connections_.size(); }

 private:
  struct Connection;
  using Handle = std::list<std::unique_ptr<Connection>>::iterator;

  void accept();
  void serve(Handle connection);
  /// False when the connection is over.
  bool read(Connection& connection);
  bool write(Connection& connection);
  void endLate();
  const std::string& page();

  EventLoop& loop_;
  const Clock& clock_;
  UniqueFd listener_;
  metrics::Hosts hosts_;
  std::function<std::string()> makePage_;
  Limits limits_;
  std::string page_;
  std::optional<BootTime> pageMade_;
  /// The oldest first.
  std::list<std::unique_ptr<Connection>> connections_;
  EventSource accepting_;
  EventSource deadline_;
};

}  // namespace adit::control
