// The daemon's side of an enrolment: a device on a data plane that remembers, and real files.
#include <sys/eventfd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "control/device.hpp"
#include "control/device_enrol_file.hpp"
#include "enrol/keys.hpp"
#include "enrol/messages.hpp"
#include "fake_kernel.hpp"
#include "noise/fakes.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using enrol::Verdict;
using noise::PeerId;
using noise::test::countingKey;

namespace {

/// Remembers its peers and what it was told to send.
class MemoryPlane final : public dataplane::DataPlane {
 public:
  std::map<PeerId, dataplane::PeerSettings> peers;
  std::vector<std::pair<PeerId, std::vector<std::uint8_t>>> sent;
  UniqueFd events{::eventfd(0, EFD_CLOEXEC)};
  std::function<void(dataplane::EventSink&)> whenDispatched;
  int handshakesSent = 0;
  unsigned marks = 0;

  void destroyInterface() override {}
  [[nodiscard]] std::string_view name() const override { return "userspace"; }
  [[nodiscard]] std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds() const override {
    return {100, 100, 100};
  }
  Result<void> configure(const dataplane::DeviceSettings&) override { return {}; }
  Result<void> setPeer(const dataplane::PeerSettings& settings) override {
    CHECK_FALSE(dispatching_);
    peers[settings.id] = settings;
    return {};
  }
  Result<void> removePeer(PeerId peer) override {
    peers.erase(peer);
    return {};
  }
  Result<void> setEndpoint(PeerId, const Endpoint&, const std::optional<LocalAddress>&) override {
    return {};
  }
  Result<void> keepMark(PeerId, std::span<const std::uint8_t>) override {
    ++marks;
    return {};
  }
  Result<void> installKeys(PeerId, const crypto::PublicKey&, const noise::SessionKeys&) override {
    return {};
  }
  Result<void> dropKeys(PeerId) override { return {}; }
  void dropStaged(PeerId) override {}
  void sendControl(PeerId peer, std::span<const std::uint8_t> message) override {
    sent.emplace_back(peer, std::vector(message.begin(), message.end()));
  }
  Result<void> sendHandshake(std::span<const std::uint8_t>, const Endpoint&,
                             const std::optional<LocalAddress>&) override {
    ++handshakesSent;
    return {};
  }
  [[nodiscard]] std::vector<dataplane::PeerStats> peerStats() const override { return {}; }
  [[nodiscard]] dataplane::DeviceStats deviceStats() const override { return {51820, {}}; }
  [[nodiscard]] int eventDescriptor() const override { return events.get(); }
  void dispatch(dataplane::EventSink& sink) override {
    eventfd_t count = 0;
    ::eventfd_read(events.get(), &count);
    dispatching_ = true;
    if (whenDispatched) whenDispatched(sink);
    dispatching_ = false;
  }

 private:
  bool dispatching_ = false;
};

class NoResolver final : public Resolver {
 public:
  void resolve(const config::EndpointName&, std::function<void(Resolution)>) override {}
};

struct TestClock final : Clock {
  std::chrono::nanoseconds real = SystemClock().realTime();
  [[nodiscard]] BootTime now() const override { return SystemClock().now(); }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return real; }
};

struct Server {
  ScratchDirectory scratch;
  QuietLog quiet;
  TestClock clock;
  crypto::SystemRandom random;
  EventLoop loop;
  FakeRouting routing;
  FakeFirewall firewall;
  NoResolver resolver;
  MemoryPlane plane;
  crypto::PrivateKey key = countingKey(1);
  Secret<32> secret{std::array<std::uint8_t, 32>{7}};
  enrol::EnrolmentKeys enrolment = enrol::enrolmentKeys(secret, key.publicKey());
  DirectPrivileged privileged{"adit0", scratch.file("adit0.conf"), system()};
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Device> device;

  Server() {
    scratch.write("adit0.conf", "[Interface]\nPrivateKey = " + key.toBase64() +
                                    "\nAddress = 10.77.3.1/24\nListenPort = 51820\nMTU = 1400\n");
    invite("2099-01-01T00:00:00Z");
    std::filesystem::create_directories(scratch.path() / "durable");
    std::filesystem::create_directories(scratch.path() / "runtime");
    start();
  }

  PrivilegedSystem system() const {
    PrivilegedSystem result;
    result.sysctlRoot = scratch.file("sys");
    return result;
  }
  void invite(const std::string& expires) const {
    scratch.write("adit0.d/peer-nas.conf",
                  fmt::format("[Invitation]\nName = nas\nPublicKey = {}\nPresharedKey = {}\n"
                              "Address = 10.77.3.2/24\nAllowMaps = tcp/8000-9000\nExpires = {}\n",
                              enrolment.privateKey.publicKey().toBase64(),
                              crypto::presharedKeyToBase64(enrolment.presharedKey), expires));
    std::filesystem::permissions(scratch.file("adit0.d/peer-nas.conf"),
                                 std::filesystem::perms{0600});
  }
  /// A new daemon, on a data plane that lost its peers.
  void start() {
    device.reset();
    plane.peers.clear();
    state =
        std::make_unique<StateStore>(clock, scratch.path() / "durable", scratch.path() / "runtime");
    device = std::make_unique<Device>(
        DeviceParts{loop, clock, random, privileged, plane, routing, firewall, resolver, *state},
        DeviceOptions{.name = "adit0",
                      .backendReason = {},
                      .undoFile = scratch.path() / "undo.json",
                      .timing = {},
                      .endpointTiming = {},
                      .check = [](const config::Config&) { return Result<void>{}; },
                      .finished = [] {}},
        UndoRecord{});
    const auto started = device->start(privileged.loadConfig());
    INFO((started ? "" : started.error().message));
    REQUIRE(started);
  }

  [[nodiscard]] const dataplane::PeerSettings* peerWith(const crypto::PublicKey& wanted) const {
    for (const auto& [id, peer] : plane.peers) {
      if (peer.publicKey == wanted) return &peer;
    }
    return nullptr;
  }
  [[nodiscard]] const dataplane::PeerSettings* enrolmentPeer() const {
    return peerWith(enrolment.privateKey.publicKey());
  }

  [[nodiscard]] enrol::JoinKeys keysOf(const crypto::PrivateKey& joining) const {
    return *enrol::joinKeys(
        joining, key.publicKey(),
        {enrolment.privateKey.publicKey(), key.publicKey(), joining.publicKey()});
  }
  void hear(PeerId from, const std::vector<std::uint8_t>& message, unsigned copies = 1) {
    plane.sent.clear();
    dispatch([&](dataplane::EventSink& sink) {
      for (unsigned i = 0; i < copies; ++i) {
        sink.control(from, message);
      }
    });
  }
  /// The data plane hands over events, and what they lead to is done.
  void dispatch(const std::function<void(dataplane::EventSink&)>& body) {
    bool done = false;
    plane.whenDispatched = [&](dataplane::EventSink& sink) {
      body(sink);
      loop.post([&] { done = true; });
    };
    ::eventfd_write(plane.events.get(), 1);
    loop.pumpUntil(done);
    plane.whenDispatched = nullptr;
  }
  /// What the server answers to a machine with that key; nothing where it is silent.
  std::optional<enrol::Answer> join(const crypto::PrivateKey& joining) {
    REQUIRE(enrolmentPeer() != nullptr);
    hear(enrolmentPeer()->id, enrol::encodeRequest(joining.publicKey(), keysOf(joining)));
    if (plane.sent.size() != 1) return std::nullopt;
    return enrol::decodeAnswer(plane.sent.front().second, keysOf(joining));
  }
};

}  // namespace

TEST_CASE_METHOD(Server, "enrolment peer: carries nothing and is shown nowhere", "[enrol]") {
  REQUIRE(plane.peers.size() == 1);
  CHECK(enrolmentPeer()->allowedIps.empty());
  CHECK(enrolmentPeer()->persistentKeepalive == 0);
  CHECK(device->snapshot().peers.empty());
  DeviceChange change;
  change.replacePeers = true;
  REQUIRE(device->apply(change));
  PeerChange& peer = change.peers.emplace_back();
  peer.publicKey = enrolment.privateKey.publicKey();
  peer.addAllowedIps = {*Prefix::parse("0.0.0.0/0")};
  const auto remarks = device->apply(change);
  REQUIRE(remarks);
  CHECK_THAT(remarks->front(), Contains("cannot be changed"));
  CHECK(enrolmentPeer()->allowedIps.empty());
  const auto notes = device->reload();
  REQUIRE(notes);
  CHECK(std::ranges::none_of(*notes, [](const std::string& note) {
    return note.find("peer") != std::string::npos || note.find("nas") != std::string::npos;
  }));
  CHECK(enrolmentPeer() != nullptr);
}

TEST_CASE_METHOD(Server, "join: is bound on disk and in force before the answer", "[enrol]") {
  const crypto::PrivateKey nas = countingKey(40);
  const auto answer = join(nas);
  REQUIRE(answer);
  CHECK(answer->verdict == Verdict::Accepted);
  CHECK(answer->addresses == std::vector{*InterfaceAddress::parse("10.77.3.2/24")});
  CHECK(answer->mtu == 1400);
  CHECK(answer->grants == std::vector<enrol::Grant>{{true, false, 8000, 9000}});
  REQUIRE(peerWith(nas.publicKey()) != nullptr);
  CHECK(peerWith(nas.publicKey())->allowedIps == std::vector{*Prefix::parse("10.77.3.2/32")});
  REQUIRE(device->snapshot().peers.size() == 1);
  CHECK(device->snapshot().peers[0].presharedKey == answer->presharedKey);
  CHECK_THAT(scratch.read("adit0.d/peer-nas.conf"),
             Contains(crypto::presharedKeyToBase64(answer->presharedKey)));
}

TEST_CASE_METHOD(Server, "join: the same key gets the same answer, also after a restart",
                 "[enrol]") {
  const crypto::PrivateKey nas = countingKey(40);
  const auto first = join(nas);
  const auto again = join(nas);
  start();
  const auto later = join(nas);
  REQUIRE(first);
  REQUIRE(again);
  REQUIRE(later);
  CHECK(again->verdict == Verdict::Accepted);
  CHECK(again->presharedKey == first->presharedKey);
  CHECK(later->presharedKey == first->presharedKey);
  CHECK(later->addresses == first->addresses);
}

TEST_CASE_METHOD(Server, "join: another key is refused, counted and told", "[enrol]") {
  REQUIRE(join(countingKey(40)));
  const auto refused = join(countingKey(41));
  REQUIRE(refused);
  CHECK(refused->verdict == Verdict::Taken);
  CHECK(refused->presharedKey.isZero());
  CHECK(peerWith(countingKey(41).publicKey()) == nullptr);
  REQUIRE(join(countingKey(42)));
  const auto warnings = device->snapshot().warnings;
  CHECK(std::ranges::any_of(warnings, [](const std::string& warning) {
    return warning.find("token of nas was used 2 times by another") != std::string::npos;
  }));
}

TEST_CASE_METHOD(Server, "join: what proves nothing is not answered and changes nothing",
                 "[enrol]") {
  const std::string before = scratch.read("adit0.d/peer-nas.conf");
  const crypto::PrivateKey nas = countingKey(40);
  auto message = enrol::encodeRequest(countingKey(41).publicKey(), keysOf(nas));
  hear(enrolmentPeer()->id, message);
  CHECK(plane.sent.empty());
  hear(enrolmentPeer()->id, {});
  hear(enrolmentPeer()->id, {1, 3, 255, 0});
  CHECK(plane.sent.empty());
  CHECK(scratch.read("adit0.d/peer-nas.conf") == before);
}

TEST_CASE_METHOD(Server, "join: an ordinary peer cannot ask", "[enrol]") {
  const crypto::PrivateKey nas = countingKey(40);
  REQUIRE(join(nas));
  const PeerId id = peerWith(nas.publicKey())->id;
  const crypto::PrivateKey other = countingKey(41);
  const auto asPeer = enrol::joinKeys(other, key.publicKey(),
                                      {nas.publicKey(), key.publicKey(), other.publicKey()});
  hear(id, enrol::encodeRequest(other.publicKey(), *asPeer));
  CHECK(plane.sent.empty());
}

TEST_CASE_METHOD(Server, "join: a burst of requests is one piece of work", "[enrol]") {
  const crypto::PrivateKey nas = countingKey(40);
  hear(enrolmentPeer()->id, enrol::encodeRequest(nas.publicKey(), keysOf(nas)), 20);
  CHECK(plane.sent.size() == 1);
}

TEST_CASE_METHOD(Server,
                 "enrolment peer: is never called, and any clock may call once it is confirmed",
                 "[enrol]") {
  const PeerId id = enrolmentPeer()->id;
  const noise::Identity identity(enrolment.privateKey);
  const noise::Remote remote{key.publicKey(),
                             *crypto::x25519(enrolment.privateKey.secret(), key.publicKey()),
                             enrolment.presharedKey};
  const auto called = [&](std::uint64_t seconds) {
    adit_message_initiation message;
    REQUIRE(noise::createInitiation(identity, remote, crypto::Suite::ChaCha20Poly1305, 1,
                                    {seconds, 0}, random, message));
    const std::span bytes(reinterpret_cast<std::uint8_t*>(&message), sizeof message);
    noise::CookieMaker(key.publicKey(), {}).addMacs(bytes, clock.now());
    const int before = plane.handshakesSent;
    dispatch([&](dataplane::EventSink& sink) {
      sink.handshake(bytes, *Endpoint::parse("198.51.100.9:4242"), {}, 0);
    });
    std::this_thread::sleep_for(25ms);  // the least interval between two initiations
    return plane.handshakesSent > before;
  };
  dispatch([&](dataplane::EventSink& sink) {
    sink.endpointMoved(id, *Endpoint::parse("198.51.100.9:4242"));
    sink.needHandshake(id, dataplane::HandshakeReason::NoReply);
  });
  CHECK(plane.handshakesSent == 0);
  CHECK(called(2000));
  CHECK_FALSE(called(1000));
  dispatch([&](dataplane::EventSink& sink) { sink.keyConfirmed(id); });
  CHECK(called(1000));
  CHECK(plane.marks == 0);
  CHECK_FALSE(state->peer(enrolmentPeer()->publicKey).greatestTimestamp);
}

TEST_CASE_METHOD(Server, "invitation: ends when it expires, is revoked or its peer removed",
                 "[enrol]") {
  const crypto::PrivateKey nas = countingKey(40);
  SECTION("expired") {
    clock.real += std::chrono::hours(24 * 36525);
    REQUIRE(device->reload());
    CHECK(enrolmentPeer() == nullptr);
  }
  SECTION("revoked") {
    std::filesystem::remove(scratch.file("adit0.d/peer-nas.conf"));
    const auto verdict = join(nas);
    REQUIRE(verdict);
    CHECK(verdict->verdict == Verdict::Withdrawn);
    REQUIRE(device->reload());
    CHECK(enrolmentPeer() == nullptr);
  }
  SECTION("expired while the daemon has not looked again") {
    invite("2026-01-01T00:00:00Z");
    const auto verdict = join(nas);
    REQUIRE(verdict);
    CHECK(verdict->verdict == Verdict::Expired);
    CHECK(peerWith(nas.publicKey()) == nullptr);
  }
  SECTION("peer removed") {
    REQUIRE(join(nas));
    std::string text = scratch.read("adit0.d/peer-nas.conf");
    text.erase(text.find("[Peer]"));
    scratch.write("adit0.d/peer-nas.conf", text);
    REQUIRE(device->reload());
    CHECK(enrolmentPeer() == nullptr);
    CHECK(plane.peers.empty());
  }
}

TEST_CASE_METHOD(Server, "join: while the files have mistakes the answer is to try again",
                 "[enrol]") {
  const crypto::PrivateKey nas = countingKey(40);
  scratch.write("adit0.d/wrong.conf", "[Peer]\n");
  const auto refused = join(nas);
  REQUIRE(refused);
  CHECK(refused->verdict == Verdict::NotNow);
  std::filesystem::remove(scratch.file("adit0.d/wrong.conf"));
  const auto accepted = join(nas);
  REQUIRE(accepted);
  CHECK(accepted->verdict == Verdict::Accepted);
}
