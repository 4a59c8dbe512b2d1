// The stock wg(8) and adit look at the same device, one over WireGuard's cross-platform socket,
// the other over adit's: what they print and what they ask for must be the same.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "control/control_protocol.hpp"
#include "control/uapi.hpp"
#include "fake_daemon.hpp"
#include "skip.hpp"

using namespace adit;
using namespace adit::cli::testing;
using namespace adit::control::testing;

namespace {

namespace fs = std::filesystem;

/// Where wg(8) looks, whatever the environment says.
const fs::path kFolder = "/var/run/wireguard";

bool canCompare() {
  std::error_code error;
  fs::create_directories(kFolder, error);
  if (::access(kFolder.c_str(), W_OK) != 0 || shell("command -v wg").status != 0) {
    adit::testing::skip("needs wg of wireguard-tools and the right to write to " +
                        kFolder.string());
    return false;
  }
  return true;
}

/// The same device behind both sockets.
struct Both {
  Both() : name(fmt::format("acli{}", ::getpid() % 100000)) { device.state.name = name; }

  Sandbox sandbox;
  std::string name;
  FakeDevice device;
  SocketServer wireguard{kFolder / (name + ".sock"), "\n\n", [this](std::string_view request) {
                           return control::handleUapi(request, device);
                         }};
  FakeDaemon daemon{device, name};
};

/// Both tell ages to the second, so a clock that ticks between the two asks for another try.
void checkSameShow(const std::string& setting, const std::string& name) {
  constexpr int kTries = 30;
  Outcome ours;
  Outcome theirs;
  for (int i = 0; i < kTries; ++i) {
    ours = shell(fmt::format("{} adit show {}", setting, name));
    theirs = shell(fmt::format("{} wg show {}", setting, name));
    if (ours.out == theirs.out) break;
  }
  CHECK(theirs.status == 0);
  CHECK(ours.out == theirs.out);
}

}  // namespace

TEST_CASE("wg: prints what adit prints") {
  if (!canCompare()) return;
  Both both;
  for (const std::string field : {"public-key", "private-key", "listen-port", "fwmark", "peers",
                                  "preshared-keys", "endpoints", "allowed-ips", "latest-handshakes",
                                  "transfer", "persistent-keepalive", "dump"}) {
    INFO(field);
    const Outcome wg = shell(fmt::format("wg show {} {}", both.name, field));
    CHECK(wg.status == 0);
    CHECK(runAdit(fmt::format("show {} {}", both.name, field)).out == wg.out);
  }
  CHECK(runAdit("showconf " + both.name).out == shell("wg showconf " + both.name).out);
  for (const std::string setting : {"WG_COLOR_MODE=never", "WG_COLOR_MODE=always",
                                    "WG_HIDE_KEYS=never", "WG_HIDE_KEYS=always"}) {
    INFO(setting);
    checkSameShow(setting, both.name);
  }
}

TEST_CASE("wg: asks for what adit asks for") {
  if (!canCompare()) return;
  Both both;
  const std::string psk = both.sandbox.write("psk", kPresharedKey);
  const std::string key = both.sandbox.write("key", kPrivateKey);
  for (const std::string& words : {
           std::string("listen-port 51820 fwmark 0x17 private-key " + key),
           std::string("fwmark off private-key /dev/null"),
           fmt::format("peer {} remove peer {} allowed-ips 10.0.0.0/8,fd00::/8,192.0.2.1",
                       kFirstPeer, kSecondPeer),
           fmt::format("peer {} preshared-key {} endpoint 192.0.2.1:51820 persistent-keepalive 25",
                       kThirdPeer, psk),
           fmt::format("peer {} preshared-key /dev/null endpoint [2001:db8::1]:51820 "
                       "persistent-keepalive off allowed-ips ''",
                       kThirdPeer),
       }) {
    INFO(words);
    both.device.changes.clear();
    const Outcome wg = shell(fmt::format("wg set {} {}", both.name, words));
    INFO(wg.err);
    REQUIRE(wg.status == 0);
    REQUIRE(runAdit(fmt::format("set {} {}", both.name, words)).status == 0);
    REQUIRE(both.device.changes.size() == 2);
    CHECK(control::changeToJson(both.device.changes[0]).dump() ==
          control::changeToJson(both.device.changes[1]).dump());
  }
}

TEST_CASE("wg: setconf of showconf's file asks for what adit's does") {
  if (!canCompare()) return;
  Both both;
  const std::string file = both.sandbox.write("conf", runAdit("showconf " + both.name).out);
  for (const std::string command : {"setconf", "addconf"}) {
    INFO(command);
    both.device.changes.clear();
    REQUIRE(shell(fmt::format("wg {} {} '{}'", command, both.name, file)).status == 0);
    REQUIRE(runAdit(fmt::format("{} {} '{}'", command, both.name, file)).status == 0);
    REQUIRE(both.device.changes.size() == 2);
    const control::DeviceChange& wg = both.device.changes[0];
    const control::DeviceChange& ours = both.device.changes[1];
    CHECK(ours.privateKey == wg.privateKey);
    CHECK(ours.listenPort == wg.listenPort);
    CHECK(ours.firewallMark == wg.firewallMark);
    CHECK(ours.replacePeers == wg.replacePeers);
    REQUIRE(ours.peers.size() == wg.peers.size());
    for (std::size_t i = 0; i < wg.peers.size(); ++i) {
      CHECK(ours.peers[i].publicKey == wg.peers[i].publicKey);
      CHECK(ours.peers[i].endpoint == wg.peers[i].endpoint);
      CHECK(ours.peers[i].replaceAllowedIps == wg.peers[i].replaceAllowedIps);
      CHECK(ours.peers[i].addAllowedIps == wg.peers[i].addAllowedIps);
    }
  }
}

TEST_CASE("wg: gets the device's refusal as an errno that it can name") {
  if (!canCompare()) return;
  Both both;
  both.device.outcome = tl::unexpected(Error{"taken", EADDRINUSE});
  const Outcome wg = shell(fmt::format("wg set {} listen-port 53", both.name));
  CHECK(wg.status == 1);
  CHECK(wg.err == "Unable to modify interface: Address already in use\n");
}
