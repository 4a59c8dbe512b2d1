// Notices when somebody changes what the reconciler looks after.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "util/result.hpp"

namespace adit::netlink {

enum class Change : std::uint8_t {
  Link,      ///< a link appeared, vanished, went up or down, changed its MTU or name
  Address,   ///< an address was added or removed, IPv4 or IPv6
  Route,     ///< a route was added or removed, IPv4 or IPv6
  Rule,      ///< a policy rule was added or removed, IPv4 or IPv6
  Firewall,  ///< a change to nftables was committed, by whomever (also iptables-nft, a flush)
};
std::string_view changeName(Change change);

/// Kernel notifications of one network namespace. A notification says only that something
/// changed; the reader then looks at the actual state, so nothing depends on its contents.
class Monitor {
 public:
  /// In the network namespace of the calling thread. Works without nf_tables in the kernel; then
  /// there are no Firewall changes.
  static Result<std::unique_ptr<Monitor>> open();
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Becomes readable when dispatch() has something to do.
  [[nodiscard]] int descriptor() const;

  /// Reads all that is pending, without blocking, and calls `callback` once for each kind of
  /// change that was seen. Where the kernel dropped notifications (ENOBUFS) every kind is
  /// reported. The reader's own changes are
  /// reported too: its next run finds nothing to do, and that is the end of it.
  Result<void> dispatch(const std::function<void(Change)>& callback);

 private:
  class Sockets;
  explicit Monitor(std::unique_ptr<Sockets> sockets);
  std::unique_ptr<Sockets> sockets_;
};

}  // namespace adit::netlink
