// The kernel data plane on a module that a test speaks for.
#include <catch2/catch.hpp>

#include "dataplane/kernel/kernel.hpp"
#include "kernel_fake.hpp"
#include "plane_events.hpp"
#include "sessions.hpp"

using namespace adit;
using namespace adit::dataplane;
using namespace adit::test;
using namespace std::chrono_literals;
using noise::KeySlot;

namespace {

constexpr std::uint32_t kInterface = 7;
const Bytes kIfindex = u32(ADIT_A_IFINDEX, kInterface);

crypto::PublicKey keyOf(std::uint8_t value) {
  crypto::PublicKey key;
  key.bytes.fill(value);
  return key;
}

struct TestClock final : Clock {
  BootTime time = 1000s;
  [[nodiscard]] BootTime now() const override { return time; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return time; }
};

struct Session {
  unsigned suite = 0;
  BootTime start{};
  bool initiator = false;
};
Bytes peerMessage(std::uint64_t id, std::uint8_t key, const std::string& prefix = "",
                  const std::optional<Session>& session = {}, unsigned port = 0) {
  Bytes peer = u64(ADIT_A_PEER_ID, id) + attr(ADIT_A_PEER_PUBLIC_KEY, filled(key));
  if (!prefix.empty()) {
    const Prefix allowed = *Prefix::parse(prefix);
    const auto address = allowed.address().bytes();
    peer = peer + nest(ADIT_A_PEER_ALLOWED_IPS,
                       nest(1, attr(ADIT_A_ALLOWED_IP_ADDRESS, {address.begin(), address.end()}) +
                                   u8(ADIT_A_ALLOWED_IP_LENGTH, allowed.length())));
  }
  if (session) {
    peer = peer + u8(ADIT_A_PEER_SUITE, session->suite) +
           u64(ADIT_A_PEER_SESSION_START, static_cast<std::uint64_t>(session->start.count())) +
           u8(ADIT_A_PEER_SESSION_INITIATOR, session->initiator ? 1 : 0);
  }
  if (port != 0) {
    peer = peer + nest(ADIT_A_PEER_ENDPOINT, attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 1}) +
                                                 u16(ADIT_A_ENDPOINT_PORT, port));
  }
  return kIfindex + nest(ADIT_A_PEER, peer);
}
FakeModule::Message peerEvent(int command, std::uint64_t id, const Bytes& more = {}) {
  return {static_cast<std::uint8_t>(command),
          kIfindex + nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, id)) + more};
}

struct Fixture {
  std::shared_ptr<FakeModule> module = std::make_shared<FakeModule>();
  FakeLinks links;
  TestClock clock;
  Events events;
  std::unique_ptr<DataPlane> plane;

  Fixture() { device({}); }
  void device(const Bytes& attributes) {
    module->device =
        kIfindex + nest(ADIT_A_DEVICE, text(ADIT_A_DEVICE_MODULE, "0.1.0") + attributes);
  }
  Result<std::unique_ptr<DataPlane>> tryOpen() {
    return dataplane::kernel::createKernelDataPlane(
        std::make_unique<FakeChannel>(module), links,
        {.interface = "adit0", .mtu = 1300, .clock = &clock});
  }
  void open() {
    auto opened = tryOpen();
    INFO((opened ? "" : opened.error().message));
    REQUIRE(opened);
    plane = std::move(*opened);
    module->changes.clear();
  }
  /// An interface that was left behind.
  void leaveLink(bool up = true) {
    netlink::Link link;
    link.index = kInterface;
    link.name = "adit0";
    link.kind = "adit";
    link.mtu = 1420;
    link.up = up;
    links.list = {link};
  }
  PeerSettings settings(PeerId id, std::vector<const char*> prefixes) {
    PeerSettings peer;
    peer.id = id;
    peer.publicKey = keyOf(static_cast<std::uint8_t>(id));
    for (const char* prefix : prefixes) {
      peer.allowedIps.push_back(*Prefix::parse(prefix));
    }
    return peer;
  }
  void refuse(int command, int code, const std::string& words = "the module's words") {
    module->refusals[static_cast<std::uint8_t>(command)].push_back({words, code});
  }
  std::size_t count(int command) const {
    return module->sent(static_cast<std::uint8_t>(command)).size();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "kernel plane: a new interface is made, claimed, and given its MTU") {
  device(attr(ADIT_A_DEVICE_SUITE_SPEEDS, bytesOf(std::array<std::uint32_t, 3>{1, 2, 3})));
  auto opened = tryOpen();
  REQUIRE(opened);
  REQUIRE(links.list.size() == 1);
  CHECK(links.list[0].kind == "adit");
  CHECK(links.list[0].mtu == 1300);
  CHECK_FALSE(links.list[0].up);
  CHECK(module->changes ==
        std::vector<FakeModule::Message>{
            {ADIT_CMD_SET_DEVICE, kIfindex + nest(ADIT_A_DEVICE, u8(ADIT_A_DEVICE_CLAIM, 1))}});
  CHECK((*opened)->name() == "kernel");
  CHECK((*opened)->version() == "0.1.0");
  CHECK((*opened)->suiteSpeeds() == std::array<std::uint32_t, 3>{1, 2, 3});
  CHECK((*opened)->inheritance().peers.empty());
  CHECK((*opened)->inheritance().nextId == 1);
  opened->reset();
  CHECK(links.list.size() == 1);
  open();
  plane->destroyInterface();
  CHECK(links.list.empty());
}

TEST_CASE_METHOD(Fixture, "kernel plane: a daemon that serves the interface is left alone") {
  leaveLink();
  refuse(ADIT_CMD_SET_DEVICE, EBUSY, "the device has a claimant");
  const auto opened = tryOpen();
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == EBUSY);
  CHECK(opened.error().message ==
        "interface adit0 is in use by another program: the device has a claimant");
  CHECK(links.list.size() == 1);
}

TEST_CASE_METHOD(Fixture, "kernel plane: a failure takes away only what was made") {
  module->failures[ADIT_CMD_GET_PEER] = {"no", ENOMEM};
  const auto created = tryOpen();
  REQUIRE_FALSE(created);
  CHECK_THAT(created.error().message, Catch::Contains("adit0"));
  CHECK(links.list.empty());
  leaveLink();
  CHECK_FALSE(tryOpen());
  CHECK(links.list.size() == 1);
  module->failures.clear();
  module->failures[ADIT_CMD_GET_DEVICE] = {"no", ENOMEM};
  CHECK_FALSE(tryOpen());
  module->failures.clear();
  module->device = kIfindex;
  CHECK(tryOpen().error().code == EBADMSG);
  links.list[0].kind = "veth";
  const auto foreign = tryOpen();
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().code == EEXIST);
  CHECK(foreign.error().message == "there is an interface adit0 already, of type veth");
  links.list.clear();
  links.createError = {"create interface adit0 of type adit: not supported", EOPNOTSUPP};
  CHECK(tryOpen().error().code == EOPNOTSUPP);
}

TEST_CASE_METHOD(Fixture, "kernel plane: what a former daemon left is read and not touched") {
  leaveLink();
  device(u16(ADIT_A_DEVICE_LISTEN_PORT, 4000) + u64(ADIT_A_DEVICE_LAST_PEER_ID, 12) +
         attr(ADIT_A_DEVICE_PUBLIC_KEY, filled(1)));
  module->peers = {peerMessage(4, 4, "10.0.0.4/32", Session{2, 900s, true}, 5), peerMessage(9, 9)};
  module->interruptions = 2;
  auto opened = tryOpen();
  REQUIRE(opened);
  CHECK(module->changes.size() == 1);
  CHECK(links.list[0].mtu == 1420);
  const Inheritance& kept = (*opened)->inheritance();
  CHECK(kept.publicKey == keyOf(1));
  CHECK(kept.nextId == 13);
  REQUIRE(kept.peers.size() == 2);
  CHECK(kept.peers[0].publicKey == keyOf(4));
  CHECK(kept.peers[0].stats.id == 4);
  CHECK(kept.peers[0].stats.suite == crypto::Suite::Aes128Gcm);
  CHECK(kept.peers[0].stats.sessionInitiator);
  CHECK(kept.peers[0].stats.endpoint->port == 5);

  plane = std::move(*opened);
  module->changes.clear();
  DeviceSettings same;
  same.publicKey = keyOf(1);
  REQUIRE(plane->configure(same));
  REQUIRE(plane->setPeer(settings(4, {"10.0.0.4/32"})));
  CHECK(module->changes.empty());
  REQUIRE(plane->setPeer(settings(4, {"10.0.0.5/32"})));
  CHECK(count(ADIT_CMD_SET_PEER) == 1);
}

TEST_CASE_METHOD(Fixture,
                 "kernel plane: new ids are above those in use, whatever the module says") {
  leaveLink();
  module->peers = {peerMessage(9, 9)};
  open();
  CHECK(plane->inheritance().nextId == 10);
}

TEST_CASE_METHOD(Fixture, "kernel plane: only what changed of the device is sent") {
  open();
  DeviceSettings settings;
  settings.listenPort = 51820;
  settings.publicKey = keyOf(1);
  REQUIRE(plane->configure(settings));
  REQUIRE(count(ADIT_CMD_SET_DEVICE) == 1);
  {
    const Bytes first = module->sent(ADIT_CMD_SET_DEVICE).back();
    const auto device = netlink::Attributes(first).nest(ADIT_A_DEVICE);
    CHECK(device->u16(ADIT_A_DEVICE_LISTEN_PORT) == 51820);
    CHECK(device->has(ADIT_A_DEVICE_MAC1_KEY));
    CHECK_FALSE(device->has(ADIT_A_DEVICE_FWMARK));
    CHECK_FALSE(device->has(ADIT_A_DEVICE_BIND_ADDRESS));
    CHECK_FALSE(device->has(ADIT_A_DEVICE_CLAIM));
  }
  CHECK(links.list[0].up);
  REQUIRE(plane->configure(settings));
  CHECK(count(ADIT_CMD_SET_DEVICE) == 1);
  settings.firewallMark = 3;
  REQUIRE(plane->configure(settings));
  CHECK(module->sent(ADIT_CMD_SET_DEVICE).back() ==
        kIfindex + nest(ADIT_A_DEVICE, u32(ADIT_A_DEVICE_FWMARK, 3)));
}

TEST_CASE_METHOD(Fixture, "kernel plane: a port that the system chose is kept") {
  open();
  DeviceSettings settings;
  REQUIRE(plane->configure(settings));
  CHECK(count(ADIT_CMD_SET_DEVICE) == 0);
  CHECK(links.list[0].up);
  device(u16(ADIT_A_DEVICE_LISTEN_PORT, 40000));
  CHECK(plane->deviceStats().listenPort == 40000);
  settings.listenPort = 40000;
  REQUIRE(plane->configure(settings));
  CHECK(count(ADIT_CMD_SET_DEVICE) == 0);
  settings.listenPort = 0;
  REQUIRE(plane->configure(settings));
  CHECK(module->sent(ADIT_CMD_SET_DEVICE).back() ==
        kIfindex + nest(ADIT_A_DEVICE, u16(ADIT_A_DEVICE_LISTEN_PORT, 0)));
}

TEST_CASE_METHOD(Fixture, "kernel plane: a taken port is named, and the old settings stay") {
  open();
  DeviceSettings settings;
  settings.listenPort = 51820;
  links.upError = {"set adit0 up: Address already in use", EADDRINUSE};
  const auto first = plane->configure(settings);
  REQUIRE_FALSE(first);
  CHECK_THAT(first.error().message, Catch::Contains("UDP port 51820 is in use by another program"));
  links.upError = {};
  REQUIRE(plane->configure(settings));
  settings.listenPort = 51821;
  refuse(ADIT_CMD_SET_DEVICE, EADDRINUSE);
  const auto taken = plane->configure(settings);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == EADDRINUSE);
  CHECK_THAT(taken.error().message, Catch::Contains("UDP port 51821"));
  module->changes.clear();
  REQUIRE(plane->configure(settings));
  CHECK(count(ADIT_CMD_SET_DEVICE) == 1);
}

TEST_CASE_METHOD(Fixture, "kernel plane: only what changed of a peer is sent") {
  open();
  PeerSettings peer = settings(3, {"10.0.0.0/24", "10.0.1.0/24"});
  REQUIRE(plane->setPeer(peer));
  REQUIRE(count(ADIT_CMD_SET_PEER) == 1);
  std::ranges::reverse(peer.allowedIps);
  REQUIRE(plane->setPeer(peer));
  CHECK(count(ADIT_CMD_SET_PEER) == 1);
  peer.persistentKeepalive = 20;
  REQUIRE(plane->setPeer(peer));
  CHECK(module->sent(ADIT_CMD_SET_PEER).back() ==
        kIfindex + nest(ADIT_A_PEER,
                        u64(ADIT_A_PEER_ID, 3) + attr(ADIT_A_PEER_PUBLIC_KEY, filled(3)) +
                            u32(ADIT_A_PEER_FLAGS, 0) + u16(ADIT_A_PEER_PERSISTENT_KEEPALIVE, 20)));
  peer.roam = false;
  REQUIRE(plane->setPeer(peer));
  CHECK(count(ADIT_CMD_SET_PEER) == 3);
  peer.publicKey = keyOf(99);
  CHECK_FALSE(plane->setPeer(peer));
  CHECK(count(ADIT_CMD_SET_PEER) == 3);
}

TEST_CASE_METHOD(Fixture, "kernel plane: a prefix that moved to another peer is known to have") {
  open();
  REQUIRE(plane->setPeer(settings(3, {"10.0.0.0/24", "10.0.1.0/24"})));
  REQUIRE(plane->setPeer(settings(4, {"10.0.1.0/24"})));
  CHECK(count(ADIT_CMD_SET_PEER) == 2);
  REQUIRE(plane->setPeer(settings(3, {"10.0.0.0/24"})));
  CHECK(count(ADIT_CMD_SET_PEER) == 2);
  REQUIRE(plane->setPeer(settings(3, {"10.0.0.0/24", "10.0.1.0/24"})));
  CHECK(count(ADIT_CMD_SET_PEER) == 3);
}

TEST_CASE_METHOD(Fixture, "kernel plane: after a change that failed half-way everything is sent") {
  open();
  REQUIRE(plane->setPeer(settings(3, {"10.0.0.0/24"})));
  refuse(ADIT_CMD_SET_PEER, ENOMEM, "no memory for ADIT_A_PEER_ALLOWED_IPS");
  const auto failed = plane->setPeer(settings(3, {"10.0.1.0/24"}));
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message, Catch::Contains("no memory for ADIT_A_PEER_ALLOWED_IPS"));
  REQUIRE(plane->setPeer(settings(3, {"10.0.0.0/24"})));
  const Bytes last = module->sent(ADIT_CMD_SET_PEER).back();
  const auto peer = netlink::Attributes(last).nest(ADIT_A_PEER);
  CHECK(peer->has(ADIT_A_PEER_ALLOWED_IPS));
  CHECK(peer->has(ADIT_A_PEER_PERSISTENT_KEEPALIVE));
}

TEST_CASE_METHOD(Fixture, "kernel plane: changes whose acknowledgement is lost are sent again") {
  open();
  refuse(ADIT_CMD_SET_PEER, ENOBUFS);
  REQUIRE(plane->setPeer(settings(3, {})));
  CHECK(count(ADIT_CMD_SET_PEER) == 2);
  refuse(ADIT_CMD_DEL_KEYS, ENOBUFS);
  REQUIRE(plane->dropKeys(3));
  CHECK(count(ADIT_CMD_DEL_KEYS) == 2);
  refuse(ADIT_CMD_DEL_PEER, ENOBUFS);
  refuse(ADIT_CMD_DEL_PEER, ENOENT);
  REQUIRE(plane->removePeer(3));
  for (int i = 0; i < 3; ++i) {
    refuse(ADIT_CMD_SET_PEER, ENOBUFS);
  }
  CHECK(plane->setPeer(settings(4, {})).error().code == ENOBUFS);
}

TEST_CASE_METHOD(Fixture, "kernel plane: keys are sent once, also when the answer is lost") {
  open();
  REQUIRE(plane->setPeer(settings(3, {})));
  refuse(ADIT_CMD_NEW_KEY, ENOBUFS);
  const auto lost = plane->installKeys(3, keyOf(3), keysFor(KeySlot::Current, 1));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ENOBUFS);
  CHECK(count(ADIT_CMD_NEW_KEY) == 1);
  refuse(ADIT_CMD_NEW_KEY, EEXIST, "ADIT_A_KEY_LOCAL_INDEX is in use");
  const auto used = plane->installKeys(3, keyOf(3), keysFor(KeySlot::Current, 2));
  REQUIRE_FALSE(used);
  CHECK_THAT(used.error().message, Catch::Contains("ADIT_A_KEY_LOCAL_INDEX is in use"));
  CHECK(count(ADIT_CMD_NEW_KEY) == 2);
  REQUIRE(plane->installKeys(3, keyOf(3), keysFor(KeySlot::Current, 3)));
  CHECK_FALSE(plane->installKeys(4, keyOf(4), keysFor(KeySlot::Current, 4)));
  CHECK(count(ADIT_CMD_NEW_KEY) == 3);
}

TEST_CASE_METHOD(Fixture, "kernel plane: datagrams are sent once") {
  open();
  REQUIRE(plane->setPeer(settings(3, {})));
  const Endpoint endpoint{*IpAddress::parse("192.0.2.1"), 5, 0};
  refuse(ADIT_CMD_SEND_HANDSHAKE, ENETUNREACH, "no route");
  const auto failed = plane->sendHandshake(Bytes{1}, endpoint, std::nullopt);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "cannot send to 192.0.2.1:5: no route");
  refuse(ADIT_CMD_SEND_CONTROL, ENOKEY);
  plane->sendControl(3, Bytes{1});
  CHECK(count(ADIT_CMD_SEND_HANDSHAKE) == 1);
  CHECK(count(ADIT_CMD_SEND_CONTROL) == 1);
  plane->dropStaged(3);
  CHECK(count(ADIT_CMD_DROP_STAGED) == 1);
}

TEST_CASE_METHOD(Fixture, "kernel plane: an endpoint or a mark leaves the rest of a peer alone") {
  open();
  PeerSettings peer = settings(3, {});
  peer.roam = false;
  REQUIRE(plane->setPeer(peer));
  module->changes.clear();
  REQUIRE(plane->setEndpoint(3, {*IpAddress::parse("192.0.2.1"), 5, 0}, std::nullopt));
  REQUIRE(plane->keepMark(3, Bytes{1, 2}));
  const Bytes start = u64(ADIT_A_PEER_ID, 3) +
                      u32(ADIT_A_PEER_FLAGS, ADIT_PEER_F_NO_ROAM | ADIT_PEER_F_UPDATE_ONLY);
  const Bytes endpoint = nest(ADIT_A_PEER_ENDPOINT, attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 1}) +
                                                        u16(ADIT_A_ENDPOINT_PORT, 5));
  CHECK(module->sent(ADIT_CMD_SET_PEER) ==
        std::vector<Bytes>{kIfindex + nest(ADIT_A_PEER, start + endpoint),
                           kIfindex + nest(ADIT_A_PEER, start + attr(ADIT_A_PEER_COOKIE, {1, 2}))});
  CHECK_FALSE(plane->setEndpoint(4, {*IpAddress::parse("192.0.2.1"), 5, 0}, std::nullopt));
  CHECK_FALSE(plane->keepMark(4, Bytes{1}));
}

TEST_CASE_METHOD(Fixture, "kernel plane: statistics come from the module each time") {
  open();
  module->peers = {peerMessage(4, 4, "", Session{1, 900s, false}, 5)};
  const auto stats = plane->peerStats();
  REQUIRE(stats.size() == 1);
  CHECK(stats[0].suite == crypto::Suite::Aes256Gcm);
  module->failures[ADIT_CMD_GET_PEER] = {"no", ENOMEM};
  CHECK(plane->peerStats().empty());
}

TEST_CASE_METHOD(Fixture, "kernel plane: events reach the sink, a bounded number at a time") {
  open();
  const Bytes endpoint = nest(ADIT_A_PEER_ENDPOINT, attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 1}) +
                                                        u16(ADIT_A_ENDPOINT_PORT, 5));
  module->events = {peerEvent(ADIT_CMD_EVENT_NEED_HANDSHAKE, 3,
                              u8(ADIT_A_HANDSHAKE_REASON, ADIT_HANDSHAKE_KEEPALIVE)),
                    peerEvent(ADIT_CMD_EVENT_KEY_CONFIRMED, 3),
                    peerEvent(ADIT_CMD_EVENT_KEYS_EXPIRED, 3),
                    {ADIT_CMD_EVENT_ENDPOINT_MOVED,
                     kIfindex + nest(ADIT_A_PEER, u64(ADIT_A_PEER_ID, 3) + endpoint)},
                    peerEvent(ADIT_CMD_EVENT_CONTROL, 3, attr(ADIT_A_PAYLOAD, {1, 2})),
                    {ADIT_CMD_EVENT_HANDSHAKE,
                     kIfindex + attr(ADIT_A_PAYLOAD, {4, 5}) +
                         nest(ADIT_A_ENDPOINT, attr(ADIT_A_ENDPOINT_ADDRESS, {192, 0, 2, 1}) +
                                                   u16(ADIT_A_ENDPOINT_PORT, 5))}};
  plane->dispatch(events);
  CHECK(events.needed == std::vector{HandshakeReason::Keepalive});
  CHECK(events.confirmed == 1);
  CHECK(events.expired == 1);
  CHECK(events.moves.size() == 1);
  CHECK(events.controls == std::vector<Bytes>{{1, 2}});
  REQUIRE(events.handshakes.size() == 1);
  CHECK(events.handshakes[0].datagram == Bytes{4, 5});

  for (int i = 0; i < 1000; ++i) {
    module->events.push_back(peerEvent(ADIT_CMD_EVENT_KEY_CONFIRMED, 3));
  }
  plane->dispatch(events);
  CHECK(events.confirmed < 300);
  CHECK(module->events.size() > 700);
}

TEST_CASE_METHOD(Fixture, "kernel plane: after lost events the dump says what happened") {
  open();
  for (const PeerId id : {3, 4, 5, 6}) {
    REQUIRE(plane->setPeer(settings(id, {})));
  }
  REQUIRE(plane->installKeys(3, keyOf(3), keysFor(KeySlot::Current, 1)));
  REQUIRE(plane->setEndpoint(3, {*IpAddress::parse("192.0.2.1"), 5, 0}, std::nullopt));
  REQUIRE(plane->installKeys(4, keyOf(4), keysFor(KeySlot::Next, 2)));
  REQUIRE(plane->installKeys(5, keyOf(5), keysFor(KeySlot::Next, 3)));
  const auto dump = [&](const std::optional<Session>& three, const std::optional<Session>& four,
                        unsigned port) {
    module->peers = {peerMessage(3, 3, "", three, port), peerMessage(4, 4, "", four),
                     peerMessage(5, 5), peerMessage(6, 6), peerMessage(77, 77)};
  };

  SECTION("nothing is told of what is as it was") {
    // 4 still has an older session than the key that waits.
    dump(Session{0, 1000s, true}, Session{0, 900s, false}, 5);
    module->lost = true;
    plane->dispatch(events);
    CHECK(events.confirmed == 0);
    CHECK(events.expired == 0);
    CHECK(events.moves.empty());
  }
  SECTION("a confirmed key") {
    dump(Session{0, 1000s, true}, Session{0, 1000s, false}, 5);
    module->lost = true;
    plane->dispatch(events);
    CHECK(events.confirmed == 1);
    module->lost = true;
    plane->dispatch(events);
    CHECK(events.confirmed == 1);
  }
  SECTION("expired keys") {
    dump(std::nullopt, std::nullopt, 5);
    module->lost = true;
    plane->dispatch(events);
    CHECK(events.expired == 1);
    module->lost = true;
    plane->dispatch(events);
    CHECK(events.expired == 1);
  }
  SECTION("a moved endpoint") {
    dump(Session{0, 1000s, true}, std::nullopt, 6);
    module->lost = true;
    plane->dispatch(events);
    REQUIRE(events.moves.size() == 1);
    CHECK(events.moves[0].port == 6);
  }
  SECTION("a dump that fails is made again with the next events") {
    dump(Session{0, 1000s, true}, Session{0, 1000s, false}, 5);
    module->lost = true;
    module->failures[ADIT_CMD_GET_PEER] = {"no", ENOMEM};
    plane->dispatch(events);
    CHECK(events.confirmed == 0);
    module->failures.clear();
    plane->dispatch(events);
    CHECK(events.confirmed == 1);
  }
}

TEST_CASE_METHOD(Fixture, "kernel plane: what an event has told is not told again after a loss") {
  open();
  REQUIRE(plane->setPeer(settings(4, {})));
  REQUIRE(plane->installKeys(4, keyOf(4), keysFor(KeySlot::Next, 2)));
  module->peers = {peerMessage(4, 4, "", Session{0, 1000s, false})};
  module->events = {peerEvent(ADIT_CMD_EVENT_KEY_CONFIRMED, 4)};
  module->lost = true;
  plane->dispatch(events);
  CHECK(events.confirmed == 1);
  module->peers = {peerMessage(4, 4)};
  module->events = {peerEvent(ADIT_CMD_EVENT_KEYS_EXPIRED, 4)};
  module->lost = true;
  plane->dispatch(events);
  CHECK(events.expired == 1);
}

TEST_CASE("kernel plane: a module too old or too new is told as that") {
  CHECK(dataplane::kernel::versionMismatch(0).message ==
        "adit.ko speaks version 0 of its interface, too old for this adit, which knows 1 to 2");
  CHECK_THAT(dataplane::kernel::versionMismatch(3).message, Catch::Contains("too new"));
  CHECK(dataplane::kernel::versionMismatch(3).code == EPROTONOSUPPORT);
  CHECK(dataplane::kernel::kOldestVersion <= ADIT_GENL_VERSION);
  // The module of the next release.
  CHECK(dataplane::kernel::kNewestVersion == ADIT_GENL_VERSION + 1);
}
