#include <catch2/catch.hpp>
#include <chrono>

#include "control/privileged_direct.hpp"
#include "crypto/key.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;
using namespace std::chrono_literals;

namespace {

/// A DirectPrivileged for interface tun7 with `config` loaded.
DirectPrivileged loaded(const PrivilegedSystem& system) {
  DirectPrivileged privileged("tun7", "tun7.conf", system);
  REQUIRE(privileged.loadConfig().ok());
  return privileged;
}

/// Records its arguments, one call a line.
void recordLogger(const ScratchDirectory& scratch) {
  scratch.program("logger", R"(for word; do printf '<%s>' "$word"; done >> )" +
                                scratch.file("log") + "; echo >> " + scratch.file("log"));
}

}  // namespace

TEST_CASE("case 20: hooks are shell text, run in file order", "[privileged]") {
  ScratchDirectory scratch;
  recordLogger(scratch);
  scratch.program("show", R"(echo "$1-$2")");
  config::Config config;
  config.interface.postUp =
      hooks(3, {R"(logger -t %i "up #1"; logger second)", "true", "logger '%i %i' # not for logger",
                R"(logger "$ADIT_INTERFACE" "${HOME:-none}")"});
  config.interface.preDown = hooks(9, {"logger mark $(show %i fwmark)"});
  auto privileged = loaded(systemWith(scratch, config));
  REQUIRE(privileged.runHooks(HookKind::PostUp));
  CHECK(scratch.read("log") == "<-t><tun7><up #1>\n<second>\n<tun7 tun7>\n<tun7><none>\n");
  REQUIRE(privileged.runHooks(HookKind::PreDown));
  CHECK_THAT(scratch.read("log"), Catch::EndsWith("<mark><tun7-fwmark>\n"));
}

TEST_CASE("hooks see where the daemon keeps its files", "[privileged]") {
  ScratchDirectory scratch;
  recordLogger(scratch);
  config::Config config;
  config.interface.preUp = hooks(1, {R"(logger "$ADIT_RUNTIME_DIR" "${ADIT_STATE_DIR:-none}")"});
  auto privileged = loaded(systemWith(scratch, config));
  ::setenv("ADIT_RUNTIME_DIR", "/run/elsewhere", 1);
  const auto run = privileged.runHooks(HookKind::PreUp);
  ::unsetenv("ADIT_RUNTIME_DIR");
  REQUIRE(run);
  CHECK(scratch.read("log") == "</run/elsewhere><none>\n");
}

TEST_CASE("case 20: each kind runs its own hooks alone", "[privileged]") {
  ScratchDirectory scratch;
  recordLogger(scratch);
  config::Config config;
  config.interface.preUp = hooks(1, {"logger PreUp"});
  config.interface.postUp = hooks(2, {"logger PostUp"});
  config.interface.preDown = hooks(3, {"logger PreDown"});
  config.interface.postDown = hooks(4, {"logger PostDown"});
  auto privileged = loaded(systemWith(scratch, config));
  REQUIRE(privileged.runHooks(HookKind::PostDown));
  REQUIRE(privileged.runHooks(HookKind::PreUp));
  REQUIRE(privileged.runHooks(HookKind::PreDown));
  REQUIRE(privileged.runHooks(HookKind::PostUp));
  CHECK(scratch.read("log") == "<PostDown>\n<PreUp>\n<PreDown>\n<PostUp>\n");
}

TEST_CASE("case 20: a failing PostUp stops the rest and names its line", "[privileged]") {
  ScratchDirectory scratch;
  recordLogger(scratch);
  config::Config config;
  config.interface.postUp = hooks(5, {"logger first", "exit 4 # %i", "logger never"});
  auto privileged = loaded(systemWith(scratch, config));
  const auto ran = privileged.runHooks(HookKind::PostUp);
  REQUIRE_FALSE(ran);
  CHECK(ran.error().message == "tun7.conf:6: PostUp exited with status 4: exit 4 # tun7");
  CHECK(scratch.read("log") == "<first>\n");
}

TEST_CASE("case 20: a failing Down hook is reported and the rest run", "[privileged]") {
  ScratchDirectory scratch;
  recordLogger(scratch);
  config::Config config;
  config.interface.postDown = hooks(5, {R"(logger "unbalanced)", "logger second", "kill -9 $$"});
  auto privileged = loaded(systemWith(scratch, config));
  const auto ran = privileged.runHooks(HookKind::PostDown);
  REQUIRE_FALSE(ran);
  CHECK(ran.error().message ==
        "tun7.conf:5: PostDown exited with status 2: logger \"unbalanced\n"
        "tun7.conf:7: PostDown was killed by signal 9: kill -9 $$");
  CHECK(scratch.read("log") == "<second>\n");
}

TEST_CASE("a hook that hangs is killed and reported", "[privileged]") {
  ScratchDirectory scratch;
  config::Config config;
  config.interface.preUp = hooks(5, {"sleep 60"});
  PrivilegedSystem system = systemWith(scratch, config);
  system.commandTimeout = 200ms;
  auto privileged = loaded(system);
  const auto ran = privileged.runHooks(HookKind::PreUp);
  REQUIRE_FALSE(ran);
  CHECK(ran.error().message ==
        "tun7.conf:5: PreUp did not end within 0.2 s and was killed: sleep 60");
}

TEST_CASE("hooks are those of the last configuration without errors", "[privileged]") {
  ScratchDirectory scratch;
  recordLogger(scratch);
  config::Outcome next;
  PrivilegedSystem system = systemWith(scratch, {});
  system.readConfig = [&next](const std::string&) { return next; };
  DirectPrivileged privileged("tun7", "tun7.conf", system);
  CHECK_FALSE(privileged.runHooks(HookKind::PreUp));

  next.config.emplace().interface.preUp = hooks(1, {"logger old"});
  REQUIRE(privileged.loadConfig().ok());
  next.config.reset();
  CHECK_FALSE(privileged.loadConfig().ok());
  REQUIRE(privileged.runHooks(HookKind::PreUp));
  CHECK(scratch.read("log") == "<old>\n");

  next.config.emplace().interface.preUp = hooks(1, {"logger new"});
  REQUIRE(privileged.loadConfig().ok());
  REQUIRE(privileged.runHooks(HookKind::PreUp));
  CHECK(scratch.read("log") == "<old>\n<new>\n");
}

TEST_CASE("an interface name that a shell would read is refused where %i stands", "[privileged]") {
  ScratchDirectory scratch;
  config::Config config;
  config.interface.postUp = hooks(5, {"true", "echo %i"});
  for (const char* name : {"a;reboot", "$(id)", "a'b", "a&b", "a`b", "a\"b", "a\\b", "~", "*"}) {
    DirectPrivileged privileged(name, "x.conf", systemWith(scratch, config));
    const config::Outcome outcome = privileged.loadConfig();
    CHECK_FALSE(outcome.ok());
    REQUIRE(outcome.diagnostics.size() == 1);
    CHECK(outcome.diagnostics[0].location.line == 6);
  }
  config.interface.postUp = hooks(5, {"true"});
  CHECK(DirectPrivileged("a;b", "x.conf", systemWith(scratch, config)).loadConfig().ok());
}

TEST_CASE("PrivateKeyCommand's output is the key", "[privileged]") {
  ScratchDirectory scratch;
  const auto key = crypto::PrivateKey::generate();
  scratch.write("key", key.toBase64() + "\n");
  config::Config config;
  config.interface.privateKeyCommand = "cat " + scratch.file("key");
  DirectPrivileged privileged("tun7", "tun7.conf", systemWith(scratch, config));
  const config::Outcome outcome = privileged.loadConfig();
  REQUIRE(outcome.ok());
  REQUIRE(outcome.config->interface.privateKey);
  CHECK(*outcome.config->interface.privateKey == key);
}

TEST_CASE("a PrivateKeyCommand that gives no key is an error without its output", "[privileged]") {
  ScratchDirectory scratch;
  const auto key = crypto::PrivateKey::generate().toBase64();
  config::Config config;
  config.interface.location = at(1);
  for (const auto& [command, reason] : std::vector<std::pair<std::string, std::string>>{
           {"exit 2", "PrivateKeyCommand exited with status 2"},
           {"echo", "PrivateKeyCommand must print a private key"},
           {"echo " + key + key, "PrivateKeyCommand must print a private key"},
           {"yes " + key, "PrivateKeyCommand"}}) {
    config.interface.privateKeyCommand = command;
    DirectPrivileged privileged("tun7", "tun7.conf", systemWith(scratch, config));
    const config::Outcome outcome = privileged.loadConfig();
    CHECK_FALSE(outcome.ok());
    REQUIRE(outcome.diagnostics.size() == 1);
    CHECK(outcome.diagnostics[0].location.line == 1);
    CHECK_THAT(outcome.diagnostics[0].message, Catch::StartsWith(reason));
    CHECK_THAT(outcome.diagnostics[0].message, !Catch::Contains(key));
  }
}

TEST_CASE("DNS goes to resolvconf as wg-quick's does", "[privileged]") {
  ScratchDirectory scratch;
  scratch.program("resolvconf", "{ echo \"$@\"; cat; } > " + scratch.file("calls"));
  config::Config config;
  config.interface.dnsServers = {IpAddress::parse("192.0.2.53").value(),
                                 IpAddress::parse("2001:db8::53").value()};
  config.interface.dnsSearch = {"example.net", "example.org"};
  auto privileged = loaded(systemWith(scratch, config));
  REQUIRE(privileged.setDns(config.interface.dnsServers, config.interface.dnsSearch));
  CHECK(scratch.read("calls") ==
        "-a tun7 -m 0 -x\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n"
        "search example.net example.org\n");
  REQUIRE(privileged.setDns({}, {}));
  CHECK(scratch.read("calls") == "-d tun7 -f\n");

  scratch.write("interface-order", "# order\nlo.inet6\nlo*[0-9]\ntun*\neth*\n");
  REQUIRE(privileged.setDns(config.interface.dnsServers, {}));
  CHECK(scratch.read("calls") ==
        "-a tun.tun7 -m 0 -x\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n");
  REQUIRE(privileged.setDns({}, {}));
  CHECK(scratch.read("calls") == "-d tun.tun7 -f\n");

  scratch.program("resolvconf", "exit 5");
  const auto failed = privileged.setDns({}, {});
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message,
             Catch::EndsWith("resolvconf -d tun.tun7 -f exited with status 5"));
}

TEST_CASE("DNS that the configuration does not name is refused", "[privileged]") {
  const QuietLog quiet;
  ScratchDirectory scratch;
  scratch.program("resolvconf", "touch " + scratch.file("called"));
  config::Config config;
  config.interface.dnsServers = {IpAddress::parse("192.0.2.53").value()};
  auto privileged = loaded(systemWith(scratch, config));
  CHECK_FALSE(privileged.setDns({IpAddress::parse("198.51.100.1").value()}, {}));
  CHECK_FALSE(privileged.setDns(config.interface.dnsServers, {"example.net\nnameserver 6.6.6.6"}));
  CHECK_FALSE(std::filesystem::exists(scratch.file("called")));
}

TEST_CASE("an absent resolvconf names its packages", "[privileged]") {
  ScratchDirectory scratch;
  PrivilegedSystem system = systemWith(scratch, {});
  system.searchPath = scratch.file("bin");
  config::Config config;
  config.interface.dnsServers = {IpAddress::parse("10.8.0.1").value()};
  system.readConfig = systemWith(scratch, config).readConfig;
  auto privileged = loaded(system);
  // It holds nothing of ours then.
  CHECK(privileged.setDns({}, {}));
  const auto failed = privileged.setDns(config.interface.dnsServers, {});
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message,
             Catch::Contains("install the package openresolv, or resolvconf"));
}

TEST_CASE("only the module adit is ever loaded", "[privileged]") {
  ScratchDirectory scratch;
  scratch.program("modprobe", "echo \"$@\" > " + scratch.file("calls"));
  auto privileged = loaded(systemWith(scratch, {}));
  REQUIRE(privileged.loadModule());
  CHECK(scratch.read("calls") == "adit\n");
  scratch.program("modprobe", "exit 1");
  const auto silent = privileged.loadModule();
  REQUIRE_FALSE(silent);
  CHECK(silent.error().code == 0);
  CHECK(silent.error().message ==
        "the kernel module adit does not load: modprobe exited with status 1");
  scratch.program("modprobe",
                  "echo 'modprobe: FATAL: Module adit not found in directory /lib/modules/1' >&2\n"
                  "echo more >&2\nexit 1");
  const auto absent = privileged.loadModule();
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ENOENT);
  CHECK(absent.error().message ==
        "the kernel module adit does not load: modprobe: FATAL: Module adit not found in "
        "directory /lib/modules/1");
}

TEST_CASE("no module is loaded for a configuration that does not ask for it", "[privileged]") {
  const QuietLog quiet;
  ScratchDirectory scratch;
  scratch.program("modprobe", "touch " + scratch.file("called"));
  config::Config config;
  config.interface.backend = config::Backend::Userspace;
  auto privileged = loaded(systemWith(scratch, config));
  CHECK_FALSE(privileged.loadModule());
  config.interface.backend = config::Backend::Kernel;
  DirectPrivileged unread("tun7", "tun7.conf", systemWith(scratch, config));
  CHECK_FALSE(unread.loadModule());
  CHECK_FALSE(std::filesystem::exists(scratch.file("called")));
  auto wanted = loaded(systemWith(scratch, config));
  CHECK(wanted.loadModule());
  CHECK(std::filesystem::exists(scratch.file("called")));
}

TEST_CASE("a TUN device that cannot be opened names the remedy", "[privileged]") {
  ScratchDirectory scratch;
  auto privileged = loaded(systemWith(scratch, {}));
  const auto absent = privileged.openTun();
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ENOENT);
  CHECK_THAT(absent.error().message, Catch::Contains("`modprobe tun`"));
  scratch.write("tun", "");
  CHECK(privileged.openTun());
}

TEST_CASE("a sysctl outside of the allow list is refused", "[privileged]") {
  const QuietLog quiet;
  ScratchDirectory scratch;
  scratch.write("sys/net/ipv4/ip_forward", "0\n");
  scratch.write("sys/kernel/core_pattern", "core\n");
  auto privileged = loaded(systemWith(scratch, {}));
  CHECK(privileged.writeSysctl("net/ipv4/ip_forward", "1").value() == "0");
  CHECK_FALSE(privileged.writeSysctl("kernel/core_pattern", "|/tmp/x"));
  CHECK_FALSE(privileged.writeSysctl("net/../kernel/core_pattern", "|/tmp/x"));
  CHECK(scratch.read("sys/kernel/core_pattern") == "core\n");
}
