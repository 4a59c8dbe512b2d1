// Generic netlink: requests to one family, and the events that it sends by itself.
//
// `GenlChannel` is what a user of a family needs of the kernel; `GenlSocket` is the kernel, tests
// inject their own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "netlink/attributes.hpp"
#include "util/result.hpp"
#include "util/wiping.hpp"

namespace adit::netlink {

/// A request under construction: a command and its attributes. It may hold keys, so it is wiped
/// when it goes away. An attribute or a nest of more than 65531 bytes is a programming error.
class GenlRequest {
 public:
  explicit GenlRequest(std::uint8_t command);

  void put(std::uint16_t type, std::span<const std::uint8_t> bytes);
  /// With the terminating zero.
  void putString(std::uint16_t type, std::string_view text);
  void putU8(std::uint16_t type, std::uint8_t value);
  void putU16(std::uint16_t type, std::uint16_t value);
  void putU32(std::uint16_t type, std::uint32_t value);
  void putU64(std::uint16_t type, std::uint64_t value);
  /// Attributes until endNest(), which gets what this returns, are inside.
  std::size_t beginNest(std::uint16_t type);
  void endNest(std::size_t nest);

  [[nodiscard]] std::uint8_t command() const { return command_; }
  [[nodiscard]] std::span<const std::uint8_t> attributes() const;
  /// The whole message; NLM_F_REQUEST is added to `flags`.
  std::span<const std::uint8_t> encode(std::uint16_t family, std::uint8_t version,
                                       std::uint16_t flags, std::uint32_t sequence);

 private:
  std::uint8_t command_;
  /// Room for both headers, then the attributes.
  WipedBytes bytes_;
};

/// A family as the kernel's controller describes it.
struct GenlFamily {
  std::uint16_t id = 0;
  std::uint32_t version = 0;
  /// Multicast groups by name.
  std::map<std::string, std::uint32_t, std::less<>> groups;
};

/// Looks a family up; the kernel may load its module for that. ENOENT where there is none.
Result<GenlFamily> findGenlFamily(std::string_view name);

class GenlChannel {
 public:
  /// A message of the family: its command and its attributes, valid during the call.
  using Receiver = std::function<void(std::uint8_t command, const Attributes& attributes)>;
  enum class Query : std::uint8_t { One, Dump };
  struct EventsRead {
    std::size_t handedOver = 0;
    /// The kernel had to drop events since the last call (ENOBUFS): the reader looks at the
    /// actual state.
    bool lost = false;
  };

  virtual ~GenlChannel() = default;

  /// The family's version.
  [[nodiscard]] virtual std::uint32_t version() const = 0;

  /// Sends a change and waits for its acknowledgement. The error's message is the kernel's reason
  /// alone. ENOBUFS: the acknowledgement was lost, and the change may have been made or not.
  virtual Result<void> change(GenlRequest request) = 0;
  /// Sends a query and hands over every answer. A dump that the kernel reports as inconsistent is
  /// repeated a few times; `restart` is called before each attempt.
  virtual Result<void> query(Query kind, GenlRequest request, const std::function<void()>& restart,
                             const Receiver& answer) = 0;

  /// Becomes readable when readEvents() has something to do.
  [[nodiscard]] virtual int eventDescriptor() const = 0;
  /// Hands over up to `limit` events without waiting. `event` may use the channel.
  virtual Result<EventsRead> readEvents(std::size_t limit, const Receiver& event) = 0;
};

/// The kernel's family. Changes and events share one socket, since a family may know its user by
/// the socket; queries have another one.
class GenlSocket final : public GenlChannel {
 public:
  struct Options {
    /// Versions of the family that the caller understands.
    std::uint32_t oldest = 0;
    std::uint32_t newest = 255;
    /// The caller's own version: requests name the smaller one of it and the family's.
    std::uint32_t own = 255;
    /// Multicast groups to join.
    std::vector<std::string> groups;
    /// Bytes of events that the kernel may queue for this process.
    int receiveBuffer = 4 << 20;
  };
  /// In the network namespace of the calling thread. ENOENT: there is no such family, or not a
  /// group of that name. EPROTONOSUPPORT: the family has another version.
  static Result<std::unique_ptr<GenlSocket>> open(std::string_view family, const Options& options);
  ~GenlSocket() override;
  GenlSocket(const GenlSocket&) = delete;
  GenlSocket& operator=(const GenlSocket&) = delete;

  [[nodiscard]] std::uint32_t version() const override;
  Result<void> change(GenlRequest request) override;
  Result<void> query(Query kind, GenlRequest request, const std::function<void()>& restart,
                     const Receiver& answer) override;
  [[nodiscard]] int eventDescriptor() const override;
  Result<EventsRead> readEvents(std::size_t limit, const Receiver& event) override;

 private:
  class Impl;
  explicit GenlSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace adit::netlink
