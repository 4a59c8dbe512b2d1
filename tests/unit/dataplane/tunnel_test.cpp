// Two data planes in two namespaces, joined by a veth pair:
//
//   namespace a                                              namespace b
//   10.8.0.1 adit0 ── 10.9.0.1 veth ════════════ veth 10.9.0.2 ── adit0 10.8.0.2

#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <thread>

#include "dataplane/user/user.hpp"
#include "namespaces.hpp"
#include "plane_events.hpp"
#include "sessions.hpp"

using namespace adit;
using namespace adit::dataplane;
using namespace std::chrono_literals;

namespace {

constexpr PeerId kPeer = 1;
constexpr std::uint16_t kPort = 51820;

struct Side {
  test::Namespace space;
  std::unique_ptr<DataPlane> plane;
  test::Events events;

  void start(const dataplane::user::OffloadSwitches& offload, char number, bool v6,
             std::size_t lanes) {
    const test::Namespace::Visit visit(space);
    const char other = number == '1' ? '2' : '1';
    dataplane::user::UserOptions options;
    options.interface = "adit0";
    options.offload = offload;
    options.lanes = lanes;
    auto made = dataplane::user::createUserDataPlane(options);
    REQUIRE(made);
    plane = std::move(*made);
    DeviceSettings settings;
    settings.listenPort = kPort;
    REQUIRE(plane->configure(settings));
    PeerSettings peer;
    peer.id = kPeer;
    peer.allowedIps = {*Prefix::parse(std::string("10.8.0.") + other + "/32"),
                       *Prefix::parse(std::string("fd08::") + other + "/128")};
    REQUIRE(plane->setPeer(peer));
    const auto outer = v6 ? IpAddress::parse(std::string("fd09::") + other)
                          : IpAddress::parse(std::string("10.9.0.") + other);
    plane->setEndpoint(kPeer, {*outer, kPort, 0}, std::nullopt);
    test::run(std::string("ip address add 10.8.0.") + number + "/24 dev adit0");
    test::run(std::string("ip -6 address add fd08::") + number + "/64 dev adit0 nodad");
    test::run("ip link set adit0 up");
  }
  ~Side() {
    if (plane) plane->destroyInterface();
  }
};

struct Tunnel {
  Side a;
  Side b;

  Tunnel(crypto::Suite suite, const char* offloadA, const char* offloadB, bool outerV6 = false,
         std::size_t lanes = 1) {
    {
      const test::Namespace::Visit visit(a.space);
      test::run("ip link add veth type veth peer name veth netns " + b.space.path());
      test::run("ip address add 10.9.0.1/24 dev veth");
      test::run("ip -6 address add fd09::1/64 dev veth nodad");
      test::run("ip link set veth up");
    }
    {
      const test::Namespace::Visit visit(b.space);
      test::run("ip address add 10.9.0.2/24 dev veth");
      test::run("ip -6 address add fd09::2/64 dev veth nodad");
      test::run("ip link set veth up");
    }
    a.start(dataplane::user::OffloadSwitches::parse(offloadA), '1', outerV6, lanes);
    b.start(dataplane::user::OffloadSwitches::parse(offloadB), '2', outerV6, lanes);
    const auto keys = test::keysFor(noise::KeySlot::Next, 1, suite);
    REQUIRE(b.plane->installKeys(kPeer, {}, keys));
    REQUIRE(a.plane->installKeys(kPeer, {}, test::otherSide(keys)));
    // The initiator's keepalive confirms the key.
    REQUIRE(b.events.until(*b.plane, [this] { return b.events.confirmed == 1; }));
  }
};

std::vector<std::uint8_t> randomBytes(std::size_t length) {
  std::mt19937_64 random(5);
  std::vector<std::uint8_t> bytes(length);
  for (auto& byte : bytes)
    byte = static_cast<std::uint8_t>(random());
  return bytes;
}

UniqueFd listenAt(const Endpoint& where) {
  UniqueFd fd(::socket(where.address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  const socklen_t length = where.toSockaddr(address);
  test::must(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  test::must(::listen(fd.get(), 1) == 0, "listen");
  return fd;
}

void setTimeouts(int fd) {
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

// Sends `data` by TCP from one side to an address on the other; what arrives is returned.
std::vector<std::uint8_t> transfer(const Side& from, const Side& to, const Endpoint& where,
                                   const std::vector<std::uint8_t>& data) {
  UniqueFd listener;
  {
    const test::Namespace::Visit visit(to.space);
    listener = listenAt(where);
  }
  setTimeouts(listener.get());
  auto received = std::async(std::launch::async, [&listener, &data] {
    std::vector<std::uint8_t> bytes;
    const UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return bytes;
    setTimeouts(connection.get());
    std::vector<std::uint8_t> buffer(1 << 16);
    while (bytes.size() < data.size()) {
      const ssize_t got = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + got);
    }
    return bytes;
  });
  {
    const test::Namespace::Visit visit(from.space);
    const UniqueFd fd(::socket(where.address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    setTimeouts(fd.get());
    sockaddr_storage address{};
    const socklen_t length = where.toSockaddr(address);
    test::must(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
    std::size_t sent = 0;
    while (sent < data.size()) {
      const ssize_t put = ::send(fd.get(), data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) break;
      sent += static_cast<std::size_t>(put);
    }
    test::must(sent == data.size(), "send");
  }
  return received.get();
}

void checkBothWays(Tunnel& tunnel) {
  const auto data = randomBytes(4 << 20);
  CHECK((transfer(tunnel.a, tunnel.b, *Endpoint::parse("10.8.0.2:1"), data) == data));
  CHECK((transfer(tunnel.b, tunnel.a, *Endpoint::parse("10.8.0.1:1"), data) == data));
  CHECK((transfer(tunnel.a, tunnel.b, *Endpoint::parse("[fd08::2]:1"), data) == data));
  for (const Side* side : {&tunnel.a, &tunnel.b}) {
    const DropCounts drops = side->plane->deviceStats().drops;
    for (const Drop drop :
         {Drop::Malformed, Drop::UnknownIndex, Drop::Authentication, Drop::Replay, Drop::NotIp,
          Drop::SourceNotAllowed, Drop::SendFailed, Drop::QueueFull, Drop::Congestion}) {
      CHECK(drops[static_cast<std::size_t>(drop)] == 0);
    }
    CHECK(side->plane->peerStats().at(0).rxBytes > data.size());
  }
}

}  // namespace

TEST_CASE("TCP passes through two data planes unchanged, with each suite", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  for (const auto suite : crypto::kSuites) {
    Tunnel tunnel(suite, "", "");
    checkBothWays(tunnel);
  }
}

TEST_CASE("TCP passes over IPv6 outside", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  Tunnel tunnel(crypto::Suite::Aes256Gcm, "", "", true);
  checkBothWays(tunnel);
}

TEST_CASE("TCP passes over four lanes", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  for (const bool v6 : {false, true}) {
    Tunnel tunnel(crypto::Suite::Aes256Gcm, "", "", v6, 4);
    checkBothWays(tunnel);
  }
}

TEST_CASE("TCP passes whatever offload either side is without", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  for (const char* a :
       {"off", "udp-segmentation", "udp-merging", "tun-segmentation", "tun-merging"}) {
    CAPTURE(a);
    Tunnel tunnel(crypto::Suite::Aes256Gcm, a, "");
    checkBothWays(tunnel);
  }
  Tunnel tunnel(crypto::Suite::Aes256Gcm, "off", "off");
  checkBothWays(tunnel);
}

TEST_CASE("a path with a smaller MTU costs offload, not packets", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  Tunnel tunnel(crypto::Suite::Aes256Gcm, "", "");
  for (const Side* side : {&tunnel.a, &tunnel.b}) {
    const test::Namespace::Visit visit(side->space);
    test::run("ip link set veth mtu 1400");
  }
  checkBothWays(tunnel);
}

TEST_CASE("sessions change under traffic without a lost connection", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  Tunnel tunnel(crypto::Suite::Aes256Gcm, "", "", false, 2);
  const auto data = randomBytes(16 << 20);
  auto done = std::async(std::launch::async, [&] {
    return transfer(tunnel.a, tunnel.b, *Endpoint::parse("10.8.0.2:1"), data) == data;
  });
  // All calls to the planes stay on this thread; keys change roles each time.
  for (std::uint32_t number = 2; done.wait_for(2ms) != std::future_status::ready; ++number) {
    const auto keys = test::keysFor(noise::KeySlot::Next, number,
                                    crypto::kSuites[number % crypto::kSuites.size()]);
    Side& responder = number % 2 == 0 ? tunnel.a : tunnel.b;
    Side& initiator = number % 2 == 0 ? tunnel.b : tunnel.a;
    REQUIRE(responder.plane->installKeys(kPeer, {}, keys));
    REQUIRE(initiator.plane->installKeys(kPeer, {}, test::otherSide(keys)));
    const int confirmed = responder.events.confirmed;
    REQUIRE(responder.events.until(*responder.plane,
                                   [&] { return responder.events.confirmed > confirmed; }));
    PeerSettings settings;
    settings.id = 99;
    settings.allowedIps = {*Prefix::parse("10.77.0.0/16")};
    REQUIRE(initiator.plane->setPeer(settings));
    initiator.plane->removePeer(99);
  }
  CHECK(done.get());
  for (const Side* side : {&tunnel.a, &tunnel.b}) {
    const DropCounts drops = side->plane->deviceStats().drops;
    CHECK(drops[static_cast<std::size_t>(Drop::Authentication)] == 0);
    CHECK(drops[static_cast<std::size_t>(Drop::Replay)] == 0);
  }
}

namespace {

/// Sends datagrams of changing size to `where` from the side's namespace until told to stop.
std::thread flood(const Side& from, const Endpoint& where, const std::atomic<bool>& stop) {
  return std::thread([&from, where, &stop] {
    const test::Namespace::Visit visit(from.space);
    const UniqueFd fd(::socket(where.address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    const socklen_t length = where.toSockaddr(address);
    // Looks like a data message to some session, for those that reach a plane's own port.
    std::vector<std::uint8_t> bytes(1300, 0);
    bytes[0] = 4;
    for (std::uint32_t i = 0; !stop; ++i) {
      bytes[4] = static_cast<std::uint8_t>(i);
      ::sendto(fd.get(), bytes.data(), 100 + i % 1200, MSG_DONTWAIT,
               reinterpret_cast<sockaddr*>(&address), length);
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
}

PeerSettings settingsOf(char other, std::uint32_t round) {
  PeerSettings settings;
  settings.id = kPeer + round / 10;
  settings.allowedIps = {*Prefix::parse(std::string("10.8.0.") + other + "/32"),
                         *Prefix::parse(fmt::format("10.{}.0.0/16", 20 + round % 200))};
  settings.persistentKeepalive = round % 2 == 0 ? 1 : 0;
  settings.roam = round % 3 != 0;
  return settings;
}

/// Everything that the control thread can do to a plane, with sessions on both sides. Returns how
/// many datagrams have come so far to the peers that are there.
std::uint64_t changeEverything(Tunnel& tunnel, std::uint32_t round) {
  const PeerId peer = kPeer + round / 10;
  const auto keys = test::keysFor(noise::KeySlot::Next, 1000 + round,
                                  crypto::kSuites[round % crypto::kSuites.size()]);
  char number = '1';
  for (Side* side : {&tunnel.a, &tunnel.b}) {
    const test::Namespace::Visit visit(side->space);
    DataPlane& plane = *side->plane;
    if (round % 10 == 0 && round > 0) plane.removePeer(peer - 1);
    REQUIRE(plane.setPeer(settingsOf(number == '1' ? '2' : '1', round)));
    plane.setEndpoint(peer, {*IpAddress::parse(number == '1' ? "10.9.0.2" : "10.9.0.1"), kPort, 0},
                      std::nullopt);
    DeviceSettings settings;
    settings.listenPort = kPort;
    settings.firewallMark = round % 3;
    settings.publicKey.bytes[0] = static_cast<std::uint8_t>(round);
    settings.bindAddress = round % 5 == 0 ? *IpAddress::parse("0.0.0.0") : IpAddress{};
    REQUIRE(plane.configure(settings));
    if (round % 7 == 0) plane.dropKeys(peer);
    plane.dropStaged(peer);
    number = '2';
  }
  REQUIRE(tunnel.b.plane->installKeys(peer, {}, keys));
  REQUIRE(tunnel.a.plane->installKeys(peer, {}, test::otherSide(keys)));
  for (Side* side : {&tunnel.a, &tunnel.b}) {
    side->plane->sendControl(peer, std::vector<std::uint8_t>{1, 2, 0});
    side->plane->dispatch(side->events);
    REQUIRE(side->plane->peerStats().size() == 1);
    CHECK(side->plane->deviceStats().listenPort == kPort);
  }
  return tunnel.a.plane->peerStats()[0].rxPackets + tunnel.b.plane->peerStats()[0].rxPackets;
}

}  // namespace

// What it would break shows under the sanitizers, or as a crash.
TEST_CASE("all that the control thread may change changes under traffic", "[root][tunnel]") {
  if (!test::canMakeNamespaces()) return;
  Tunnel tunnel(crypto::Suite::Aes256Gcm, "", "", false, 2);
  std::atomic<bool> stop{false};
  std::vector<std::thread> floods;
  floods.push_back(flood(tunnel.a, *Endpoint::parse("10.8.0.2:9"), stop));
  floods.push_back(flood(tunnel.b, *Endpoint::parse("10.8.0.1:9"), stop));
  floods.push_back(flood(tunnel.a, {*IpAddress::parse("10.9.0.2"), kPort, 0}, stop));
  std::uint64_t received = 0;
  for (std::uint32_t round = 0; round < 1500 || received < 20'000; ++round) {
    received += changeEverything(tunnel, round);
    REQUIRE(round < 100'000);
  }
  stop = true;
  for (std::thread& thread : floods)
    thread.join();
  // It still works.
  const auto data = randomBytes(1 << 20);
  CHECK((transfer(tunnel.a, tunnel.b, *Endpoint::parse("10.8.0.2:1"), data) == data));
}
