// What adit.ko says, right and wrong.
#include "dataplane/kernel/answers.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "kernel_fake.hpp"

using namespace adit;
using namespace adit::dataplane;
using namespace adit::test;
using dataplane::kernel::Event;
namespace kernel = adit::dataplane::kernel;

namespace {

constexpr std::uint32_t kInterface = 7;
const Bytes kIfindex = u32(ADIT_A_IFINDEX, kInterface);

Bytes endpointOf(const Bytes& address, unsigned port) {
  return attr(ADIT_A_ENDPOINT_ADDRESS, address) + u16(ADIT_A_ENDPOINT_PORT, port);
}
Bytes allowedIp(const Bytes& address, unsigned length) {
  return nest(1, attr(ADIT_A_ALLOWED_IP_ADDRESS, address) + u8(ADIT_A_ALLOWED_IP_LENGTH, length));
}
Bytes numbers(std::size_t count) {
  Bytes bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    bytes = bytes + bytesOf(i + 100);
  }
  return bytes;
}

std::vector<kernel::PeerAnswer> peersOf(const std::vector<Bytes>& messages) {
  std::vector<kernel::PeerAnswer> peers;
  for (const Bytes& message : messages) {
    kernel::addPeerAnswer(netlink::Attributes(message), peers);
  }
  return peers;
}
std::optional<Event> eventOf(int command, const Bytes& message) {
  return kernel::event(static_cast<std::uint8_t>(command), netlink::Attributes(message),
                       kInterface);
}
Bytes peerEvent(std::uint64_t id) {
  return kIfindex + nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, id));
}

/// One of every kind.
std::vector<FakeModule::Message> everyEvent() {
  return {
      {ADIT_CMD_EVENT_NEED_HANDSHAKE,
       peerEvent(1) + u8(ADIT_A_HANDSHAKE_REASON, ADIT_HANDSHAKE_NO_REPLY)},
      {ADIT_CMD_EVENT_KEY_CONFIRMED, peerEvent(2)},
      {ADIT_CMD_EVENT_KEYS_EXPIRED, peerEvent(3)},
      {ADIT_CMD_EVENT_ENDPOINT_MOVED,
       kIfindex + nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 4) +
                                        nest(ADIT_A_PEER_ENDPOINT, endpointOf({1, 2, 3, 4}, 5)))},
      {ADIT_CMD_EVENT_CONTROL, peerEvent(5) + attr(ADIT_A_PAYLOAD, {1, 2, 3})},
      {ADIT_CMD_EVENT_HANDSHAKE,
       kIfindex + attr(ADIT_A_PAYLOAD, filled(1, 148)) +
           nest(ADIT_A_ENDPOINT, endpointOf({1, 2, 3, 4}, 5)) +
           nest(ADIT_A_LOCAL,
                attr(ADIT_A_ENDPOINT_ADDRESS, {5, 6, 7, 8}) + u32(ADIT_A_ENDPOINT_IFINDEX, 3)) +
           u32(ADIT_A_BACKLOG, 33)},
  };
}

}  // namespace

TEST_CASE("kernel answers: a device, also of a newer module") {
  const Bytes device =
      u16(ADIT_A_DEVICE_LISTEN_PORT, 51820) + u32(ADIT_A_DEVICE_FWMARK, 3) +
      attr(ADIT_A_DEVICE_BIND_ADDRESS, {192, 0, 2, 1}) + attr(ADIT_A_DEVICE_PUBLIC_KEY, filled(5)) +
      u32(ADIT_A_DEVICE_CLAIMANT, 99) + text(ADIT_A_DEVICE_MODULE, "0.1.0") +
      // One suite and one kind of drop more than are known.
      attr(ADIT_A_DEVICE_SUITE_SPEEDS, bytesOf(std::array<std::uint32_t, 4>{1, 2, 3, 4})) +
      attr(ADIT_A_DEVICE_DROPS, numbers(kDropCount + 1)) + u64(ADIT_A_DEVICE_LAST_PEER_ID, 12) +
      u32(60, 1) + u32(200, 1);
  const auto answer = kernel::deviceAnswer(
      netlink::Attributes(kIfindex + u32(61, 7) + nest(ADIT_A_DEVICE, device)));
  REQUIRE(answer);
  CHECK(answer->listenPort == 51820);
  CHECK(answer->firewallMark == 3);
  CHECK(answer->bindAddress == *IpAddress::parse("192.0.2.1"));
  CHECK(answer->publicKey.bytes[31] == 5);
  CHECK(answer->claimant == 99);
  CHECK(answer->module == "0.1.0");
  CHECK(answer->suiteSpeeds == std::array<std::uint32_t, 3>{1, 2, 3});
  CHECK(answer->drops.front() == 100);
  CHECK(answer->drops.back() == 100 + kDropCount - 1);
  CHECK(answer->lastPeerId == 12);
}

TEST_CASE("kernel answers: a device of an older module, and none") {
  const auto answer = kernel::deviceAnswer(netlink::Attributes(
      kIfindex + nest(ADIT_A_DEVICE,
                      attr(ADIT_A_DEVICE_SUITE_SPEEDS, bytesOf(std::array<std::uint32_t, 1>{9})) +
                          attr(ADIT_A_DEVICE_DROPS, numbers(2)) +
                          // Not a key.
                          attr(ADIT_A_DEVICE_PUBLIC_KEY, filled(5, 31)))));
  REQUIRE(answer);
  CHECK(answer->suiteSpeeds == std::array<std::uint32_t, 3>{9, 0, 0});
  CHECK(answer->drops[1] == 101);
  CHECK(answer->drops[2] == 0);
  CHECK(answer->publicKey.isZero());
  CHECK_FALSE(kernel::deviceAnswer(netlink::Attributes(kIfindex)));
}

TEST_CASE("kernel answers: a peer whose allowed IPs take several messages") {
  const Bytes first = u64(ADIT_A_PEER_ID, 4) + attr(ADIT_A_PEER_PUBLIC_KEY, filled(9)) +
                      u32(ADIT_A_PEER_FLAGS, ADIT_PEER_F_NO_ROAM) +
                      nest(ADIT_A_PEER_ENDPOINT, endpointOf({1, 2, 3, 4}, 5)) +
                      u16(ADIT_A_PEER_PERSISTENT_KEEPALIVE, 25) +
                      nest(ADIT_A_PEER_ALLOWED_IPS, allowedIp({10, 0, 0, 0}, 24)) +
                      attr(ADIT_A_PEER_COOKIE, {1, 2}) + u64(ADIT_A_PEER_RX_BYTES, 11) +
                      u64(ADIT_A_PEER_TX_BYTES, 12) + u64(ADIT_A_PEER_RX_PACKETS, 13) +
                      u64(ADIT_A_PEER_TX_PACKETS, 14) + u64(ADIT_A_PEER_LAST_RECEIVE, 15) +
                      u8(ADIT_A_PEER_SUITE, 2) + u64(ADIT_A_PEER_SESSION_START, 16) +
                      u8(ADIT_A_PEER_SESSION_INITIATOR, 1) +
                      attr(ADIT_A_PEER_DROPS, numbers(kDropCount));
  const Bytes second =
      u64(ADIT_A_PEER_ID, 4) + nest(ADIT_A_PEER_ALLOWED_IPS, allowedIp({10, 0, 1, 0}, 24));
  const Bytes other = u64(ADIT_A_PEER_ID, 5) + attr(ADIT_A_PEER_PUBLIC_KEY, filled(8));
  const auto peers =
      peersOf({kIfindex + nest(ADIT_A_PEER, first), kIfindex + nest(ADIT_A_PEER, second),
               kIfindex + nest(ADIT_A_PEER, other)});
  REQUIRE(peers.size() == 2);
  const kernel::PeerAnswer& peer = peers[0];
  CHECK(peer.settings.id == 4);
  CHECK(peer.settings.publicKey.bytes[0] == 9);
  CHECK_FALSE(peer.settings.roam);
  CHECK(peer.settings.persistentKeepalive == 25);
  CHECK(peer.settings.allowedIps ==
        std::vector{*Prefix::parse("10.0.0.0/24"), *Prefix::parse("10.0.1.0/24")});
  CHECK(peer.mark == Bytes{1, 2});
  CHECK(peer.stats.id == 4);
  CHECK(peer.stats.endpoint == Endpoint{*IpAddress::parse("1.2.3.4"), 5, 0});
  CHECK(peer.stats.rxBytes == 11);
  CHECK(peer.stats.txBytes == 12);
  CHECK(peer.stats.rxPackets == 13);
  CHECK(peer.stats.txPackets == 14);
  CHECK(peer.stats.lastReceive == BootTime(15));
  CHECK(peer.stats.suite == crypto::Suite::Aes128Gcm);
  CHECK(peer.stats.sessionStart == BootTime(16));
  CHECK(peer.stats.sessionInitiator);
  CHECK(peer.stats.drops.back() == 100 + kDropCount - 1);
  CHECK(peers[1].settings.roam);
  CHECK_FALSE(peers[1].stats.suite);
  CHECK_FALSE(peers[1].stats.endpoint);
  CHECK(peers[1].settings.allowedIps.empty());
}

TEST_CASE("kernel answers: peers that make no sense are left out") {
  const Bytes key = attr(ADIT_A_PEER_PUBLIC_KEY, filled(9));
  CHECK(peersOf({kIfindex}).empty());
  CHECK(peersOf({nest(ADIT_A_PEER, key)}).empty());
  CHECK(peersOf({nest(ADIT_A_PEER, u32(ADIT_A_PEER_ID, 4) + key)}).empty());
  CHECK(peersOf({nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 4))}).empty());
  // A continuation of another peer.
  const auto peers =
      peersOf({nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 4) + key),
               nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 5) +
                                     nest(ADIT_A_PEER_ALLOWED_IPS, allowedIp({10, 0, 0, 0}, 24)))});
  REQUIRE(peers.size() == 1);
  CHECK(peers[0].settings.allowedIps.empty());
  // Prefixes too long, of no family, without a length; a suite that nobody knows.
  const auto odd = peersOf(
      {nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 4) + key + u8(ADIT_A_PEER_SUITE, 9) +
                             u64(ADIT_A_PEER_SESSION_START, 1) +
                             nest(ADIT_A_PEER_ALLOWED_IPS,
                                  allowedIp({10, 0, 0, 0}, 33) + allowedIp({10, 0, 0}, 8) +
                                      nest(1, attr(ADIT_A_ALLOWED_IP_ADDRESS, {10, 0, 0, 0})) +
                                      allowedIp({11, 0, 0, 0}, 8)))});
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].settings.allowedIps == std::vector{*Prefix::parse("11.0.0.0/8")});
  CHECK_FALSE(odd[0].stats.suite);
}

TEST_CASE("kernel events: each kind with what belongs to it") {
  const auto events = everyEvent();
  const auto need = std::get<kernel::NeedHandshakeEvent>(
      eventOf(events[0].command, events[0].attributes).value());
  CHECK(need.peer == 1);
  CHECK(need.reason == HandshakeReason::NoReply);
  CHECK(
      std::get<kernel::KeyConfirmedEvent>(eventOf(events[1].command, events[1].attributes).value())
          .peer == 2);
  CHECK(std::get<kernel::KeysExpiredEvent>(eventOf(events[2].command, events[2].attributes).value())
            .peer == 3);
  const auto moved = std::get<kernel::EndpointMovedEvent>(
      eventOf(events[3].command, events[3].attributes).value());
  CHECK(moved.peer == 4);
  CHECK(moved.endpoint == Endpoint{*IpAddress::parse("1.2.3.4"), 5, 0});
  const auto control =
      std::get<kernel::ControlEvent>(eventOf(events[4].command, events[4].attributes).value());
  CHECK(control.peer == 5);
  CHECK(std::ranges::equal(control.message, Bytes{1, 2, 3}));
  const auto handshake =
      std::get<kernel::HandshakeEvent>(eventOf(events[5].command, events[5].attributes).value());
  CHECK(handshake.datagram.size() == 148);
  CHECK(handshake.source == Endpoint{*IpAddress::parse("1.2.3.4"), 5, 0});
  CHECK(handshake.local == LocalAddress{*IpAddress::parse("5.6.7.8"), 3});
  CHECK(handshake.backlog == 33);
}

TEST_CASE("kernel events: every reason for a handshake, and one of a newer module") {
  using Reason = HandshakeReason;
  const std::map<unsigned, Reason> reasons{{ADIT_HANDSHAKE_STAGED, Reason::Staged},
                                           {ADIT_HANDSHAKE_KEY_AGING, Reason::KeyAging},
                                           {ADIT_HANDSHAKE_NO_REPLY, Reason::NoReply},
                                           {ADIT_HANDSHAKE_KEEPALIVE, Reason::Keepalive},
                                           {77, Reason::Staged}};
  for (const auto& [wire, reason] : reasons) {
    const auto event =
        eventOf(ADIT_CMD_EVENT_NEED_HANDSHAKE, peerEvent(1) + u8(ADIT_A_HANDSHAKE_REASON, wire));
    CHECK(std::get<kernel::NeedHandshakeEvent>(event.value()).reason == reason);
  }
}

TEST_CASE("kernel events: of another interface, unknown and incomplete ones are left out") {
  for (const auto& [command, message] : everyEvent()) {
    CAPTURE(int{command});
    CHECK(eventOf(command, message + u32(61, 5)));
    const Bytes tail(message.begin() + 8, message.end());
    CHECK_FALSE(eventOf(command, u32(ADIT_A_IFINDEX, 8) + tail));
    CHECK_FALSE(eventOf(command, tail));
    CHECK_FALSE(eventOf(command, kIfindex));
    CHECK_FALSE(eventOf(99, message));
  }
  CHECK_FALSE(eventOf(ADIT_CMD_EVENT_PEER_ADDED, peerEvent(1)));
  CHECK_FALSE(eventOf(ADIT_CMD_EVENT_PEER_REMOVED, peerEvent(1)));
  CHECK_FALSE(eventOf(ADIT_CMD_EVENT_ENDPOINT_MOVED, peerEvent(1)));
  CHECK_FALSE(eventOf(ADIT_CMD_EVENT_CONTROL, peerEvent(1)));
  CHECK_FALSE(eventOf(ADIT_CMD_EVENT_CONTROL, peerEvent(1) + attr(ADIT_A_PAYLOAD, filled(0, 257))));
  const Bytes source = nest(ADIT_A_ENDPOINT, endpointOf({1, 2, 3, 4}, 5));
  CHECK(eventOf(ADIT_CMD_EVENT_HANDSHAKE, kIfindex + source + attr(ADIT_A_PAYLOAD, {1})));
  CHECK_FALSE(
      eventOf(ADIT_CMD_EVENT_HANDSHAKE, kIfindex + source + attr(ADIT_A_PAYLOAD, filled(1, 149))));
  CHECK_FALSE(eventOf(
      ADIT_CMD_EVENT_HANDSHAKE,
      kIfindex + nest(ADIT_A_ENDPOINT, endpointOf({1, 2, 3, 4}, 0)) + attr(ADIT_A_PAYLOAD, {1})));
}

TEST_CASE("kernel events: cut off and damaged messages are survived") {
  std::mt19937 random(1);
  for (const auto& [command, message] : everyEvent()) {
    for (std::size_t size = 0; size < message.size(); ++size) {
      // A vector of its own, so that the sanitizers see a read behind its end.
      eventOf(command, Bytes(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    for (int i = 0; i < 2000; ++i) {
      Bytes damaged = message;
      for (int flips = 0; flips < 3; ++flips) {
        damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
      }
      eventOf(command, damaged);
      peersOf({damaged});
      kernel::deviceAnswer(netlink::Attributes(damaged));
    }
  }
}
