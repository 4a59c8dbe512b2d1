#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <thread>

#include "control/privileged_outcome.hpp"
#include "control/privileged_protocol.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;

namespace {

/// Remembers what it was asked for.
class FakePrivileged final : public Privileged {
 public:
  config::Outcome loadConfig() override {
    calls.emplace_back("load");
    return outcome;
  }
  Result<void> runHooks(HookKind kind) override {
    calls.push_back(fmt::format("hooks {}", static_cast<int>(kind)));
    if (kind == HookKind::PreDown) return fail("tun7.conf:3: PreDown exited with status 1: false");
    return {};
  }
  Result<std::string> writeSysctl(const std::string& path, const std::string& value) override {
    calls.push_back(fmt::format("sysctl {}={}", path, value));
    if (path.starts_with("net/ipv6")) return failErrno(EROFS, "read-only");
    return "old";
  }
  Result<void> writeTuned(const std::string& path, const std::string& value) override {
    calls.push_back(fmt::format("tuned {}={}", path, value));
    if (path.starts_with("proc/irq")) return failErrno(EIO, "cannot move");
    return {};
  }
  Result<enrol::Verdict> completeInvitation(const crypto::PublicKey& enrolment,
                                            const crypto::PublicKey& joining) override {
    calls.push_back(fmt::format("join {} {}", enrolment.bytes[0], joining.bytes[31]));
    if (joining.isZero()) return fail("a key of zeros");
    return enrol::Verdict::Taken;
  }
  Result<void> setDns(const std::vector<IpAddress>& servers,
                      const std::vector<std::string>& search) override {
    calls.push_back(fmt::format("dns {} {}", servers.size(), fmt::join(search, ",")));
    return {};
  }
  Result<void> loadModule() override {
    calls.emplace_back("module");
    return fail("no module");
  }
  Result<UniqueFd> openTun() override {
    calls.emplace_back("tun");
    return UniqueFd(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  }

  config::Outcome outcome;
  std::vector<std::string> calls;
};

/// A server in a thread and the worker's end of its socket.
class Served {
 public:
  explicit Served(Privileged& privileged, std::optional<config::Outcome> first = std::nullopt)
      : server_(privileged, std::move(first)), channel_(makeChannel().value()) {
    thread_ = std::thread([this] { served_ = server_.serve(channel_.privileged.get()); });
  }
  ~Served() {
    channel_.worker.reset();
    if (thread_.joinable()) thread_.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  /// Gives the worker's end away; the server ends when it is closed.
  UniqueFd take() { return std::move(channel_.worker); }
  [[nodiscard]] int socket() const { return channel_.worker.get(); }
  Result<void> join() {
    thread_.join();
    return served_;
  }

 private:
  PrivilegedServer server_;
  ChannelPair channel_;
  Result<void> served_;
  std::thread thread_;
};

bool isFailure(const Answer& answer) {
  return !answer.bytes.empty() && answer.bytes[0] == 1;
}

}  // namespace

TEST_CASE("requests and answers cross the socket", "[privileged]") {
  FakePrivileged fake;
  Served served(fake);
  {
    RemotePrivileged remote(served.take());
    CHECK(remote.runHooks(HookKind::PostUp));
    const auto failed = remote.runHooks(HookKind::PreDown);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message == "tun7.conf:3: PreDown exited with status 1: false");
    CHECK(remote.writeTuned("sys/class/net/eth0/queues/rx-0/rps_cpus", "3"));
    CHECK(fake.calls.back() == "tuned sys/class/net/eth0/queues/rx-0/rps_cpus=3");
    CHECK(remote.writeTuned("proc/irq/24/smp_affinity_list", "1").error().code == EIO);
    fake.calls.resize(fake.calls.size() - 2);
    CHECK(remote.writeSysctl("net/ipv4/ip_forward", "1").value() == "old");
    const auto readOnly = remote.writeSysctl("net/ipv6/conf/all/forwarding", "1");
    REQUIRE_FALSE(readOnly);
    CHECK(readOnly.error().code == EROFS);
    CHECK(remote.setDns({IpAddress::anyV4(), IpAddress::anyV6()}, {"a", "b"}));
    CHECK(remote.loadModule().error().message == "no module");
    const auto tun = remote.openTun();
    REQUIRE(tun);
    char byte = 1;
    CHECK(::read(tun->get(), &byte, 1) == 1);
    CHECK(byte == 0);
    CHECK((::fcntl(tun->get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(served.join());
  CHECK(fake.calls == std::vector<std::string>{"hooks 1", "hooks 2", "sysctl net/ipv4/ip_forward=1",
                                               "sysctl net/ipv6/conf/all/forwarding=1", "dns 2 a,b",
                                               "module", "tun"});
}

TEST_CASE("keys that join cross the socket, and verdicts come back", "[privileged]") {
  FakePrivileged fake;
  Served served(fake);
  RemotePrivileged remote(served.take());
  crypto::PublicKey enrolment;
  crypto::PublicKey joining;
  enrolment.bytes[0] = 7;
  joining.bytes[31] = 9;
  CHECK(remote.completeInvitation(enrolment, joining) == enrol::Verdict::Taken);
  CHECK(remote.completeInvitation(enrolment, {}).error().message == "a key of zeros");
  CHECK(fake.calls == std::vector<std::string>{"join 7 9", "join 7 0"});
}

TEST_CASE("a configuration larger than a packet comes across", "[privileged]") {
  FakePrivileged fake;
  config::Config& config = fake.outcome.config.emplace();
  config.peers.resize(20'000);
  for (std::size_t i = 0; i < config.peers.size(); ++i) {
    config.peers[i].name = fmt::format("peer {}", i);
    config.peers[i].location = at(static_cast<unsigned>(i));
  }
  Served served(fake);
  RemotePrivileged remote(served.take());
  const config::Outcome got = remote.loadConfig();
  REQUIRE(got.ok());
  REQUIRE(got.config->peers.size() == 20'000);
  CHECK(got.config->peers[19'999].name == "peer 19999");
  CHECK(encodeOutcome(got) == encodeOutcome(fake.outcome));
}

TEST_CASE("what is loaded already answers the first request alone", "[privileged]") {
  FakePrivileged fake;
  fake.outcome.config.emplace().interface.mtu = 1300;
  config::Outcome first;
  first.config.emplace().interface.mtu = 1200;
  Served served(fake, first);
  RemotePrivileged remote(served.take());
  CHECK(remote.loadConfig().config->interface.mtu == 1200);
  CHECK(fake.calls.empty());
  CHECK(remote.loadConfig().config->interface.mtu == 1300);
}

TEST_CASE("a privileged process that is gone is an error, not a hang", "[privileged]") {
  auto channel = makeChannel().value();
  RemotePrivileged remote(std::move(channel.worker));
  channel.privileged.reset();
  CHECK_FALSE(remote.runHooks(HookKind::PreUp));
  const config::Outcome outcome = remote.loadConfig();
  CHECK_FALSE(outcome.ok());
  REQUIRE(outcome.diagnostics.size() == 1);
}

TEST_CASE("malformed requests reach no operation", "[privileged]") {
  const QuietLog quiet;
  FakePrivileged fake;
  PrivilegedServer server(fake, std::nullopt);
  std::vector<Bytes> requests{{},
                              {7},
                              {6},
                              {7, 1},
                              {6, 1, 0, 0, 0, 'a'},
                              {6, 255, 255, 255, 255},
                              {200},
                              {1},
                              {1, 4},
                              {1, 0, 0},
                              {0, 0},
                              {4, 1},
                              {5, 1},
                              {2},
                              {2, 255, 255, 255, 255},
                              {2, 0, 0, 0, 0},
                              {2, 0, 0, 0, 0, 1, 0, 0, 0},
                              {3},
                              {3, 255, 255, 255, 255},
                              {3, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0},
                              {3, 1, 0, 0, 0, 1, 9, 9, 9, 9, 0, 0, 0, 0}};
  for (const Bytes& request : requests) {
    CHECK(isFailure(server.handle(request)));
  }
  CHECK(fake.calls.empty());
}

TEST_CASE("no packet stops the server", "[privileged]") {
  const QuietLog quiet;
  FakePrivileged fake;
  Served served(fake);
  std::mt19937 random(7);
  Bytes packet;
  for (int round = 0; round < 5'000; ++round) {
    packet.resize(round % 1000 == 0 ? random() % (2 * kMaxRequest) : random() % 40);
    for (auto& byte : packet)
      byte = static_cast<std::uint8_t>(random());
    // Mostly a number that means something, so that what follows is read as well.
    if (!packet.empty() && round % 8 != 0) packet[0] %= 6;
    if (packet.size() >= 5 && round % 2 == 0) packet[2] = packet[3] = packet[4] = 0;
    REQUIRE(::send(served.socket(), packet.data(), packet.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(packet.size()));
    REQUIRE(receiveAnswer(served.socket()));
  }
  RemotePrivileged remote(served.take());
  CHECK(remote.writeSysctl("net/ipv4/ip_forward", "1").value() == "old");
}

TEST_CASE("a half-closed socket ends the service", "[privileged]") {
  FakePrivileged fake;
  Served served(fake);
  REQUIRE(::shutdown(served.socket(), SHUT_WR) == 0);
  CHECK(served.join());
}

TEST_CASE("descriptors that come with a request are closed", "[privileged]") {
  auto channel = makeChannel().value();
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  std::uint8_t mark = 5;
  iovec part{&mark, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &ends[1], sizeof(int));
  REQUIRE(::sendmsg(channel.worker.get(), &message, MSG_NOSIGNAL) == 1);
  ::close(ends[1]);
  const auto request = receiveRequest(channel.privileged.get());
  REQUIRE(request);
  CHECK(request->size() == 1);
  pollfd waiting{reader.get(), POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 5000) == 1);
  CHECK((waiting.revents & POLLHUP) != 0);
}
