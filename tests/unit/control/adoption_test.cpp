// A daemon that finds the peers of a killed one in the data plane, with their sessions running.
#include <sys/eventfd.h>

#include <catch2/catch.hpp>

#include "control/device.hpp"
#include "control/peer_mark.hpp"
#include "fake_kernel.hpp"
#include "scratch.hpp"

using namespace adit;
using namespace adit::control;
using namespace std::chrono_literals;

namespace {

using dataplane::PeerSettings;
using noise::PeerId;

/// Remembers what it was told, and has what a test gave it.
class KeepingPlane final : public dataplane::DataPlane {
 public:
  dataplane::Inheritance kept;
  std::vector<PeerSettings> set;
  std::vector<PeerId> removed;
  std::vector<PeerId> keysDropped;
  std::vector<std::pair<PeerId, Endpoint>> endpoints;
  std::map<PeerId, std::vector<std::uint8_t>> marks;
  std::vector<dataplane::PeerStats> stats;
  int handshakesSent = 0;
  UniqueFd events{::eventfd(0, EFD_CLOEXEC)};

  void destroyInterface() override {}
  [[nodiscard]] std::string_view name() const override { return "kernel"; }
  [[nodiscard]] std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds() const override {
    return {100, 100, 100};
  }
  [[nodiscard]] const dataplane::Inheritance& inheritance() const override { return kept; }
  Result<void> configure(const dataplane::DeviceSettings&) override { return {}; }
  Result<void> setPeer(const PeerSettings& settings) override {
    // Removed only once the configuration is in force.
    CHECK(removed.empty());
    set.push_back(settings);
    return {};
  }
  Result<void> removePeer(PeerId peer) override {
    removed.push_back(peer);
    return {};
  }
  Result<void> setEndpoint(PeerId peer, const Endpoint& endpoint,
                           const std::optional<LocalAddress>&) override {
    endpoints.emplace_back(peer, endpoint);
    return {};
  }
  Result<void> keepMark(PeerId peer, std::span<const std::uint8_t> mark) override {
    marks[peer] = {mark.begin(), mark.end()};
    return {};
  }
  Result<void> installKeys(PeerId, const crypto::PublicKey&, const noise::SessionKeys&) override {
    return {};
  }
  Result<void> dropKeys(PeerId peer) override {
    keysDropped.push_back(peer);
    return {};
  }
  void dropStaged(PeerId) override {}
  void sendControl(PeerId, std::span<const std::uint8_t>) override {}
  Result<void> sendHandshake(std::span<const std::uint8_t>, const Endpoint&,
                             const std::optional<LocalAddress>&) override {
    ++handshakesSent;
    return {};
  }
  [[nodiscard]] std::vector<dataplane::PeerStats> peerStats() const override { return stats; }
  [[nodiscard]] dataplane::DeviceStats deviceStats() const override { return {51820, {}}; }
  [[nodiscard]] int eventDescriptor() const override { return events.get(); }
  void dispatch(dataplane::EventSink& sink) override {
    eventfd_t count = 0;
    ::eventfd_read(events.get(), &count);
    if (whenDispatched) whenDispatched(sink);
  }
  std::function<void(dataplane::EventSink&)> whenDispatched;
};

class NoResolver final : public Resolver {
 public:
  void resolve(const config::EndpointName&, std::function<void(Resolution)>) override {}
};

struct TestClock final : Clock {
  BootTime time = 10000s;
  [[nodiscard]] BootTime now() const override { return time; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return time + 1'000'000s; }
};

crypto::PrivateKey privateKey(std::uint8_t value) {
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(value);
  return crypto::PrivateKey(bytes);
}

constexpr std::uint8_t kOwn = 1;

struct Fixture {
  std::filesystem::path scratch = testing::makeScratch("adit-adoption");
  TestClock clock;
  crypto::SystemRandom random;
  EventLoop loop;
  FakeRouting routing;
  FakeFirewall firewall;
  FakePrivileged privileged;
  NoResolver resolver;
  KeepingPlane plane;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Device> device;
  config::Config config;

  Fixture() {
    std::filesystem::create_directories(scratch / "durable");
    std::filesystem::create_directories(scratch / "runtime");
    state = std::make_unique<StateStore>(clock, scratch / "durable", scratch / "runtime");
    config.interface.privateKey = privateKey(kOwn);
    config.interface.mtu = 1420;
    plane.kept.publicKey = privateKey(kOwn).publicKey();
    plane.kept.nextId = 21;
  }
  ~Fixture() { std::filesystem::remove_all(scratch); }

  void configurePeer(std::uint8_t key, const std::string& endpoint = "") {
    config::PeerConfig& peer = config.peers.emplace_back();
    peer.publicKey = privateKey(key).publicKey();
    if (!endpoint.empty()) {
      config::EndpointName name;
      const Endpoint parsed = *Endpoint::parse(endpoint);
      name.host = parsed.address.toString();
      name.port = parsed.port;
      name.literal = parsed.address;
      peer.endpoint = name;
    }
  }
  dataplane::KeptPeer& keepPeer(PeerId id, std::uint8_t key, std::optional<BootTime> session = {}) {
    dataplane::KeptPeer& peer = plane.kept.peers.emplace_back();
    peer.publicKey = privateKey(key).publicKey();
    peer.stats.id = id;
    peer.stats.endpoint = *Endpoint::parse("198.51.100.9:4242");
    if (session) {
      peer.stats.suite = crypto::Suite::Aes256Gcm;
      peer.stats.sessionStart = *session;
      peer.stats.sessionInitiator = true;
    }
    return peer;
  }
  void start() {
    device = std::make_unique<Device>(
        DeviceParts{loop, clock, random, privileged, plane, routing, firewall, resolver, *state},
        DeviceOptions{.name = "adit0",
                      .backendReason = {},
                      .undoFile = scratch / "undo.json",
                      .adopted = true,
                      .timing = {},
                      .endpointTiming = {},
                      .check = [](const config::Config&) { return Result<void>{}; },
                      .finished = [] {}},
        UndoRecord{});
    config::Outcome outcome;
    outcome.config = config;
    const auto started = device->start(outcome);
    INFO((started ? "" : started.error().message));
    REQUIRE(started);
  }
  PeerSnapshot snapshot(std::uint8_t key) const {
    for (const PeerSnapshot& peer : device->snapshot().peers) {
      if (peer.publicKey == privateKey(key).publicKey()) return peer;
    }
    FAIL("no such peer");
    return {};
  }
  void dispatch(const std::function<void(dataplane::EventSink&)>& body) {
    bool done = false;
    plane.whenDispatched = [&](dataplane::EventSink& sink) {
      body(sink);
      done = true;
    };
    ::eventfd_write(plane.events.get(), 1);
    loop.pumpUntil(done);
    plane.whenDispatched = nullptr;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "adoption: a running session goes on, under the peer's old id") {
  configurePeer(2, "192.0.2.7:51820");
  configurePeer(3, "192.0.2.8:51820");
  config.peers[0].persistentKeepalive = 25;
  keepPeer(20, 2, 9990s);
  start();
  // Nothing is sent to the one; the other, which has no session, is greeted.
  CHECK(plane.handshakesSent == 1);
  REQUIRE(plane.set.size() == 2);
  CHECK(plane.set[0].id == 20);
  CHECK(plane.set[1].id == 21);
  CHECK(plane.keysDropped.empty());
  CHECK(plane.removed.empty());
  CHECK(snapshot(2).lastHandshake == 9990s + 1'000'000s);
  // The place where the session works, and not the one in the file.
  CHECK(snapshot(2).endpoint == *Endpoint::parse("198.51.100.9:4242"));
  CHECK(plane.endpoints ==
        std::vector<std::pair<PeerId, Endpoint>>{{21, *Endpoint::parse("192.0.2.8:51820")}});
}

TEST_CASE_METHOD(Fixture, "adoption: a peer that is configured no more goes, at the end") {
  configurePeer(2);
  keepPeer(20, 2, 9990s);
  keepPeer(19, 9, 9990s);
  start();
  CHECK(plane.removed == std::vector<PeerId>{19});
  CHECK(device->snapshot().peers.size() == 1);
}

TEST_CASE_METHOD(Fixture, "adoption: sessions of another key of ours are worth nothing") {
  plane.kept.publicKey = privateKey(77).publicKey();
  configurePeer(2);
  keepPeer(20, 2, 9990s);
  start();
  CHECK(plane.keysDropped == std::vector<PeerId>{20});
  CHECK(plane.handshakesSent == 1);
  CHECK(snapshot(2).lastHandshake == 0s);
}

TEST_CASE_METHOD(Fixture, "adoption: a session of a suite that is refused now is replaced") {
  config.interface.cipher = crypto::Suite::ChaCha20Poly1305;
  configurePeer(2);
  keepPeer(20, 2, 9990s);
  start();
  CHECK(plane.keysDropped == std::vector<PeerId>{20});
  CHECK(plane.handshakesSent == 1);
}

TEST_CASE_METHOD(Fixture, "adoption: a session too old to be used is made anew") {
  configurePeer(2);
  keepPeer(20, 2, clock.time - 181s);
  start();
  CHECK(plane.handshakesSent == 1);
}

TEST_CASE_METHOD(Fixture, "adoption: the endpoint of a peer that may not roam is the file's") {
  configurePeer(2, "192.0.2.7:51820");
  config.peers[0].roam = false;
  keepPeer(20, 2, 9990s);
  start();
  CHECK(snapshot(2).endpoint == *Endpoint::parse("192.0.2.7:51820"));
  CHECK(plane.endpoints.size() == 1);
}

TEST_CASE_METHOD(Fixture, "adoption: the greater of both timestamps counts") {
  const noise::Tai64n older{10, 0};
  const noise::Tai64n newer{20, 0};
  const auto [kept, stored] = GENERATE_COPY(std::pair{older, newer}, std::pair{newer, older});
  configurePeer(2);
  const auto mark = markOfTimestamp(kept);
  keepPeer(20, 2, 9990s).mark = {mark.begin(), mark.end()};
  StoredPeer before;
  before.greatestTimestamp = stored;
  REQUIRE(state->setPeer(privateKey(2).publicKey(), before));
  start();
  CHECK(state->peer(privateKey(2).publicKey()).greatestTimestamp == newer);
}

TEST_CASE_METHOD(Fixture, "adoption: a peer that is removed and added again has a new id") {
  configurePeer(2);
  keepPeer(20, 2, 9990s);
  start();
  DeviceChange change;
  PeerChange& peer = change.peers.emplace_back();
  peer.publicKey = privateKey(2).publicKey();
  peer.remove = true;
  REQUIRE(device->apply(change));
  CHECK(plane.removed == std::vector<PeerId>{20});
  plane.removed.clear();
  peer.remove = false;
  REQUIRE(device->apply(change));
  CHECK(plane.set.back().id == 21);
}

TEST_CASE_METHOD(Fixture, "adoption: a key that the former daemon installed is confirmed later") {
  configurePeer(2);
  keepPeer(20, 2, 9900s);
  start();
  dataplane::PeerStats now;
  now.id = 20;
  now.suite = crypto::Suite::Aes128Gcm;
  now.sessionStart = 9995s;
  plane.stats = {now};
  dispatch([](dataplane::EventSink& sink) { sink.keyConfirmed(20); });
  CHECK(snapshot(2).lastHandshake == 9995s + 1'000'000s);
  CHECK(plane.keysDropped.empty());
}

TEST_CASE("adoption: marks of peers") {
  const noise::Tai64n timestamp{0x4000000012345678, 987654321};
  const PeerMark mark = markOfTimestamp(timestamp);
  CHECK(mark.size() <= dataplane::kMaxMark);
  CHECK(timestampOfMark(mark) == timestamp);
  CHECK_FALSE(timestampOfMark(std::span(mark).first(12)));
  CHECK_FALSE(timestampOfMark({}));
  PeerMark newer = mark;
  newer[0] = 2;
  CHECK_FALSE(timestampOfMark(newer));
}
