// The adit program as a person runs it: arguments, standard output, standard error, exit status.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <nlohmann/json.hpp>
#include <regex>

#include "config/parser.hpp"
#include "control/paths.hpp"
#include "control/wg_format.hpp"
#include "fake_daemon.hpp"
#include "skip.hpp"

using namespace adit;
using namespace adit::cli::testing;
using namespace adit::control::testing;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using control::testing::FakeDevice;
using Json = nlohmann::ordered_json;

namespace {

const std::string kConfig = fmt::format(
    "[Interface]\nPrivateKey = {}  # the server's\nAddress = 10.10.0.1/24\nListenPort = 51820\n"
    "\n# the NAS\n[Peer]\nName = nas\nPublicKey = {}\nAllowedIPs = 10.10.0.2/32\n"
    "\n[Map]\nListen = tcp/18080\nTo = nas:80\nSource = masquerade\n",
    kPrivateKey, kFirstPeer);

/// Stands for aditd: writes its arguments to FILE and ends as told.
std::string fakeDaemonScript(const Sandbox& sandbox, int status) {
  return sandbox.write("aditd",
                       fmt::format("#!/bin/sh\necho \"$@\" > '{}/arguments'\n"
                                   "[ {} = 0 ] || echo 'aditd: no /dev/net/tun' >&2\nexit {}\n",
                                   sandbox.path().string(), status, status),
                       0700);
}

std::string argumentsOf(const Sandbox& sandbox) {
  return shell(fmt::format("cat '{}/arguments'", sandbox.path().string())).out;
}

/// The same but for "latest handshake: 5 seconds ago": a second may pass between two runs.
std::string withoutAges(const std::string& text) {
  static const std::regex age("(latest handshake: ).*");
  return std::regex_replace(text, age, "$1");
}

bool isRoot() {
  return ::geteuid() == 0;
}

}  // namespace

TEST_CASE("adit: help of every command has an example") {
  const std::string commands = runAdit("--help").out;
  for (const std::string name :
       {"up", "down", "reload", "save", "status", "check", "strip", "show", "showconf", "set",
        "setconf", "addconf", "syncconf", "genkey", "genpsk", "pubkey"}) {
    INFO(name);
    CHECK_THAT(commands, Contains("\n  " + name + " "));
    const Outcome help = runAdit(name + " --help");
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Contains("Example"));
    CHECK(help.err.empty());
    CHECK(runAdit("help " + name).out == help.out);
  }
}

TEST_CASE("adit: a wrong command line is one failure with a hint") {
  const auto [arguments, expected] = GENERATE(table<std::string, std::string>({
      {"shwo", "did you mean `adit show`?"},
      {"xyzzy", "`adit help` lists them"},
      {"help statsu", "did you mean `adit status`?"},
      {"show --jsn", "see `adit show --help`"},
      {"show a b c", "see `adit show --help`"},
      {"--nonsense", "see `adit help`"},
      {"genkey x", "see `adit genkey --help`"},
      {"check", "FILE is required"},
      {"set adit0", "what to set"},
      {"show interfaces dump", "takes no field"},
      {"show adit0 --json dump", "leave the field out"},
      {"up a/b", "NAME.conf"},
      {"up 0123456789abcdef", "15 bytes"},
  }));
  const Outcome outcome = runAdit(arguments);
  INFO(arguments);
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, StartsWith("adit: ") && Contains(expected));
}

TEST_CASE("adit: the version") {
  CHECK_THAT(runAdit("--version").out, StartsWith("adit "));
  CHECK(runAdit("version").out == runAdit("--version").out);
  CHECK(runAdit("version").status == 0);
}

TEST_CASE("adit: keys come out as wg(8) makes them") {
  const Outcome keys = shell("adit genkey | tee /dev/stderr | adit pubkey");
  CHECK(keys.status == 0);
  const auto key = crypto::PrivateKey::fromBase64(keys.err.substr(0, 44));
  REQUIRE(key);
  CHECK(key->toBase64() + "\n" == keys.err);
  CHECK(keys.out == key->publicKey().toBase64() + "\n");
  const std::string psk = runAdit("genpsk").out;
  CHECK(psk.size() == 45);
  CHECK(psk != runAdit("genpsk").out);
}

TEST_CASE("adit: pubkey refuses what is no key and does not print it") {
  const std::string almost = std::string(kPrivateKey).substr(1);
  for (const std::string& text : {std::string(), std::string("short"), almost, almost + "!",
                                  std::string(kPrivateKey) + "x"}) {
    const Outcome outcome = shell(fmt::format("printf %s '{}' | adit pubkey", text));
    INFO(text);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, StartsWith("adit: ") && !Contains(almost));
  }
  CHECK(shell(fmt::format("printf '%s \\n\\0' '{}' | adit pubkey", kPrivateKey)).out ==
        std::string(kPublicKey) + "\n");
}

TEST_CASE("adit: genkey warns of a file that others can read") {
  const Sandbox sandbox;
  const std::string folder = sandbox.path().string();
  const Outcome open = shell(fmt::format("umask 022; adit genkey > '{}/open'", folder));
  CHECK(open.status == 0);
  CHECK(open.err ==
        "Warning: writing to world accessible file.\n"
        "Consider setting the umask to 077 and trying again.\n");
  CHECK(shell(fmt::format("umask 077; adit genkey > '{}/closed'", folder)).err.empty());
}

TEST_CASE("adit: a full disk is a failure, a reader that left is none to talk of") {
  const Outcome full = shell("adit genkey > /dev/full");
  CHECK(full.status == 1);
  CHECK_THAT(full.err, Contains("No space left"));
  CHECK(shell("adit --help | head -n1 >/dev/null").err.empty());
}

TEST_CASE("adit: show prints what wg(8) prints") {
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  const control::DeviceView view = control::viewOf(device.state);
  for (const std::string field : {"public-key", "private-key", "listen-port", "fwmark", "peers",
                                  "preshared-keys", "endpoints", "allowed-ips", "latest-handshakes",
                                  "transfer", "persistent-keepalive", "dump"}) {
    INFO(field);
    CHECK(runAdit("show adit0 " + field).out == control::formatField(view, field, false));
    CHECK(runAdit("show all " + field).out == control::formatField(view, field, true));
  }
  CHECK(runAdit("showconf adit0").out == control::formatConf(view));
  CHECK(runAdit("show interfaces").out == "adit0\n");
  CHECK_THAT(runAdit("show").out, StartsWith("interface: adit0\n  public key: "));
  CHECK(withoutAges(runAdit("show").out) == withoutAges(runAdit("").out));
  CHECK_THAT(runAdit("show adit0").out,
             Contains("private key: (hidden)") && !Contains(kPrivateKey));
  CHECK_THAT(shell("WG_HIDE_KEYS=never adit show adit0").out,
             Contains(kPrivateKey) && Contains(kPresharedKey));
  CHECK_THAT(shell("WG_COLOR_MODE=always adit show").out, Contains("\x1b[32m"));
  CHECK_THAT(shell("ADIT_COLOR_MODE=never WG_COLOR_MODE=always adit show").out, !Contains("\x1b"));
}

TEST_CASE("adit: several interfaces are shown one after the other") {
  const Sandbox sandbox;
  FakeDevice first;
  FakeDevice second;
  second.state.name = "adit1";
  const FakeDaemon one(first);
  const FakeDaemon two(second, "adit1");
  CHECK(runAdit("show interfaces").out == "adit0 adit1\n");
  CHECK_THAT(runAdit("show").out, Contains("192.168.4.4/32\n\ninterface: adit1\n"));
  CHECK(runAdit("show all listen-port").out == "adit0\t12912\nadit1\t12912\n");
  CHECK(Json::parse(runAdit("show --json").out).size() == 2);
  const Json both = Json::parse(runAdit("status --json").out);
  REQUIRE(both.size() == 2);
  CHECK(both[1]["name"] == "adit1");
  CHECK(both[1]["peers"][0]["latest_handshake_age"].is_null());
  CHECK(Json::parse(runAdit("status adit1 --json").out)["name"] == "adit1");
  CHECK_THAT(runAdit("status").out, Contains("adit0: up\n") && Contains("\n\nadit1: up\n"));
}

TEST_CASE("adit: without a daemon a list of all is empty") {
  const Sandbox sandbox;
  const Outcome outcome = runAdit("status --json");
  CHECK(outcome.status == 0);
  CHECK(Json::parse(outcome.out) == Json::array());
}

TEST_CASE("adit: without a daemon the errors say what to do") {
  const Sandbox sandbox;
  for (const std::string command :
       {"show adit0", "show adit0 dump", "showconf adit0", "set adit0 listen-port 1",
        "reload adit0", "status adit0", "show adit0 --json"}) {
    const Outcome outcome = runAdit(command);
    INFO(command);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == fmt::format("adit: adit0 is not up (no daemon listens at {}/adit0.sock); "
                                     "start it with `adit up adit0`\n",
                                     sandbox.path().string()));
  }
  CHECK(runAdit("show").status == 0);
  CHECK(runAdit("show").out.empty());
  CHECK(runAdit("show interfaces").status == 0);
  CHECK_THAT(runAdit("status").err, Contains("no interface is up"));
}

TEST_CASE("adit: a socket that nobody serves counts as down") {
  const Sandbox sandbox;
  sandbox.write("adit0.sock", "");
  CHECK(runAdit("show interfaces").out.empty());
  CHECK_THAT(runAdit("show adit0").err, Contains("is not up"));
}

TEST_CASE("adit: a daemon that hangs up is told of") {
  const Sandbox sandbox;
  const cli::testing::SocketServer server(control::controlSocket("adit0"), "\n",
                                          [](std::string_view) { return std::string(); });
  const Outcome outcome = runAdit("show adit0");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("adit0.log") || Contains("run as root"));
}

TEST_CASE("adit: set sends one change and prints the notes") {
  const Sandbox sandbox;
  FakeDevice device;
  device.outcome = std::vector<std::string>{"10.0.0.0/8 was taken from nas"};
  const FakeDaemon daemon(device);
  const std::string psk = sandbox.write("psk", kPresharedKey);
  const Outcome outcome =
      runAdit(fmt::format("set adit0 listen-port 7 peer {} preshared-key '{}' endpoint "
                          "[2001:db8::1]:5 allowed-ips -10.0.0.0/8,+10.1.0.9/16",
                          kFirstPeer, psk));
  CHECK(outcome.status == 0);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("adit: allowed-ips: 10.1.0.9/16 has host bits") &&
                              Contains("adit: 10.0.0.0/8 was taken from nas\n"));
  REQUIRE(device.changes.size() == 1);
  CHECK(device.changes[0].listenPort == 7);
  REQUIRE(device.changes[0].peers.size() == 1);
  const control::PeerChange& peer = device.changes[0].peers[0];
  CHECK(peer.publicKey == publicKey(kFirstPeer));
  CHECK(peer.presharedKey == crypto::presharedKeyFromBase64(kPresharedKey).value());
  CHECK(peer.endpoint->toString() == "[2001:db8::1]:5");
  CHECK_FALSE(peer.replaceAllowedIps);
  CHECK(peer.removeAllowedIps.size() == 1);
  CHECK(peer.addAllowedIps.size() == 1);
}

TEST_CASE("adit: set refuses wrong words before it asks the daemon") {
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  for (const std::string words :
       {"listen-port x", "peer x", "endpoint 1.2.3.4:5", "peer --remove",
        "peer uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM= endpoint 2001:db8::7:51820",
        "private-key /nonexistent", "-h"}) {
    const Outcome outcome = runAdit("set adit0 " + words);
    INFO(words);
    CHECK((outcome.status == 1 || words == "-h"));
    CHECK(device.changes.empty());
  }
  CHECK_THAT(runAdit("set adit0 peer uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM= endpoint "
                     "2001:db8::7:51820")
                 .err,
             Contains("[2001:db8::7]"));
}

TEST_CASE("adit: the daemon's refusal is passed on") {
  const Sandbox sandbox;
  FakeDevice device;
  device.outcome = tl::unexpected(Error{"UDP port 53 is taken by systemd-resolve", EADDRINUSE});
  const FakeDaemon daemon(device);
  const Outcome outcome = runAdit("set adit0 listen-port 53");
  CHECK(outcome.status == 1);
  CHECK(outcome.err == "adit: UDP port 53 is taken by systemd-resolve\n");
  CHECK(runAdit("reload adit0").status == 1);
}

TEST_CASE("adit: setconf, addconf and syncconf") {
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  const std::string file = sandbox.write("running.wg", runAdit("showconf adit0").out);
  REQUIRE(runAdit(fmt::format("setconf adit0 '{}'", file)).status == 0);
  REQUIRE(runAdit(fmt::format("addconf adit0 '{}'", file)).status == 0);
  REQUIRE(runAdit(fmt::format("syncconf adit0 '{}'", file)).status == 0);
  REQUIRE(device.changes.size() == 3);
  CHECK(device.changes[0].replacePeers);
  CHECK(device.changes[0].peers.size() == 3);
  CHECK_FALSE(device.changes[1].replacePeers);
  CHECK(device.changes[1].peers.size() == 3);
  CHECK_FALSE(device.changes[2].replacePeers);
  CHECK(device.changes[2].peers.empty());
  CHECK_FALSE(device.changes[2].privateKey);
}

// Case 7 of the collected cases: a whole file given to the command for the tunnel's own keys.
TEST_CASE("adit: setconf names the command for a whole file") {
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  const std::string file = sandbox.write("adit0.conf", kConfig);
  const Outcome outcome = runAdit(fmt::format("setconf adit0 '{}'", file));
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("Address does not belong here") && Contains("reload") &&
                              !Contains(kPrivateKey));
  CHECK(device.changes.empty());
}

TEST_CASE("adit: strip makes a file that setconf takes") {
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  sandbox.write("adit0.conf", kConfig);
  const Outcome stripped = runAdit("strip adit0");
  CHECK(stripped.status == 0);
  CHECK(
      stripped.out ==
      fmt::format("[Interface]\nPrivateKey = {}  # the server's\nListenPort = 51820\n\n# the NAS\n"
                  "[Peer]\nPublicKey = {}\nAllowedIPs = 10.10.0.2/32\n\n",
                  kPrivateKey, kFirstPeer));
  const std::string file = sandbox.write("stripped", stripped.out);
  CHECK(runAdit(fmt::format("setconf adit0 '{}'", file)).status == 0);
}

TEST_CASE("adit: strip writes the keys of key files and reads NAME.d") {
  const Sandbox sandbox;
  sandbox.write("private", std::string(kPrivateKey) + "\n");
  sandbox.write("psk", std::string(kPresharedKey) + "\n");
  sandbox.write(
      "adit0.conf",
      fmt::format("[Interface]\nPrivateKeyFile = private\nAddress = 10.10.0.1/24\n[Peer]\n"
                  "PublicKey = {}\nAllowedIPs = 10.10.0.2/32\n",
                  kFirstPeer));
  std::filesystem::create_directory(sandbox.path() / "adit0.d");
  sandbox.write("adit0.d/more.conf",
                fmt::format("[Peer]\nPublicKey = {}\nPresharedKeyFile = ../psk\n"
                            "AllowedIPs = 10.10.0.3/32\n",
                            kSecondPeer));
  const Outcome outcome = runAdit("strip adit0");
  INFO(outcome.err);
  CHECK(outcome.out ==
        fmt::format("[Interface]\nPrivateKey = {}\n[Peer]\nPublicKey = {}\n"
                    "AllowedIPs = 10.10.0.2/32\n[Peer]\nPublicKey = {}\nPresharedKey = {}\n"
                    "AllowedIPs = 10.10.0.3/32\n",
                    kPrivateKey, kFirstPeer, kSecondPeer, kPresharedKey));
}

TEST_CASE("adit: check lists everything that is wrong, without keys") {
  const Sandbox sandbox;
  const std::string good = sandbox.write("adit0.conf", kConfig);
  CHECK(runAdit(fmt::format("check '{}'", good)).out == good + ": ok (1 peer, 1 mapping)\n");
  CHECK(runAdit("check adit0").out == good + ": ok (1 peer, 1 mapping)\n");

  const std::string bad = sandbox.write(
      "bad.conf",
      fmt::format("[Interface]\nPrivateKey = {}\nListenPort = 70000\nAdress = 10.0.0.1\n",
                  kPrivateKey));
  const Outcome outcome = runAdit(fmt::format("check '{}'", bad));
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains(bad + ":3:") && Contains(bad + ":4:") && !Contains(kPrivateKey));

  const Outcome asJson = runAdit(fmt::format("check --json '{}'", bad));
  CHECK(asJson.status == 1);
  const Json json = Json::parse(asJson.out);
  CHECK(json["ok"] == false);
  CHECK(json["diagnostics"].size() >= 2);
  CHECK(json["diagnostics"][0]["line"] == 3);
  CHECK(Json::parse(runAdit("check --json adit0").out)["ok"] == true);
  CHECK(runAdit("check nowhere").status == 1);
}

TEST_CASE("adit: reload prints what changed") {
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  CHECK(runAdit("reload adit0").out == "adit0: nothing changed\n");
  device.outcome = std::vector<std::string>{"peer nas: endpoint", "mapping tcp/18080 added"};
  CHECK(runAdit("reload adit0").out == "peer nas: endpoint\nmapping tcp/18080 added\n");
  CHECK(device.reloads == 2);
}

namespace {

/// A device that was started from `file` and still is as that says.
control::DeviceSnapshot startedFrom(const std::string& file) {
  const config::Outcome loaded = config::load(file);
  REQUIRE(loaded.ok());
  control::DeviceSnapshot device;
  device.name = "adit0";
  device.privateKey = loaded.config->interface.privateKey;
  device.configured = {.listenPort = loaded.config->interface.listenPort,
                       .firewallMark = std::nullopt,
                       .files = loaded.files};
  for (const config::PeerConfig& peer : loaded.config->peers) {
    control::PeerSnapshot& snapshot = device.peers.emplace_back();
    snapshot.publicKey = peer.publicKey;
    snapshot.allowedIps = peer.allowedIps;
    snapshot.configuredEndpoint = peer.endpoint ? peer.endpoint->toString() : "";
    snapshot.endpoint = Endpoint::parse("198.51.100.77:7777").value();
  }
  return device;
}

}  // namespace

TEST_CASE("adit: save writes what was set, not what was learned") {
  const Sandbox sandbox;
  const std::string file = sandbox.write("adit0.conf", kConfig);
  FakeDevice device(startedFrom(file));
  const FakeDaemon daemon(device);
  CHECK_THAT(runAdit("save adit0").out, Contains("nothing to save"));
  CHECK(shell("cat " + file).out == kConfig);

  device.state.configured.firewallMark = 0;
  device.state.peers[0].persistentKeepalive = 25;
  control::PeerSnapshot& added = device.state.peers.emplace_back();
  added.publicKey = publicKey(kSecondPeer);
  added.presharedKey = crypto::presharedKeyFromBase64(kPresharedKey).value();
  const Outcome outcome = runAdit("save adit0");
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("PersistentKeepalive: off -> 25") && Contains("added") &&
                              !Contains(kPresharedKey));
  const std::string text = shell("cat " + file).out;
  CHECK_THAT(text, Contains("# the NAS\n[Peer]\n") && Contains("PersistentKeepalive = 25") &&
                       Contains(kSecondPeer) && Contains(kPresharedKey) &&
                       Contains("# the server's") && !Contains("198.51.100.77") &&
                       !Contains("FwMark"));
  // The daemon knows of the new file, so that the next save is not refused.
  CHECK_THAT(runAdit("save adit0").out, Contains("nothing to save"));
}

TEST_CASE("adit: save refuses a file that was edited meanwhile") {
  const Sandbox sandbox;
  const std::string file = sandbox.write("adit0.conf", kConfig);
  FakeDevice device(startedFrom(file));
  const FakeDaemon daemon(device);
  device.state.peers[0].persistentKeepalive = 25;
  sandbox.write("adit0.conf", kConfig + "# more\n");
  const Outcome outcome = runAdit("save adit0");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("adit reload adit0"));
  CHECK(shell("cat " + file).out == kConfig + "# more\n");
}

TEST_CASE("adit: save leaves a key that a command or a hook gives out of the file") {
  const Sandbox sandbox;
  std::string text = kConfig;
  const std::string key = fmt::format("PrivateKey = {}  # the server's", kPrivateKey);
  text.replace(text.find(key), key.size(), "PrivateKeyCommand = cat /root/key");
  const std::string file = sandbox.write("adit0.conf", text);
  FakeDevice device(startedFrom(file));
  const FakeDaemon daemon(device);
  device.state.privateKey = crypto::PrivateKey::fromBase64(kPrivateKey).value();
  device.state.peers[0].persistentKeepalive = 25;
  const Outcome outcome = runAdit("save adit0");
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, Contains("PrivateKeyCommand"));
  CHECK_THAT(shell("cat " + file).out,
             !Contains(kPrivateKey) && Contains("PersistentKeepalive = 25"));
}

TEST_CASE("adit: status in words") {
  const Sandbox sandbox;
  FakeDevice device(richSnapshot());
  const FakeDaemon daemon(device);
  const Outcome outcome = runAdit("status adit0");
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out,
             StartsWith("adit0: up\n  backend: userspace (adit.ko is not loaded)\n"
                        "  addresses: 10.10.0.1/24, fd10::1/64\n  mtu: 1420\n") &&
                 Contains("  cipher speed, one core: chacha20-poly1305 1200 MB/s, aes-256-gcm 3400 "
                          "MB/s, aes-128-gcm 3600 MB/s\n") &&
                 Contains("  drops: too short 3, unknown receiver 17\n") &&
                 Contains(fmt::format("  peer: nas ({})\n", kSecondPeer)) &&
                 Contains("    cipher: aes-256-gcm\n") &&
                 Contains("    endpoint: vps.example.net:51820 (not resolved yet)\n") &&
                 Contains("    drops: replay 9\n") && Contains("    latest handshake: never\n") &&
                 Contains("    latest handshake: now\n") &&
                 Contains("  LISTEN         TO              SOURCE      STATE\n") &&
                 Contains("  tcp/18080      nas:80          preserve    active\n") &&
                 Contains("  udp/5000-5009  10.10.0.2:5000  masquerade  inactive: the port is "
                          "taken\n") &&
                 Contains("  warning: IPv6 is off; "));
  CHECK_THAT(outcome.out, !Contains(kPrivateKey) && !Contains(kPresharedKey));
}

// Case 28 of the collected cases: ages are never negative.
TEST_CASE("adit: status as one JSON object") {
  const Sandbox sandbox;
  FakeDevice device(richSnapshot());
  const FakeDaemon daemon(device);
  const std::string text = runAdit("status adit0 --json").out;
  CHECK_THAT(text, !Contains(kPrivateKey) && !Contains(kPresharedKey));
  const Json json = Json::parse(text);
  CHECK(json["backend"] == "userspace");
  CHECK(json["backend_reason"] == "adit.ko is not loaded");
  CHECK(json["mtu"] == 1420);
  CHECK(json["addresses"] == Json{"10.10.0.1/24", "fd10::1/64"});
  CHECK(json["maps"][0]["active"] == true);
  CHECK(json["maps"][0]["to"] == "nas");
  CHECK(json["maps"][0]["targets"] == Json{"10.10.0.2:80"});
  CHECK(json["maps"][1]["reason"] == "the port is taken");
  CHECK(json["warnings"].size() == 1);
  CHECK(json["drops"]["unknown receiver"] == 17);
  REQUIRE(json["peers"].size() == 3);
  CHECK(json["peers"][0]["latest_handshake"] == 0);
  CHECK(json["peers"][0]["latest_handshake_age"].is_null());
  CHECK(json["peers"][1]["cipher"] == "aes-256-gcm");
  CHECK(json["peers"][1]["rx_bytes"] == 2224);
  CHECK(json["peers"][1]["latest_handshake_age"].get<std::int64_t>() >=
        std::time(nullptr) - 1'000'000'000 - 60);
  CHECK(json["peers"][2]["latest_handshake_age"] == 0);
}

TEST_CASE("adit: down asks the daemon and waits until it is gone") {
  const Sandbox sandbox;
  FakeDevice device;
  auto daemon = std::make_unique<FakeDaemon>(device);
  std::thread ending([&] {
    while (device.downs == 0)
      std::this_thread::yield();
    daemon.reset();
  });
  const Outcome outcome = runAdit("down adit0");
  ending.join();
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  CHECK(device.downs == 1);
}

TEST_CASE("adit: down without a daemon runs the clean-up and ends as it does") {
  if (!isRoot()) {
    adit::testing::skip("not root: the clean-up is not tried");
    return;
  }
  const Sandbox sandbox;
  for (const int status : {0, 1, 3}) {
    ::setenv("ADITD", fakeDaemonScript(sandbox, status).c_str(), 1);
    const Outcome outcome = runAdit("down adit0");
    CHECK(outcome.status == (status == 0 ? 0 : 1));
    CHECK(argumentsOf(sandbox) == "--cleanup adit0\n");
  }
}

TEST_CASE("adit: up checks the file before it starts anything") {
  const Sandbox sandbox;
  ::setenv("ADITD", fakeDaemonScript(sandbox, 0).c_str(), 1);
  sandbox.write("adit0.conf", "[Interface]\nAddress = 10.0.0.300\nListenPort = x\n");
  const Outcome outcome = runAdit("up adit0");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("adit0.conf:2:") && Contains("adit0.conf:3:"));
  CHECK_FALSE(std::filesystem::exists(sandbox.path() / "arguments"));
  CHECK_THAT(runAdit("up adit9").err, Contains("adit9.conf"));
}

TEST_CASE("adit: up starts the daemon and ends as it does") {
  if (!isRoot()) {
    adit::testing::skip("not root: the daemon is not started");
    return;
  }
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig);
  ::setenv("ADITD", fakeDaemonScript(sandbox, 0).c_str(), 1);
  CHECK(runAdit("up adit0").status == 0);
  CHECK(argumentsOf(sandbox) == "--daemon adit0\n");
  // The daemon reads the file itself and prints its warnings.
  sandbox.write("adit0.conf", kConfig, 0644);
  CHECK(runAdit("up adit0").err.empty());
  CHECK_THAT(runAdit("check adit0").err, Contains("chmod 600"));

  ::setenv("ADITD", fakeDaemonScript(sandbox, 3).c_str(), 1);
  const Outcome failed = runAdit("up adit0");
  CHECK(failed.status == 1);
  CHECK(failed.err == "aditd: no /dev/net/tun\n");

  ::setenv("ADITD", "/nonexistent/aditd", 1);
  CHECK_THAT(runAdit("up adit0").err, Contains("ADITD=/nonexistent/aditd"));

  ::setenv("ADITD", sandbox.write("killed", "#!/bin/sh\nkill -9 $$\n", 0700).c_str(), 1);
  const Outcome killed = runAdit("up adit0");
  CHECK(killed.status == 1);
  CHECK_THAT(killed.err, Contains("signal 9"));
}

TEST_CASE("adit: up of what is up already is refused") {
  if (!isRoot()) {
    adit::testing::skip("not root: nothing is started");
    return;
  }
  const Sandbox sandbox;
  FakeDevice device;
  const FakeDaemon daemon(device);
  sandbox.write("adit0.conf", kConfig);
  ::setenv("ADITD", fakeDaemonScript(sandbox, 0).c_str(), 1);
  const Outcome outcome = runAdit("up adit0");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("already up") && Contains("adit reload adit0"));
  CHECK_FALSE(std::filesystem::exists(sandbox.path() / "arguments"));
}

TEST_CASE("adit: a person without root is told so") {
  if (!isRoot()) {
    adit::testing::skip("not root: the test cannot become somebody else");
    return;
  }
  const Sandbox sandbox;
  const std::string file = sandbox.write("adit0.conf", kConfig, 0644);
  REQUIRE(::chmod(sandbox.path().c_str(), 0755) == 0);
  // The build tree may lie where only root can look.
  const std::filesystem::path program = sandbox.path() / "adit";
  std::filesystem::copy_file(ADIT_PROGRAM, program);
  const std::string somebody =
      fmt::format("setpriv --reuid 65534 --regid 65534 --clear-groups -- '{}' ", program.string());
  const Outcome up = shell(somebody + fmt::format("up '{}'", file));
  CHECK(up.status == 1);
  CHECK_THAT(up.err, Contains("needs root") && Contains("sudo adit up"));

  FakeDevice device;
  const FakeDaemon daemon(device);
  REQUIRE(::chmod(control::controlSocket("adit0").c_str(), 0600) == 0);
  const Outcome show = shell(somebody + "show adit0");
  CHECK(show.status == 1);
  CHECK_THAT(show.err, Contains("permission denied") && Contains("run as root"));
}
