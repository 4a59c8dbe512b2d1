// A module that remembers what it was sent and says what a test wants; and messages of adit.ko
// written out independently of the code that is tested.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "netlink/genl.hpp"
#include "netlink/route.hpp"
#include "uapi/adit.h"

namespace adit::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <typename T>
Bytes bytesOf(T value) {
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// One attribute; `length` other than its own makes a malformed one.
inline Bytes attr(int type, const Bytes& payload, std::size_t length = 0) {
  Bytes bytes = bytesOf(static_cast<std::uint16_t>(length != 0 ? length : payload.size() + 4)) +
                bytesOf(static_cast<std::uint16_t>(type)) + payload;
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}
inline Bytes nest(int type, const Bytes& payload) {
  return attr(type | NLA_F_NESTED, payload);
}
inline Bytes u8(int type, unsigned value) {
  return attr(type, {static_cast<std::uint8_t>(value)});
}
inline Bytes u16(int type, unsigned value) {
  return attr(type, bytesOf(static_cast<std::uint16_t>(value)));
}
inline Bytes u32(int type, std::uint32_t value) {
  return attr(type, bytesOf(value));
}
inline Bytes u64(int type, std::uint64_t value) {
  return attr(type, bytesOf(value));
}
inline Bytes text(int type, const std::string& value) {
  Bytes payload(value.begin(), value.end());
  payload.push_back(0);
  return attr(type, payload);
}
inline Bytes filled(std::uint8_t value, std::size_t size = 32) {
  return Bytes(size, value);
}

/// What the plane and the test share of a fake module.
struct FakeModule {
  struct Message {
    std::uint8_t command;
    Bytes attributes;
    friend bool operator==(const Message&, const Message&) = default;
  };

  /// Changes in the order in which they came.
  std::vector<Message> changes;
  /// Outcomes of the next changes with a command; success when there is none.
  std::map<std::uint8_t, std::deque<Error>> refusals;
  Bytes device;
  std::vector<Bytes> peers;
  /// A dump is interrupted so often, after its first message.
  int interruptions = 0;
  /// The next queries with a command fail.
  std::map<std::uint8_t, Error> failures;
  std::deque<Message> events;
  bool lost = false;
  std::uint32_t version = ADIT_GENL_VERSION;

  [[nodiscard]] std::vector<Bytes> sent(std::uint8_t command) const {
    std::vector<Bytes> found;
    for (const Message& message : changes) {
      if (message.command == command) found.push_back(message.attributes);
    }
    return found;
  }
};

class FakeChannel final : public netlink::GenlChannel {
 public:
  explicit FakeChannel(std::shared_ptr<FakeModule> module) : module_(std::move(module)) {}

  [[nodiscard]] std::uint32_t version() const override { return module_->version; }
  Result<void> change(netlink::GenlRequest request) override {
    const auto attributes = request.attributes();
    module_->changes.push_back({request.command(), {attributes.begin(), attributes.end()}});
    auto& refusals = module_->refusals[request.command()];
    if (refusals.empty()) return {};
    const Error refusal = refusals.front();
    refusals.pop_front();
    if (refusal.message.empty()) return {};
    return tl::unexpected(refusal);
  }
  Result<void> query(Query kind, netlink::GenlRequest request, const std::function<void()>& restart,
                     const Receiver& answer) override {
    const std::uint8_t command = request.command();
    if (const auto failure = module_->failures.find(command); failure != module_->failures.end()) {
      return tl::unexpected(failure->second);
    }
    const bool peers = command == ADIT_CMD_GET_PEER;
    REQUIRE((kind == Query::Dump) == peers);
    restart();
    for (; peers && module_->interruptions > 0 && !module_->peers.empty();
         --module_->interruptions) {
      answer(command, netlink::Attributes(module_->peers.front()));
      restart();
    }
    if (!peers) answer(command, netlink::Attributes(module_->device));
    for (const Bytes& peer : peers ? module_->peers : std::vector<Bytes>{}) {
      answer(command, netlink::Attributes(peer));
    }
    return {};
  }
  [[nodiscard]] int eventDescriptor() const override { return -1; }
  Result<EventsRead> readEvents(std::size_t limit, const Receiver& event) override {
    EventsRead read;
    while (read.handedOver < limit && !module_->events.empty()) {
      const FakeModule::Message next = module_->events.front();
      module_->events.pop_front();
      event(next.command, netlink::Attributes(next.attributes));
      ++read.handedOver;
    }
    read.lost = std::exchange(module_->lost, false);
    return read;
  }

 private:
  std::shared_ptr<FakeModule> module_;
};

/// Links, and nothing else.
class FakeLinks final : public netlink::Routing {
 public:
  using Link = netlink::Link;
  std::vector<Link> list;
  std::uint32_t nextIndex = 7;
  Error createError;
  Error upError;

  Result<std::vector<Link>> links() override { return list; }
  Result<std::optional<Link>> findLink(std::string_view name) override {
    const auto found = std::ranges::find(list, name, &Link::name);
    return found == list.end() ? std::nullopt : std::optional(*found);
  }
  Result<void> createLink(std::string_view name, std::string_view kind) override {
    if (!createError.message.empty()) return tl::unexpected(createError);
    Link link;
    link.index = nextIndex++;
    link.name = name;
    link.kind = kind;
    list.push_back(link);
    return {};
  }
  Result<void> setLinkUp(std::uint32_t index, bool up) override {
    if (!upError.message.empty()) return tl::unexpected(upError);
    std::ranges::find(list, index, &Link::index)->up = up;
    return {};
  }
  Result<void> setLinkMtu(std::uint32_t index, std::uint32_t mtu) override {
    std::ranges::find(list, index, &Link::index)->mtu = mtu;
    return {};
  }
  Result<void> deleteLink(std::uint32_t index) override {
    std::erase_if(list, [&](const Link& link) { return link.index == index; });
    return {};
  }
  Result<std::vector<InterfaceAddress>> addresses(std::uint32_t) override { return unused(); }
  Result<void> addAddress(std::uint32_t, const InterfaceAddress&) override { return unused(); }
  Result<void> removeAddress(std::uint32_t, const InterfaceAddress&) override { return unused(); }
  Result<std::vector<netlink::Route>> routes(const netlink::RouteFilter&) override {
    return unused();
  }
  Result<void> addRoute(const netlink::Route&) override { return unused(); }
  Result<void> replaceRoute(const netlink::Route&) override { return unused(); }
  Result<void> removeRoute(const netlink::Route&) override { return unused(); }
  Result<netlink::RouteAnswer> lookupRoute(const IpAddress&, std::uint32_t) override {
    return unused();
  }
  Result<std::vector<netlink::Rule>> rules(int) override { return unused(); }
  Result<void> addRule(const netlink::Rule&) override { return unused(); }
  Result<void> removeRule(const netlink::Rule&) override { return unused(); }

 private:
  static tl::unexpected<Error> unused() { return fail("unused"); }
};

}  // namespace adit::test
