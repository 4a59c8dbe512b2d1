#include "control/wg_format_change.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "cli_fake_device.hpp"
#include "config/parser.hpp"

using namespace adit;
using namespace adit::control;
using namespace adit::control::testing;

namespace {

using Words = std::vector<std::string>;

const std::map<std::string, std::string> kFiles{
    {"private", std::string(kPrivateKey) + "\n"},
    {"psk", std::string(kPresharedKey) + " \r\n"},
    {"/dev/null", ""},
    {"blank", "\n"},
    {"two", std::string(kPrivateKey) + "\n" + kPrivateKey + "\n"},
    {"short", "6EtabScXwQA6E7Qx"},
};

ChangeSources sources() {
  return {.readFile = [](const std::string& path) -> Result<std::string> {
            const auto found = kFiles.find(path);
            if (found == kFiles.end()) return fail("{}: No such file or directory", path);
            return found->second;
          },
          .resolve = [](std::string_view text) -> Result<Endpoint> {
            if (text == "vps.example.net:51820") return Endpoint::parse("192.0.2.7:51820");
            return Endpoint::parse(text);
          }};
}

Result<DeviceChange> parse(const Words& words, Words* remarks = nullptr) {
  Words ignored;
  return changeFromArguments(words, sources(), remarks != nullptr ? *remarks : ignored);
}

std::vector<Prefix> prefixes(std::initializer_list<const char*> texts) {
  std::vector<Prefix> list;
  for (const char* text : texts) {
    list.push_back(Prefix::parse(text).value());
  }
  return list;
}

config::Config configOf(const std::string& text) {
  config::Outcome outcome = config::parse(text, "test", config::Dialect::WireGuard);
  for (const auto& diagnostic : outcome.diagnostics) {
    UNSCOPED_INFO(diagnostic.toString());
  }
  REQUIRE(outcome.ok());
  return *outcome.config;
}

DeviceChange changeOf(const std::string& text, ConfMode mode) {
  const auto change = changeFromConfig(configOf(text), mode, sources());
  REQUIRE(change);
  return *change;
}

std::string confOf(const DeviceSnapshot& device) {
  std::string text =
      fmt::format("[Interface]\nPrivateKey = {}\nListenPort = {}\nFwMark = {}\n",
                  device.privateKey->toBase64(), device.listenPort, device.firewallMark);
  for (const PeerSnapshot& peer : device.peers) {
    text += fmt::format("[Peer]\nPublicKey = {}\n", peer.publicKey.toBase64());
    if (!peer.presharedKey.isZero()) {
      text += fmt::format("PresharedKey = {}\n", crypto::presharedKeyToBase64(peer.presharedKey));
    }
    for (const Prefix& prefix : peer.allowedIps) {
      text += fmt::format("AllowedIPs = {}\n", prefix.toString());
    }
    if (peer.endpoint) text += fmt::format("Endpoint = {}\n", peer.endpoint->toString());
    if (peer.persistentKeepalive != 0) {
      text += fmt::format("PersistentKeepalive = {}\n", peer.persistentKeepalive);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("set: everything at once") {
  const auto change = parse({"listen-port", "51821", "fwmark", "0xca6c", "private-key", "private",
                             "peer", kFirstPeer, "preshared-key", "psk", "endpoint",
                             "vps.example.net:51820", "persistent-keepalive", "25", "allowed-ips",
                             "10.0.0.0/8, fd00::/8,192.0.2.9", "peer", kSecondPeer, "remove"});
  REQUIRE(change);
  CHECK(change->listenPort == 51821);
  CHECK(change->firewallMark == 0xca6c);
  CHECK(change->privateKey == crypto::PrivateKey::fromBase64(kPrivateKey)->secret());
  CHECK_FALSE(change->replacePeers);
  REQUIRE(change->peers.size() == 2);
  const PeerChange& peer = change->peers[0];
  CHECK(peer.publicKey == publicKey(kFirstPeer));
  CHECK(crypto::presharedKeyToBase64(*peer.presharedKey) == kPresharedKey);
  CHECK(peer.endpoint->toString() == "192.0.2.7:51820");
  CHECK(peer.persistentKeepalive == 25);
  CHECK(peer.replaceAllowedIps);
  CHECK(peer.addAllowedIps == prefixes({"10.0.0.0/8", "fd00::/8", "192.0.2.9/32"}));
  CHECK(change->peers[1].remove);
  CHECK_FALSE(change->peers[1].replaceAllowedIps);
}

TEST_CASE("set: off, zero and empty files take away") {
  const auto change =
      parse({"listen-port", "0", "fwmark", "off", "private-key", "/dev/null", "peer", kFirstPeer,
             "preshared-key", "/dev/null", "persistent-keepalive", "off", "allowed-ips", ""});
  REQUIRE(change);
  CHECK(change->listenPort == 0);
  CHECK(change->firewallMark == 0U);
  CHECK(change->privateKey->isZero());
  CHECK(change->peers[0].presharedKey->isZero());
  CHECK(change->peers[0].persistentKeepalive == 0);
  CHECK(change->peers[0].replaceAllowedIps);
  CHECK(change->peers[0].addAllowedIps.empty());
}

TEST_CASE("set: signs make allowed-ips a change instead of a list") {
  const auto change = parse({"peer", kFirstPeer, "allowed-ips",
                             "+10.0.0.0/8,-fd00::/8,-10.0.0.0/8,192.0.2.0/24,+192.0.2.0/24"});
  REQUIRE(change);
  CHECK_FALSE(change->peers[0].replaceAllowedIps);
  CHECK(change->peers[0].removeAllowedIps == prefixes({"fd00::/8", "10.0.0.0/8"}));
  CHECK(change->peers[0].addAllowedIps == prefixes({"192.0.2.0/24"}));
}

TEST_CASE("set: host bits are masked with a remark") {
  Words remarks;
  const auto change = parse({"peer", kFirstPeer, "allowed-ips", "10.1.2.3/8"}, &remarks);
  REQUIRE(change);
  CHECK(change->peers[0].addAllowedIps == prefixes({"10.0.0.0/8"}));
  CHECK(remarks == Words{"allowed-ips: 10.1.2.3/8 has host bits; taken as 10.0.0.0/8"});
}

TEST_CASE("set: a wrong argument is refused and says what is right") {
  const auto [words, expected] = GENERATE(table<Words, std::string>({
      {{"listen-port"}, "listen-port needs a value"},
      {{"listen-port", "65536"}, "0 to 65535"},
      {{"listen-port", "-1"}, "0 to 65535"},
      {{"listen-port", "ssh"}, "0 to 65535"},
      {{"listen-port", ""}, "0 to 65535"},
      {{"fwmark", "0x"}, "0xffffffff"},
      {{"fwmark", "0x100000000"}, "0xffffffff"},
      {{"fwmark", "on"}, "0xffffffff"},
      {{"private-key", "missing"}, "missing: No such file"},
      {{"private-key", "short"}, "short: a key is 44 characters"},
      {{"private-key", "two"}, "two: a key is 44 characters"},
      {{"private-key", "blank"}, "blank: a key is 44 characters"},
      {{"mtu", "1420"}, "expected listen-port"},
      {{kPrivateKey}, "expected listen-port"},
      {{"remove"}, "belongs after `peer KEY`"},
      {{"endpoint", "192.0.2.1:1"}, "belongs after `peer KEY`"},
      {{"peer"}, "peer needs a value"},
      {{"peer", "remove"}, "peer: a key is 44 characters"},
      {{"peer", kFirstPeer, "listen-port", "1"}, "belongs before the first peer"},
      {{"peer", kFirstPeer, "delete"}, "expected peer, remove"},
      {{"peer", kFirstPeer, "endpoint", "192.0.2.1"}, "port"},
      {{"peer", kFirstPeer, "persistent-keepalive", "65536"}, "1 to 65535"},
      {{"peer", kFirstPeer, "persistent-keepalive", "25s"}, "1 to 65535"},
      {{"peer", kFirstPeer, "allowed-ips", "10.0.0.0/33"}, "allowed-ips"},
      {{"peer", kFirstPeer, "allowed-ips", "10.0.0.0/8,"}, "empty entry"},
      {{"peer", kFirstPeer, "allowed-ips", "+"}, "empty entry"},
      {{"peer", kFirstPeer, "allowed-ips", "10.0.0.0/8;10.0.0.0/9"}, "allowed-ips"},
      {{"peer", kFirstPeer, "preshared-key"}, "preshared-key needs a value"},
  }));
  const auto change = parse(words);
  REQUIRE_FALSE(change);
  CHECK_THAT(change.error().message, Catch::Matchers::Contains(expected));
  CHECK_THAT(change.error().message, !Catch::Matchers::Contains(kPrivateKey));
}

TEST_CASE("setconf: the device becomes what the file says") {
  const DeviceChange change = changeOf(
      fmt::format("[Interface]\nPrivateKey = {}\n[Peer]\nPublicKey = {}\nAllowedIPs = 10.0.0.0/8\n",
                  kPrivateKey, kFirstPeer),
      ConfMode::Set);
  CHECK(change.replacePeers);
  CHECK(change.listenPort == 0);
  CHECK(change.firewallMark == 0U);
  CHECK(change.privateKey == crypto::PrivateKey::fromBase64(kPrivateKey)->secret());
  REQUIRE(change.peers.size() == 1);
  CHECK(change.peers[0].replaceAllowedIps);
  CHECK(change.peers[0].addAllowedIps == prefixes({"10.0.0.0/8"}));
  CHECK(change.peers[0].presharedKey->isZero());
  CHECK(change.peers[0].persistentKeepalive == 0);
  CHECK(changeOf("[Interface]\n", ConfMode::Set).privateKey->isZero());
}

TEST_CASE("addconf: what the file does not say stays") {
  const DeviceChange change = changeOf(fmt::format("[Interface]\n[Peer]\nPublicKey = {}\n"
                                                   "Endpoint = vps.example.net:51820\n",
                                                   kFirstPeer),
                                       ConfMode::Add);
  CHECK_FALSE(change.replacePeers);
  CHECK_FALSE(change.privateKey);
  CHECK_FALSE(change.listenPort);
  CHECK_FALSE(change.firewallMark);
  REQUIRE(change.peers.size() == 1);
  CHECK(change.peers[0].endpoint->toString() == "192.0.2.7:51820");
  CHECK_FALSE(change.peers[0].presharedKey);
  CHECK_FALSE(change.peers[0].persistentKeepalive);
}

TEST_CASE("syncconf: what already is so is left alone") {
  const DeviceSnapshot device = sampleSnapshot();
  const DeviceChange none = differenceTo(viewOf(device), changeOf(confOf(device), ConfMode::Set));
  CHECK_FALSE(none.privateKey);
  CHECK_FALSE(none.listenPort);
  CHECK_FALSE(none.firewallMark);
  CHECK_FALSE(none.replacePeers);
  CHECK(none.peers.empty());
}

// Case 14 of the collected cases: an unclamped key is the same key.
TEST_CASE("syncconf: an unclamped private key is no change") {
  DeviceSnapshot device = sampleSnapshot();
  DeviceChange wanted;
  wanted.privateKey = device.privateKey->secret();
  wanted.privateKey->bytes()[0] |= 7;
  CHECK_FALSE(differenceTo(viewOf(device), wanted).privateKey);
  wanted.privateKey->bytes()[1] ^= 1;
  CHECK(differenceTo(viewOf(device), wanted).privateKey);
}

TEST_CASE("syncconf: a file without a port keeps the port") {
  DeviceSnapshot device = sampleSnapshot();
  const DeviceChange change = differenceTo(
      viewOf(device),
      changeOf(fmt::format("[Interface]\nPrivateKey = {}\n", kPrivateKey), ConfMode::Set));
  CHECK_FALSE(change.listenPort);
  CHECK(change.firewallMark == 0U);
}

TEST_CASE("syncconf: differences, new peers and removed ones") {
  const DeviceSnapshot device = sampleSnapshot();
  DeviceSnapshot wanted = device;
  wanted.listenPort = 5;
  wanted.peers.erase(wanted.peers.begin());
  wanted.peers[0].persistentKeepalive = 0;
  wanted.peers[0].allowedIps = prefixes({"10.0.0.0/8"});
  wanted.peers[1].presharedKey = crypto::presharedKeyFromBase64(kPresharedKey).value();
  wanted.peers.emplace_back().publicKey = publicKey(kPresharedKey);
  const DeviceChange change = differenceTo(viewOf(device), changeOf(confOf(wanted), ConfMode::Set));
  CHECK(change.listenPort == 5);
  CHECK_FALSE(change.replacePeers);
  REQUIRE(change.peers.size() == 4);
  CHECK(change.peers[0].publicKey == publicKey(kFirstPeer));
  CHECK(change.peers[0].remove);
  CHECK(change.peers[1].publicKey == publicKey(kSecondPeer));
  CHECK(change.peers[1].persistentKeepalive == 0);
  CHECK(change.peers[1].replaceAllowedIps);
  CHECK(change.peers[1].addAllowedIps == prefixes({"10.0.0.0/8"}));
  CHECK_FALSE(change.peers[1].endpoint);
  CHECK_FALSE(change.peers[1].presharedKey);
  CHECK(crypto::presharedKeyToBase64(*change.peers[2].presharedKey) == kPresharedKey);
  CHECK_FALSE(change.peers[2].replaceAllowedIps);
  CHECK(change.peers[3].publicKey == publicKey(kPresharedKey));
}

TEST_CASE("a key file holds one key") {
  CHECK(parseKeyFile("")->isZero());
  CHECK(parseKeyFile(std::string(kPresharedKey) + "\n\n \t\r\n"));
  CHECK_FALSE(parseKeyFile(std::string(" ") + kPresharedKey));
  CHECK_FALSE(parseKeyFile(std::string(kPresharedKey) + " x"));
  CHECK_FALSE(parseKeyFile("\n"));
}
