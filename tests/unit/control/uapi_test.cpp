#include "control/uapi.hpp"

#include <catch2/catch.hpp>
#include <cerrno>

#include "cli_fake_device.hpp"

using namespace adit;
using namespace adit::control;
using namespace adit::control::testing;

namespace {

constexpr const char* kFirstHex =
    "b85996fecc9c7f1fc6d2572a76eda11d59bcd20be8e543b15ce4bd85a8e75a33";
constexpr const char* kSecondHex =
    "58402e695ba1772b1cc9309755f043251ea77fdcf10fbe63989ceb7e19321376";
constexpr const char* kPrivateHex =
    "e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a";
constexpr const char* kPresharedHex =
    "188515093e952f5f22e865cef3012e72f8b5f0b598ac0309d5dacce3b70fcf52";
constexpr const char* kZeroHex = "0000000000000000000000000000000000000000000000000000000000000000";

std::string peerLine(const char* hex) {
  return fmt::format("public_key={}\n", hex);
}

DeviceChange parsed(const std::string& lines) {
  const auto change = parseUapiSet(lines);
  INFO(lines);
  REQUIRE(change);
  return *change;
}

Prefix prefix(const char* text) {
  return Prefix::parse(text).value();
}

}  // namespace

TEST_CASE("uapi: get lists the device and then each peer") {
  FakeDevice device;
  const std::string expected =
      "private_key=e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a\n"
      "listen_port=12912\n"
      "fwmark=51820\n"
      "public_key=b85996fecc9c7f1fc6d2572a76eda11d59bcd20be8e543b15ce4bd85a8e75a33\n"
      "preshared_key=188515093e952f5f22e865cef3012e72f8b5f0b598ac0309d5dacce3b70fcf52\n"
      "protocol_version=1\n"
      "endpoint=[abcd:23::33]:51820\n"
      "last_handshake_time_sec=0\n"
      "last_handshake_time_nsec=0\n"
      "tx_bytes=0\n"
      "rx_bytes=0\n"
      "persistent_keepalive_interval=0\n"
      "allowed_ip=192.168.4.4/32\n"
      "public_key=58402e695ba1772b1cc9309755f043251ea77fdcf10fbe63989ceb7e19321376\n"
      "preshared_key=0000000000000000000000000000000000000000000000000000000000000000\n"
      "protocol_version=1\n"
      "endpoint=182.122.22.19:3233\n"
      "last_handshake_time_sec=1000000000\n"
      "last_handshake_time_nsec=5\n"
      "tx_bytes=38333\n"
      "rx_bytes=2224\n"
      "persistent_keepalive_interval=111\n"
      "allowed_ip=192.168.4.6/32\n"
      "allowed_ip=::/0\n"
      "public_key=662e14fd594556f522604703340351258903b64f35553763f19426ab2a515c58\n"
      "preshared_key=0000000000000000000000000000000000000000000000000000000000000000\n"
      "protocol_version=1\n"
      "last_handshake_time_sec=8000000000\n"
      "last_handshake_time_nsec=0\n"
      "tx_bytes=0\n"
      "rx_bytes=0\n"
      "persistent_keepalive_interval=0\n"
      "errno=0\n\n";
  CHECK(handleUapi("get=1\n\n", device) == expected);
  CHECK(handleUapi("get=1", device) == expected);
}

TEST_CASE("uapi: a bare device has no lines but the status") {
  FakeDevice device{DeviceSnapshot{}};
  CHECK(handleUapi("get=1\n\n", device) == "errno=0\n\n");
}

TEST_CASE("uapi: a handshake before the epoch is none") {
  FakeDevice device;
  device.state.peers.resize(1);
  device.state.peers[0].lastHandshake = std::chrono::nanoseconds(-1);
  const std::string answer = handleUapi("get=1\n\n", device);
  CHECK(answer.find("last_handshake_time_sec=0\nlast_handshake_time_nsec=0\n") !=
        std::string::npos);
}

TEST_CASE("uapi: set changes the device and its peers in one piece") {
  FakeDevice device;
  const std::string request = fmt::format(
      "set=1\nprivate_key={}\nlisten_port=51821\nfwmark=4294967295\nreplace_peers=true\n"
      "public_key={}\npreshared_key={}\nendpoint=[2001:db8::1]:51820\n"
      "persistent_keepalive_interval=25\nreplace_allowed_ips=true\nallowed_ip=10.1.2.3/8\n"
      "allowed_ip=fd00::/64\nprotocol_version=1\npublic_key={}\nremove=true\n\n",
      kPrivateHex, kFirstHex, kPresharedHex, kSecondHex);
  REQUIRE(handleUapi(request, device) == "errno=0\n\n");
  REQUIRE(device.changes.size() == 1);
  const DeviceChange& change = device.changes[0];
  CHECK(crypto::PrivateKey(change.privateKey->bytes()).toBase64() == kPrivateKey);
  CHECK(change.listenPort == 51821);
  CHECK(change.firewallMark == 4294967295U);
  CHECK(change.replacePeers);
  REQUIRE(change.peers.size() == 2);
  const PeerChange& peer = change.peers[0];
  CHECK(peer.publicKey == publicKey(kFirstPeer));
  CHECK(crypto::presharedKeyToBase64(*peer.presharedKey) == kPresharedKey);
  CHECK(peer.endpoint->toString() == "[2001:db8::1]:51820");
  CHECK(peer.persistentKeepalive == 25);
  CHECK(peer.replaceAllowedIps);
  CHECK(peer.addAllowedIps == std::vector{prefix("10.0.0.0/8"), prefix("fd00::/64")});
  CHECK_FALSE(peer.remove);
  CHECK(change.peers[1].publicKey == publicKey(kSecondPeer));
  CHECK(change.peers[1].remove);
}

TEST_CASE("uapi: what is not named stays as it is") {
  const DeviceChange change = parsed(peerLine(kFirstHex) + "update_only=true\n\n");
  CHECK_FALSE(change.privateKey);
  CHECK_FALSE(change.listenPort);
  CHECK_FALSE(change.firewallMark);
  CHECK_FALSE(change.replacePeers);
  REQUIRE(change.peers.size() == 1);
  CHECK(change.peers[0].updateOnly);
  CHECK_FALSE(change.peers[0].presharedKey);
  CHECK_FALSE(change.peers[0].endpoint);
  CHECK_FALSE(change.peers[0].persistentKeepalive);
  CHECK_FALSE(change.peers[0].replaceAllowedIps);
}

TEST_CASE("uapi: keys of zeros take keys away, and hexadecimal may be in capitals") {
  const DeviceChange change =
      parsed(fmt::format("private_key={0}\npublic_key={1}\npreshared_key={0}\n", kZeroHex,
                         "B85996FECC9C7F1FC6D2572A76EDA11D59BCD20BE8E543B15CE4BD85A8E75A33"));
  CHECK(change.privateKey->isZero());
  CHECK(change.peers[0].publicKey == publicKey(kFirstPeer));
  CHECK(change.peers[0].presharedKey->isZero());
}

TEST_CASE("uapi: the last word on a prefix counts") {
  const auto change = parsed(peerLine(kFirstHex) +
                             "allowed_ip=10.0.0.0/8\nallowed_ip=-10.0.0.0/8\n"
                             "allowed_ip=-10.9.0.0/16\nallowed_ip=10.9.0.0/16\n");
  CHECK(change.peers[0].removeAllowedIps == std::vector{prefix("10.0.0.0/8")});
  CHECK(change.peers[0].addAllowedIps == std::vector{prefix("10.9.0.0/16")});
  CHECK_FALSE(change.peers[0].replaceAllowedIps);

  const auto replaced = parsed(peerLine(kFirstHex) +
                               "allowed_ip=10.0.0.0/8\nallowed_ip=-10.1.0.0/16\n"
                               "replace_allowed_ips=true\nallowed_ip=10.9.0.0/16\n");
  CHECK(replaced.peers[0].replaceAllowedIps);
  CHECK(replaced.peers[0].removeAllowedIps.empty());
  CHECK(replaced.peers[0].addAllowedIps == std::vector{prefix("10.9.0.0/16")});
}

TEST_CASE("uapi: a wrong line changes nothing and is answered with EINVAL") {
  const std::string deviceLine = GENERATE(
      "private_key=", "private_key=00", "private_key=zz", "listen_port=", "listen_port=65536",
      "listen_port=-1", "listen_port=+1", "listen_port= 1", "listen_port=0x10", "listen_port=1 ",
      "listen_port=99999999999999999999", "fwmark=4294967296", "fwmark=off",
      "fwmark=", "replace_peers=false", "replace_peers=", "replace_peers=1", "remove=true",
      "endpoint=1.2.3.4:5", "allowed_ip=10.0.0.0/8", "errno=0", "get=1", "=", "=true",
      " listen_port=1", "Listen_Port=1", "public_key=", "public_key=b85996", "listen_port=1\r");
  FakeDevice device;
  INFO(deviceLine);
  CHECK(handleUapi("set=1\nlisten_port=5\n" + deviceLine + "\n\n", device) ==
        fmt::format("errno={}\n\n", -EINVAL));
  CHECK(device.changes.empty());
}

TEST_CASE("uapi: a wrong line of a peer changes nothing") {
  const std::string line = GENERATE(
      "preshared_key=12", "endpoint=", "endpoint=1.2.3.4", "endpoint=vps.example.net:51820",
      "endpoint=1.2.3.4:70000", "endpoint=[::1]", "endpoint=::1:51820",
      "persistent_keepalive_interval=65536", "persistent_keepalive_interval=off",
      "persistent_keepalive_interval=", "replace_allowed_ips=false",
      "allowed_ip=", "allowed_ip=10.0.0.0", "allowed_ip=10.0.0.0/33", "allowed_ip=10.0.0/8",
      "allowed_ip=::/129", "allowed_ip=--10.0.0.0/8", "allowed_ip=+10.0.0.0/8", "allowed_ip=-",
      "allowed_ip=10.0.0.0/-1", "protocol_version=2", "protocol_version=", "remove=false",
      "update_only=1", "listen_port=1", "private_key=00", "fwmark=1", "replace_peers=true",
      "rx_bytes=1");
  FakeDevice device;
  INFO(line);
  CHECK(handleUapi("set=1\n" + peerLine(kFirstHex) + line + "\n\n", device) ==
        fmt::format("errno={}\n\n", -EINVAL));
  CHECK(device.changes.empty());
}

TEST_CASE("uapi: what is no request is answered with an error") {
  FakeDevice device;
  const std::string protocol = fmt::format("errno={}\n\n", -EPROTO);
  CHECK(handleUapi("", device) == protocol);
  CHECK(handleUapi("get=2\n\n", device) == protocol);
  CHECK(handleUapi("get\n\n", device) == protocol);
  CHECK(handleUapi("set=1 \n\n", device) == protocol);
  CHECK(handleUapi("set=1\nno equals sign\n\n", device) == protocol);
  CHECK(handleUapi(std::string("set=1\n\0\n\n", 9), device) == protocol);
  CHECK(handleUapi("get=1\nlisten_port=1\n\n", device) == fmt::format("errno={}\n\n", -EINVAL));
  CHECK(handleUapi("set=1\n" + std::string(kMaxUapiRequest, 'a'), device) ==
        fmt::format("errno={}\n\n", -EMSGSIZE));
  CHECK(device.changes.empty());
}

TEST_CASE("uapi: a set with nothing in it is applied as nothing") {
  FakeDevice device;
  CHECK(handleUapi("set=1\n\n", device) == "errno=0\n\n");
  REQUIRE(device.changes.size() == 1);
  CHECK(device.changes[0].peers.empty());
}

TEST_CASE("uapi: the device's own failure is passed on as a negative errno") {
  FakeDevice device;
  device.outcome = tl::unexpected(Error{"port 51820 is taken", EADDRINUSE});
  CHECK(handleUapi("set=1\nlisten_port=51820\n\n", device) ==
        fmt::format("errno={}\n\n", -EADDRINUSE));
  device.outcome = tl::unexpected(Error{"no", 0});
  CHECK(handleUapi("set=1\nlisten_port=51820\n\n", device) == fmt::format("errno={}\n\n", -EINVAL));
}

TEST_CASE("uapi: errors name the line and the key, never the value") {
  const auto change = parseUapiSet(fmt::format("listen_port=1\nprivate_key={}x\n", kPrivateHex));
  REQUIRE_FALSE(change);
  CHECK(change.error().message == "line 3: the value of private_key is wrong");
}
