// The helper and the worker as two programs. As root only, since that is what is given away.
#include "control/privileged_unit.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "control/paths.hpp"
#include "control/stream_server.hpp"
#include "process_fixture.hpp"

using namespace adit;
using namespace adit::control;

namespace {

using Worker = std::function<int(Privileged&, DaemonSockets&)>;

/// Says "listening", serves one worker, and says "cleaned".
pid_t startHelper(const Place& place, const Report& report, const config::Config& config = {}) {
  return forked([&] {
    SeparationOptions options = place.options(config);
    options.cleanup = [&] { report.say("cleaned"); };
    std::filesystem::create_directories(runtimeDirectory());
    DaemonSockets sockets;
    sockets.control = listenAt(controlSocket("tun7")).value();
    sockets.metricsTrouble = "trouble";
    return runHelper(options, std::move(sockets), [&] { report.say("listening"); });
  });
}

/// As systemd starts it: with more rights than it needs, as the worker's user.
pid_t startWorker(const Report& report, const Worker& worker) {
  const pid_t parent = ::getpid();
  return forked([&] {
    if (!confine(workerIdentity(), {CAP_NET_ADMIN, CAP_NET_BIND_SERVICE}, parent)) return 3;
    return runHelped(
        "tun7", [&](const std::string& message) { report.say(message); }, worker);
  });
}

int waitForever() {
  while (true)
    ::pause();
}

}  // namespace

TEST_CASE("a worker gets the helper's sockets and help, and keeps few rights",
          "[privileged][root]") {
  const Place place;
  Report report;
  const pid_t helper = startHelper(place, report);
  REQUIRE(report.line() == "listening");
  const pid_t worker = startWorker(report, [&](Privileged& privileged, DaemonSockets& sockets) {
    int listens = 0;
    socklen_t length = sizeof(listens);
    ::getsockopt(sockets.control.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    report.say(fmt::format("{} {} {}", listens, static_cast<bool>(sockets.wireguard),
                           sockets.metricsTrouble));
    report.say(rights());
    report.say(privileged.loadConfig().ok() ? "loaded" : "not loaded");
    return 5;
  });
  CHECK(report.line() == "1 false trouble");
  CHECK(report.line() == expectedRights(kNetAdmin));
  CHECK(report.line() == "loaded");
  CHECK(await(worker) == 5);
  CHECK(report.line() == "cleaned");
  CHECK(await(helper) == 0);
  CHECK_FALSE(std::filesystem::exists(helperSocket("tun7")));
}

TEST_CASE("a worker keeps what a low port needs", "[privileged][root]") {
  const Place place;
  Report report;
  config::Config config;
  config.interface.listenPort = 53;
  const pid_t helper = startHelper(place, report, config);
  REQUIRE(report.line() == "listening");
  const pid_t worker = startWorker(report, [&](Privileged&, DaemonSockets&) {
    report.say(rights());
    return 0;
  });
  CHECK(report.line() == expectedRights(kNetAdmin | kNetBind));
  CHECK(await(worker) == 0);
  CHECK(await(helper) == 0);
}

TEST_CASE("a worker ends with its helper", "[privileged][root]") {
  const Place place;
  Report report;
  const pid_t helper = startHelper(place, report);
  REQUIRE(report.line() == "listening");
  const pid_t worker = startWorker(report, [&](Privileged&, DaemonSockets&) {
    report.say("works");
    return waitForever();
  });
  REQUIRE(report.line() == "works");
  ::kill(helper, SIGKILL);
  CHECK(await(worker) == 1);
  CHECK(await(helper) == 1000 + SIGKILL);
}

TEST_CASE("a worker without a helper says where the reason stands", "[privileged][root]") {
  const Place place;
  std::filesystem::create_directories(runtimeDirectory());
  Report report;
  const pid_t worker = startWorker(report, [](Privileged&, DaemonSockets&) { return 0; });
  CHECK(await(worker) == 1);
  CHECK_THAT(report.line(), Catch::Contains("journalctl -u adit-helper@tun7"));
}

TEST_CASE("a helper serves nobody but the worker's user", "[privileged][root]") {
  const Place place;
  Report report;
  const pid_t helper = startHelper(place, report);
  REQUIRE(report.line() == "listening");
  const pid_t stranger = forked([&] {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = helperSocket("tun7");
    std::memcpy(address.sun_path, path.c_str(), path.size());
    // Root may connect to any socket.
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      return 2;
    }
    char answer = 0;
    return ::recv(socket.get(), &answer, 1, 0) > 0 ? 3 : 0;
  });
  CHECK(await(stranger) == 0);
  ::kill(helper, SIGTERM);
  CHECK(report.line() == "cleaned");
  CHECK(await(helper) == 0);
}
