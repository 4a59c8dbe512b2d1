// The two processes as they really run. As root only, since that is what is given away.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/sched.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "control/privileged_channel.hpp"
#include "control/privileged_confine.hpp"
#include "control/privileged_directories.hpp"
#include "control/privileged_process.hpp"
#include "privileged_fixture.hpp"
#include "process_fixture.hpp"
#include "skip.hpp"

using namespace adit;
using namespace adit::control;

namespace {

/// Binds a UDP socket to a port of the loopback that the system chooses, and says which.
UniqueFd bindAnyPort(std::uint16_t& port) {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t length = sizeof(address);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return {};
  }
  port = ntohs(address.sin_port);
  return socket;
}

/// The worker's end of the socketpair, which only RemotePrivileged has.
int findChannel() {
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    int type = 0;
    socklen_t length = sizeof(type);
    if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
        type == SOCK_SEQPACKET) {
      return descriptor;
    }
  }
  return -1;
}

/// A worker that never ends by itself.
int waitForever() {
  while (true)
    ::pause();
}

}  // namespace

TEST_CASE("the worker has one capability, and so have its threads", "[privileged][root]") {
  REQUIRE(::geteuid() == 0);
  const Place place;
  Report report;
  const pid_t outer = forked([&] {
    // Root's groups may open what is nobody's business, such as /etc/shadow.
    const gid_t shadow = 42;
    if (::setgroups(1, &shadow) != 0) return 3;
    return runSeparated(place.options(), [&](Privileged&) {
      report.say(rights());
      std::thread([&] { report.say(rights()); }).join();
      return 0;
    });
  });
  report.listen();
  CHECK(await(outer) == 0);
  CHECK(report.line() == expectedRights(kNetAdmin));
  CHECK(report.line() == expectedRights(kNetAdmin));
}

TEST_CASE("the worker keeps what it needs for a low port or raw sockets", "[privileged][root]") {
  const Place place;
  config::Config config;
  config.interface.listenPort = 53;
  SeparationOptions options = place.options(config);
  options.keepNetRaw = true;
  Report report;
  REQUIRE(runSeparated(options, [&](Privileged&) {
            report.say(rights());
            return 0;
          }) == 0);
  CHECK(report.line() == expectedRights(kNetAdmin | kNetBind | kNetRaw));
}

TEST_CASE("the worker can reach nothing of root's", "[privileged][root]") {
  const Place place;
  Report report;
  REQUIRE(runSeparated(place.options(), [&](Privileged&) {
            report.say(::open("/etc/shadow", O_RDONLY) < 0 ? std::strerror(errno) : "opened");
            report.say(::setuid(0) != 0 ? std::strerror(errno) : "root again");
            report.say(::kill(::getppid(), 0) != 0 ? std::strerror(errno) : "may signal");
            report.say(::prctl(PR_GET_DUMPABLE) == 0 ? "not dumpable" : "dumpable");
            const std::string memory = "/proc/" + std::to_string(::getppid()) + "/mem";
            report.say(::open(memory.c_str(), O_RDONLY) < 0 ? std::strerror(errno) : "opened");
            return 0;
          }) == 0);
  CHECK(report.line() == "Permission denied");
  CHECK(report.line() == "Operation not permitted");
  CHECK(report.line() == "Operation not permitted");
  CHECK(report.line() == "not dumpable");
  CHECK(report.line() == "Permission denied");
}

TEST_CASE("the worker has no hold on the terminal that aditd was started from",
          "[privileged][root]") {
  const Place place;
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  const std::string name = ::ptsname(terminal.get());
  Report report;
  const auto canOpenTerminal = [] { return UniqueFd(::open("/dev/tty", O_RDWR)) ? "yes" : "no"; };
  const pid_t outer = forked([&] {
    ::setsid();
    // The first terminal that a session's leader opens becomes the session's.
    if (::open(name.c_str(), O_RDWR) < 0) return 3;
    report.say(canOpenTerminal());
    return runSeparated(place.options(), [&](Privileged&) {
      report.say(canOpenTerminal());
      report.say(::getpgrp() == ::getpid() ? "own group" : "the parent's group");
      return 0;
    });
  });
  report.listen();
  CHECK(report.line() == "yes");
  CHECK(report.line() == "no");
  CHECK(report.line() == "own group");
  CHECK(await(outer) == 0);
}

TEST_CASE("the worker's directories are its own", "[privileged][root]") {
  const Place place;
  const WorkerIdentity identity = workerIdentity();
  // Left by an earlier worker of another user, and by somebody who links to what is not theirs.
  REQUIRE(makeOwnDirectory(stateDirectory("tun7"), 12345, 12345));
  place.scratch.write("state/tun7/mark", "old");
  place.scratch.write("outside", "root's");
  std::filesystem::create_hard_link(place.scratch.file("outside"),
                                    place.scratch.file("state/tun7/link"));
  std::filesystem::create_symlink(place.scratch.file("outside"),
                                  place.scratch.file("state/tun7/symlink"));
  CHECK(runSeparated(place.options(), [&](Privileged&) {
          std::ofstream("mark") << "new";
          std::ofstream(volatileDirectory("tun7") / "peers") << "new";
          return 0;
        }) == 0);
  CHECK(place.scratch.read("state/tun7/mark") == "new");
  CHECK(place.scratch.read("run/tun7/peers") == "new");
  struct stat about {};
  for (const auto& directory : {stateDirectory("tun7"), volatileDirectory("tun7")}) {
    REQUIRE(::stat(directory.c_str(), &about) == 0);
    CHECK(about.st_uid == identity.uid);
    CHECK((about.st_mode & 07777) == 0700);
  }
  REQUIRE(::stat(place.scratch.file("outside").c_str(), &about) == 0);
  CHECK(about.st_uid == 0);
}

TEST_CASE("a directory out of the worker's reach ends it at once", "[privileged][root]") {
  const QuietLog quiet;
  const Place place;
  Report report;
  place.scratch.write("closed/file", "");
  std::filesystem::permissions(place.scratch.file("closed"), std::filesystem::perms{0700});
  for (const char* variable : {"ADIT_STATE_DIR", "ADIT_RUNTIME_DIR"}) {
    const std::string before = std::getenv(variable);
    ::setenv(variable, place.scratch.file("closed").c_str(), 1);
    SeparationOptions options = place.options();
    options.failed = [&](const std::string& message) { report.say(message); };
    CHECK(runSeparated(options, [](Privileged&) { return 0; }) == 1);
    CHECK_THAT(report.line(), Catch::EndsWith("chmod a+x " + place.scratch.file("closed") +
                                              ": Permission denied"));
    ::setenv(variable, before.c_str(), 1);
  }
  CHECK(runSeparated(place.options(), [](Privileged&) { return 0; }) == 0);
}

TEST_CASE("the worker gets what it may ask for and no more", "[privileged][root]") {
  const QuietLog quiet;
  const Place place;
  place.scratch.write("sys/net/ipv4/ip_forward", "0\n");
  place.scratch.write("sys/kernel/core_pattern", "core\n");
  config::Config config;
  config.interface.privateKeyFile = "key";
  config.interface.location = at(4, 2);
  config.interface.postUp = hooks(5, {"id -u > " + place.scratch.file("uid")});
  Report report;
  REQUIRE(runSeparated(place.options(config), [&](Privileged& privileged) {
            const config::Outcome outcome = privileged.loadConfig();
            const bool whole = outcome.ok() && outcome.config->interface.privateKeyFile == "key" &&
                               outcome.config->interface.location.column == 2;
            report.say(whole ? "loaded" : "not loaded");
            report.say(privileged.runHooks(HookKind::PostUp) ? "ran" : "failed");
            report.say(privileged.writeSysctl("net/ipv4/ip_forward", "1").value_or("failed"));
            const auto refused = privileged.writeSysctl("kernel/core_pattern", "|/tmp/x");
            report.say(refused ? "written" : refused.error().message);
            const auto dns = privileged.setDns({IpAddress::anyV4()}, {});
            report.say(dns ? "set" : dns.error().message);
            return 0;
          }) == 0);
  CHECK(report.line() == "loaded");
  CHECK(report.line() == "ran");
  CHECK(place.scratch.read("uid") == "0\n");
  CHECK(report.line() == "0");
  CHECK(report.line() == "refused: a sysctl must be a file below /proc/sys/net");
  CHECK(report.line() == "refused: tun7.conf does not name these DNS servers or domains");
  CHECK(place.scratch.read("sys/net/ipv4/ip_forward") == "1");
  CHECK(place.scratch.read("sys/kernel/core_pattern") == "core\n");
}

TEST_CASE("the worker makes a TUN interface with the device it is given", "[privileged][root]") {
  if (::access("/dev/net/tun", F_OK) != 0) {
    adit::testing::skip("there is no /dev/net/tun");
    return;
  }
  const Place place;
  SeparationOptions options = place.options();
  options.system.tunDevice = "/dev/net/tun";
  const pid_t outer = forked([&] {
    if (::unshare(CLONE_NEWNET) != 0) return 3;
    return runSeparated(options, [](Privileged& privileged) {
      auto tun = privileged.openTun();
      if (!tun) return 4;
      ifreq request{};
      std::strncpy(request.ifr_name, "adpriv0", IFNAMSIZ - 1);
      request.ifr_flags = IFF_TUN | IFF_NO_PI;
      return ::ioctl(tun->get(), TUNSETIFF, &request) == 0 ? 0 : 5;
    });
  });
  CHECK(await(outer) == 0);
}

TEST_CASE("nothing the worker sends stops the privileged process", "[privileged][root]") {
  const QuietLog quiet;
  const Place place;
  place.scratch.write("sys/net/ipv4/ip_forward", "0\n");
  SeparationOptions options = place.options();
  options.system.searchPath = place.scratch.file("bin");
  CHECK(runSeparated(options, [](Privileged& privileged) {
          const int channel = findChannel();
          std::mt19937 random(11);
          Bytes packet;
          for (int round = 0; round < 3'000; ++round) {
            packet.resize(random() % 64);
            for (auto& byte : packet)
              byte = static_cast<std::uint8_t>(random());
            if (!packet.empty() && round % 4 != 0) packet[0] %= 6;
            if (::send(channel, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return 3;
            if (!receiveAnswer(channel)) return 4;
          }
          return privileged.writeSysctl("net/ipv4/ip_forward", "1") ? 0 : 5;
        }) == 0);
}

TEST_CASE("the worker's exit status is passed on, and the cleanup runs as root",
          "[privileged][root]") {
  const Place place;
  SeparationOptions options = place.options();
  uid_t cleaner = 77777;
  pid_t pid = 0;
  int dumpable = -1;
  ::prctl(PR_SET_DUMPABLE, 1);
  options.cleanup = [&] {
    cleaner = ::geteuid();
    dumpable = ::prctl(PR_GET_DUMPABLE);
    pid = ::getpid();
  };
  CHECK(runSeparated(options, [](Privileged&) { return 42; }) == 42);
  CHECK(cleaner == 0);
  CHECK(pid == ::getpid());
  // It has read the keys as well.
  CHECK(dumpable == 0);
}

TEST_CASE("an exception in the worker is a failure, not a second parent", "[privileged][root]") {
  const QuietLog quiet;
  const Place place;
  CHECK(runSeparated(place.options(), [](Privileged&) -> int { throw std::runtime_error("x"); }) ==
        1);
}

TEST_CASE("kill -9 of the worker ends the parent with 137", "[privileged][root]") {
  const QuietLog quiet;
  const Place place;
  Report report;
  SeparationOptions options = place.options();
  options.cleanup = [&] { report.say("cleaned"); };
  const pid_t outer = forked([&] {
    return runSeparated(options, [&](Privileged&) {
      report.say(std::to_string(::getpid()));
      return waitForever();
    });
  });
  report.listen();
  const pid_t worker = std::stoi(report.line());
  REQUIRE(worker != outer);
  REQUIRE(::kill(worker, SIGKILL) == 0);
  CHECK(report.line() == "cleaned");
  CHECK(report.line().empty());
  CHECK(await(outer) == 137);
}

TEST_CASE("kill -9 of the parent frees the worker's port", "[privileged][root]") {
  const Place place;
  Report report;
  const pid_t outer = forked([&] {
    return runSeparated(place.options(), [&](Privileged&) {
      std::uint16_t port = 0;
      const UniqueFd socket = bindAnyPort(port);
      // No signal that a process can ignore does it.
      for (const int number : {SIGTERM, SIGINT, SIGHUP})
        ::signal(number, SIG_IGN);
      report.say(std::to_string(port));
      return waitForever();
    });
  });
  report.listen();
  auto port = static_cast<std::uint16_t>(std::stoi(report.line()));
  CHECK_FALSE(bindAnyPort(port));
  REQUIRE(::kill(outer, SIGKILL) == 0);
  CHECK(await(outer) == 1000 + SIGKILL);
  // Ends when the last process that can write has ended.
  CHECK(report.line().empty());
  CHECK(bindAnyPort(port));
}

TEST_CASE("signals of the parent reach the worker once", "[privileged][root]") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const Place place;
    Report report;
    SeparationOptions options = place.options();
    const pid_t outer = forked([&] {
      ::setpgid(0, 0);
      return runSeparated(options, [&](Privileged&) {
        sigset_t awaited;
        sigemptyset(&awaited);
        sigaddset(&awaited, number);
        ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
        report.say(::getpgrp() == ::getpid() ? "ready" : "in the parent's group");
        int got = 0;
        ::sigwait(&awaited, &got);
        const timespec soon{0, 200'000'000};
        return ::sigtimedwait(&awaited, nullptr, &soon) < 0 ? got : 100;
      });
    });
    report.listen();
    REQUIRE(report.line() == "ready");
    // To the whole group, as Ctrl-C does.
    REQUIRE(::kill(-outer, number) == 0);
    CHECK(await(outer) == number);
  }
}

TEST_CASE("a signal during a hook reaches the worker", "[privileged][root]") {
  const Place place;
  const std::string started = place.scratch.file("started");
  const std::string finish = place.scratch.file("finish");
  REQUIRE(::mkfifo(started.c_str(), 0600) == 0);
  REQUIRE(::mkfifo(finish.c_str(), 0600) == 0);
  Report report;
  config::Config config;
  config.interface.preUp = hooks(1, {"echo > " + started + "; read line < " + finish});
  const pid_t outer = forked([&] {
    spdlog::set_level(spdlog::level::off);
    // Before there are threads, so that none of them takes it.
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
    return runSeparated(place.options(config), [&](Privileged& privileged) {
      Result<void> ran;
      std::thread hook([&] { ran = privileged.runHooks(HookKind::PreUp); });
      int got = 0;
      ::sigwait(&awaited, &got);
      report.say("signalled");
      hook.join();
      return ran ? 9 : 3;
    });
  });
  report.listen();
  // Opens when the hook runs.
  CHECK(place.scratch.read("started") == "\n");
  REQUIRE(::kill(outer, SIGTERM) == 0);
  CHECK(report.line() == "signalled");
  std::ofstream(finish) << "\n";
  CHECK(await(outer) == 9);
}

TEST_CASE("without the rights to separate the worker runs in process", "[privileged][root]") {
  const Place place;
  place.scratch.write("sys/net/ipv4/ip_forward", "0\n");
  std::filesystem::permissions(place.scratch.path(), std::filesystem::perms{0777});
  std::filesystem::permissions(place.scratch.file("sys/net/ipv4/ip_forward"),
                               std::filesystem::perms{0666});
  Report report;
  SeparationOptions options = place.options();
  options.cleanup = [&] { report.say("cleaned"); };
  const pid_t outer = forked([&] {
    spdlog::set_level(spdlog::level::off);
    // What `docker run --user 12345 --cap-add NET_ADMIN` gives.
    if (!confine({"container", 12345, 12345}, {CAP_NET_ADMIN}, ::getppid())) return 3;
    const pid_t self = ::getpid();
    return runSeparated(options, [&](Privileged& privileged) {
      if (::getpid() != self) return 4;
      std::ofstream("mark") << "new";
      return privileged.writeSysctl("net/ipv4/ip_forward", "1") ? 6 : 5;
    });
  });
  report.listen();
  CHECK(await(outer) == 6);
  CHECK(report.line() == "cleaned");
  CHECK(place.scratch.read("state/tun7/mark") == "new");
}

TEST_CASE("without CAP_NET_ADMIN nothing starts", "[privileged][root]") {
  const Place place;
  Report report;
  const pid_t outer = forked([&] {
    spdlog::set_level(spdlog::level::off);
    if (!confine({"nobody", 65534, 65534}, {}, ::getppid())) return 3;
    const auto rightsOrError = checkRights();
    report.say(rightsOrError ? "has" : rightsOrError.error().message);
    return runSeparated(place.options(), [](Privileged&) { return 4; });
  });
  report.listen();
  CHECK_THAT(report.line(), Catch::Contains("CAP_NET_ADMIN") && Catch::Contains("run it as root"));
  CHECK(await(outer) == 1);
  CHECK_FALSE(std::filesystem::exists(place.scratch.file("state")));
}

TEST_CASE("a user namespace without the worker's user is not separable", "[privileged][root]") {
  Report report;
  const pid_t outer = forked([&] {
    // The new namespace maps no user at all.
    if (::unshare(CLONE_NEWUSER) != 0) {
      report.say("skipped");
      return 0;
    }
    const auto separable = checkSeparable(workerIdentity());
    report.say(separable ? "separable" : "not separable");
    return 0;
  });
  report.listen();
  const std::string line = report.line();
  CHECK(await(outer) == 0);
  CHECK((line == "not separable" || line == "skipped"));
}

TEST_CASE("threads before the separation are a programming error", "[privileged][root]") {
  const Place place;
  std::promise<void> done;
  std::thread waiting([&] { done.get_future().wait(); });
  CHECK_THROWS_AS(runSeparated(place.options(), [](Privileged&) { return 0; }), std::logic_error);
  done.set_value();
  waiting.join();
}
