// Every command to adit.ko, byte by byte (kmod/uapi/adit.h).
#include "dataplane/kernel/requests.hpp"

#include <catch2/catch.hpp>

#include "kernel_fake.hpp"
#include "noise/cookie.hpp"

using namespace adit;
using namespace adit::dataplane;
using namespace adit::test;
namespace kernel = adit::dataplane::kernel;

namespace {

constexpr std::uint32_t kInterface = 7;
const Bytes kIfindex = u32(ADIT_A_IFINDEX, kInterface);

Bytes copyOf(const netlink::GenlRequest& request) {
  const auto attributes = request.attributes();
  return {attributes.begin(), attributes.end()};
}
crypto::PublicKey keyOf(std::uint8_t value) {
  crypto::PublicKey key;
  key.bytes.fill(value);
  return key;
}
Secret<32> secretOf(std::uint8_t value) {
  const Bytes bytes = filled(value);
  return Secret<32>(std::span<const std::uint8_t, 32>(bytes.data(), 32));
}
Bytes allowedIp(const Bytes& address, unsigned length) {
  return nest(0, attr(ADIT_A_ALLOWED_IP_ADDRESS, address) + u8(ADIT_A_ALLOWED_IP_LENGTH, length));
}

}  // namespace

TEST_CASE("kernel requests: the device") {
  CHECK(kernel::getDevice(kInterface).command() == ADIT_CMD_GET_DEVICE);
  CHECK(copyOf(kernel::getDevice(kInterface)) == kIfindex);

  kernel::DeviceChange change;
  CHECK(change.empty());
  change.claim = true;
  CHECK(kernel::setDevice(kInterface, change).command() == ADIT_CMD_SET_DEVICE);
  CHECK(copyOf(kernel::setDevice(kInterface, change)) ==
        kIfindex + nest(ADIT_A_DEVICE, u8(ADIT_A_DEVICE_CLAIM, 1)));

  change = {};
  change.listenPort = 51820;
  change.firewallMark = 0xcafe;
  change.bindAddress = *IpAddress::parse("192.0.2.1");
  change.publicKey = keyOf(5);
  const auto mac1 = noise::mac1Key(keyOf(5));
  CHECK(copyOf(kernel::setDevice(kInterface, change)) ==
        kIfindex + nest(ADIT_A_DEVICE,
                        u16(ADIT_A_DEVICE_LISTEN_PORT, 51820) + u32(ADIT_A_DEVICE_FWMARK, 0xcafe) +
                            attr(ADIT_A_DEVICE_BIND_ADDRESS, {192, 0, 2, 1}) +
                            attr(ADIT_A_DEVICE_MAC1_KEY, Bytes(mac1.begin(), mac1.end())) +
                            attr(ADIT_A_DEVICE_PUBLIC_KEY, filled(5))));

  change = {};
  change.bindAddress = IpAddress();
  CHECK(copyOf(kernel::setDevice(kInterface, change)) ==
        kIfindex + nest(ADIT_A_DEVICE, attr(ADIT_A_DEVICE_BIND_ADDRESS, {})));
}

TEST_CASE("kernel requests: a peer with everything") {
  const std::vector<Prefix> prefixes{*Prefix::parse("10.0.0.0/24"), *Prefix::parse("fd00::/8")};
  kernel::PeerChange change;
  change.id = 0x1'0000'0002;
  change.publicKey = keyOf(9);
  change.roam = false;
  change.persistentKeepalive = 25;
  change.allowedIps = prefixes;
  change.endpoint = Endpoint{*IpAddress::parse("198.51.100.7"), 4242, 0};
  change.local = LocalAddress{*IpAddress::parse("192.0.2.9"), 3};
  const Bytes mark{1, 2, 3};
  change.mark = mark;
  const auto requests = kernel::setPeer(kInterface, change);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].command() == ADIT_CMD_SET_PEER);
  const Bytes expected =
      u64(ADIT_A_PEER_ID, 0x1'0000'0002) + attr(ADIT_A_PEER_PUBLIC_KEY, filled(9)) +
      u32(ADIT_A_PEER_FLAGS, ADIT_PEER_F_NO_ROAM) +
      nest(ADIT_A_PEER_ENDPOINT,
           attr(ADIT_A_ENDPOINT_ADDRESS, {198, 51, 100, 7}) + u16(ADIT_A_ENDPOINT_PORT, 4242)) +
      nest(ADIT_A_PEER_LOCAL,
           attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 9}) + u32(ADIT_A_ENDPOINT_IFINDEX, 3)) +
      u16(ADIT_A_PEER_PERSISTENT_KEEPALIVE, 25) + attr(ADIT_A_PEER_COOKIE, mark) +
      nest(ADIT_A_PEER_ALLOWED_IPS,
           allowedIp({10, 0, 0, 0}, 24) +
               allowedIp({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 8));
  CHECK(copyOf(requests[0]) == kIfindex + nest(ADIT_A_PEER, expected));
}

TEST_CASE("kernel requests: an update names no key and creates nothing") {
  kernel::PeerChange change;
  change.id = 3;
  change.endpoint = Endpoint{*IpAddress::parse("fe80::1"), 1, 12};
  change.local = LocalAddress{};
  const auto requests = kernel::setPeer(kInterface, change);
  REQUIRE(requests.size() == 1);
  Bytes address(16);
  address[0] = 0xfe;
  address[1] = 0x80;
  address[15] = 1;
  CHECK(copyOf(requests[0]) ==
        kIfindex + nest(ADIT_A_PEER,
                        u64(ADIT_A_PEER_ID, 3) + u32(ADIT_A_PEER_FLAGS, ADIT_PEER_F_UPDATE_ONLY) +
                            nest(ADIT_A_PEER_ENDPOINT, attr(ADIT_A_ENDPOINT_ADDRESS, address) +
                                                           u16(ADIT_A_ENDPOINT_PORT, 1) +
                                                           u32(ADIT_A_ENDPOINT_IFINDEX, 12))));
}

TEST_CASE("kernel requests: an empty list of allowed IPs is sent, an absent one is not") {
  kernel::PeerChange change;
  change.id = 3;
  const Bytes start = u64(ADIT_A_PEER_ID, 3) + u32(ADIT_A_PEER_FLAGS, ADIT_PEER_F_UPDATE_ONLY);
  CHECK(copyOf(kernel::setPeer(kInterface, change).at(0)) == kIfindex + nest(ADIT_A_PEER, start));
  change.allowedIps = std::span<const Prefix>();
  CHECK(copyOf(kernel::setPeer(kInterface, change).at(0)) ==
        kIfindex + nest(ADIT_A_PEER, start + nest(ADIT_A_PEER_ALLOWED_IPS, {})));
}

TEST_CASE("kernel requests: many allowed IPs go in several messages, each prefix once") {
  std::vector<Prefix> prefixes;
  for (unsigned i = 0; i < 1000; ++i) {
    Bytes address(16);
    address[14] = static_cast<std::uint8_t>(i >> 8);
    address[15] = static_cast<std::uint8_t>(i);
    prefixes.emplace_back(IpAddress::fromV6(std::span<const std::uint8_t, 16>(address.data(), 16)),
                          128);
  }
  kernel::PeerChange change;
  change.id = 3;
  change.publicKey = keyOf(9);
  change.allowedIps = prefixes;
  const auto requests = kernel::setPeer(kInterface, change);
  CHECK(requests.size() == 3);
  std::vector<Prefix> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(requests[i].attributes().size() < 16384);
    const netlink::Attributes message(requests[i].attributes());
    const auto peer = message.nest(ADIT_A_PEER);
    REQUIRE(peer);
    CHECK(peer->u64(ADIT_A_PEER_ID) == 3U);
    CHECK(peer->has(ADIT_A_PEER_PUBLIC_KEY) == (i == 0));
    const std::uint32_t appending = ADIT_PEER_F_UPDATE_ONLY | ADIT_PEER_F_APPEND_ALLOWED_IPS;
    CHECK(peer->u32(ADIT_A_PEER_FLAGS) == (i == 0 ? 0 : appending));
    netlink::forEachAttribute(peer->bytes(ADIT_A_PEER_ALLOWED_IPS), [&](auto payload) {
      const netlink::Attributes item(payload);
      seen.emplace_back(*item.address(ADIT_A_ALLOWED_IP_ADDRESS),
                        *item.u8(ADIT_A_ALLOWED_IP_LENGTH));
    });
  }
  CHECK(seen == prefixes);
}

TEST_CASE("kernel requests: commands about a peer") {
  for (const auto command : {ADIT_CMD_DEL_PEER, ADIT_CMD_DEL_KEYS, ADIT_CMD_DROP_STAGED}) {
    const auto request = kernel::peerCommand(command, kInterface, 77);
    CHECK(request.command() == command);
    CHECK(copyOf(request) == kIfindex + nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 77)));
  }
  CHECK(kernel::getPeers(kInterface).command() == ADIT_CMD_GET_PEER);
  CHECK(copyOf(kernel::getPeers(kInterface)) == kIfindex);
}

TEST_CASE("kernel requests: keys") {
  using namespace std::chrono_literals;
  for (const bool next : {false, true}) {
    const noise::SessionKeys keys{next ? noise::KeySlot::Next : noise::KeySlot::Current,
                                  crypto::Suite::Aes256Gcm,
                                  0x11223344,
                                  0x55667788,
                                  secretOf(0xaa),
                                  secretOf(0xbb),
                                  {120s, 180s, 1000, 2000}};
    const auto request = kernel::newKey(kInterface, 5, keyOf(9), keys);
    CHECK(request.command() == ADIT_CMD_NEW_KEY);
    CHECK(copyOf(request) ==
          kIfindex +
              nest(ADIT_A_KEY,
                   u64(ADIT_A_KEY_PEER_ID, 5) + attr(ADIT_A_KEY_PEER_PUBLIC_KEY, filled(9)) +
                       u8(ADIT_A_KEY_SLOT, next ? ADIT_KEY_SLOT_NEXT : ADIT_KEY_SLOT_CURRENT) +
                       u8(ADIT_A_KEY_SUITE, 1) + u32(ADIT_A_KEY_LOCAL_INDEX, 0x11223344) +
                       u32(ADIT_A_KEY_REMOTE_INDEX, 0x55667788) +
                       attr(ADIT_A_KEY_SEND, filled(0xaa)) +
                       attr(ADIT_A_KEY_RECEIVE, filled(0xbb)) +
                       u64(ADIT_A_KEY_REKEY_AFTER, 120'000'000'000) +
                       u64(ADIT_A_KEY_REJECT_AFTER, 180'000'000'000) +
                       u64(ADIT_A_KEY_REKEY_AFTER_MESSAGES, 1000) +
                       u64(ADIT_A_KEY_REJECT_AFTER_MESSAGES, 2000)));
  }
}

TEST_CASE("kernel requests: datagrams of ours") {
  const Bytes payload{1, 2, 3, 4, 5};
  const auto control = kernel::sendControl(kInterface, 5, payload);
  CHECK(control.command() == ADIT_CMD_SEND_CONTROL);
  CHECK(copyOf(control) ==
        kIfindex + nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 5)) + attr(ADIT_A_PAYLOAD, payload));

  const Endpoint destination{*IpAddress::parse("192.0.2.1"), 51820, 0};
  const Bytes endpoint = nest(ADIT_A_ENDPOINT, attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 1}) +
                                                   u16(ADIT_A_ENDPOINT_PORT, 51820));
  const auto without = kernel::sendHandshake(kInterface, payload, destination, LocalAddress{});
  CHECK(without.command() == ADIT_CMD_SEND_HANDSHAKE);
  CHECK(copyOf(without) == kIfindex + attr(ADIT_A_PAYLOAD, payload) + endpoint);
  const auto from = kernel::sendHandshake(kInterface, payload, destination,
                                          LocalAddress{*IpAddress::parse("192.0.2.2"), 0});
  CHECK(copyOf(from) == kIfindex + attr(ADIT_A_PAYLOAD, payload) + endpoint +
                            nest(ADIT_A_LOCAL, attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 2})));
}
