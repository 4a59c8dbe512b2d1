// A device with a state that tests choose, which remembers what it was asked to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/device_api.hpp"

namespace adit::control::testing {

inline constexpr const char* kPrivateKey = "6EtabScXwQA6E7QxVwNT26ypFGzxUMX4V1aA/rpSAno=";
inline constexpr const char* kPublicKey = "wVMuGz01CPx+vDVPpnliDzPyhxSVQuaExnt7DYE2Kyk=";
inline constexpr const char* kFirstPeer = "uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=";
inline constexpr const char* kSecondPeer = "WEAuaVuhdyscyTCXVfBDJR6nf9zxD75jmJzrfhkyE3Y=";
inline constexpr const char* kThirdPeer = "Zi4U/VlFVvUiYEcDNANRJYkDtk81VTdj8ZQmqypRXFg=";
inline constexpr const char* kPresharedKey = "GIUVCT6VL18i6GXO8wEucvi18LWYrAMJ1drM47cPz1I=";

inline crypto::PublicKey publicKey(const char* text) {
  return crypto::PublicKey::fromBase64(text).value();
}

/// A device with a peer that was never heard of, one with a session and one without prefixes,
/// whose handshake lies in the far future.
inline DeviceSnapshot sampleSnapshot() {
  DeviceSnapshot device;
  device.name = "adit0";
  device.privateKey = crypto::PrivateKey::fromBase64(kPrivateKey).value();
  device.listenPort = 12912;
  device.firewallMark = 51820;

  PeerSnapshot& first = device.peers.emplace_back();
  first.publicKey = publicKey(kFirstPeer);
  first.presharedKey = crypto::presharedKeyFromBase64(kPresharedKey).value();
  first.endpoint = Endpoint::parse("[abcd:23::33]:51820").value();
  first.allowedIps = {Prefix::parse("192.168.4.4/32").value()};

  PeerSnapshot& second = device.peers.emplace_back();
  second.publicKey = publicKey(kSecondPeer);
  second.endpoint = Endpoint::parse("182.122.22.19:3233").value();
  second.allowedIps = {Prefix::parse("192.168.4.6/32").value(), Prefix::parse("::/0").value()};
  second.lastHandshake = std::chrono::seconds(1'000'000'000) + std::chrono::nanoseconds(5);
  second.txBytes = 38333;
  second.rxBytes = 2224;
  second.persistentKeepalive = 111;

  PeerSnapshot& third = device.peers.emplace_back();
  third.publicKey = publicKey(kThirdPeer);
  third.lastHandshake = std::chrono::seconds(8'000'000'000);
  return device;
}

/// What only adit knows, on top of the sample.
inline DeviceSnapshot richSnapshot() {
  DeviceSnapshot device = sampleSnapshot();
  device.backend = "userspace";
  device.backendReason = "adit.ko is not loaded";
  device.mtu = 1420;
  device.addresses = {InterfaceAddress::parse("10.10.0.1/24").value(),
                      InterfaceAddress::parse("fd10::1/64").value()};
  device.maps = {
      {"tcp/18080", "nas:80", "preserve", true, "", "nas", {"10.10.0.2:80"}},
      {"udp/5000-5009", "10.10.0.2:5000", "masquerade", false, "the port is taken", "", {}}};
  device.warnings = {"IPv6 is off; sysctl net.ipv6.conf.all.disable_ipv6=0 turns it on"};
  device.suiteSpeeds = {1200, 3400, 3600};
  device.drops = {{"too short", 3}, {"unknown receiver", 17}};
  device.configured = {.listenPort = 12912,
                       .firewallMark = 0,
                       .files = {{.path = "/etc/adit/adit0.conf", .size = 99, .hash = {1, 0xab}}}};
  device.peers[1].configuredEndpoint = "vps.example.net:51820";
  device.peers[1].name = "nas";
  device.peers[1].suite = crypto::Suite::Aes256Gcm;
  device.peers[1].clockBehind = 2;
  device.peers[1].clockBehindBy = std::chrono::seconds(86400);
  device.peers[1].handshakes = 7;
  device.peers[1].unanswered = std::chrono::seconds(12);
  device.peers[1].suiteSpeeds = {300, 60, 70};
  device.troubles = {{"preshared-key", "nas", "peer nas answers, but not with our keys"}};
  device.peers[1].drops = {{"replay", 9}};
  device.peers[2].unresolvedEndpoint = "vps.example.net:51820";
  return device;
}

class FakeDevice : public DeviceApi {
 public:
  explicit FakeDevice(DeviceSnapshot snapshot = sampleSnapshot()) : state(std::move(snapshot)) {}

  [[nodiscard]] DeviceSnapshot snapshot() const override { return state; }
  Result<std::vector<std::string>> apply(const DeviceChange& change) override {
    changes.push_back(change);
    return outcome;
  }
  Result<std::vector<std::string>> reload() override {
    ++reloads;
    return outcome;
  }
  void saved(std::vector<config::FileStamp> files) override {
    state.configured.files = std::move(files);
  }
  Result<std::vector<std::string>> down() override {
    ++downs;
    return outcome;
  }

  DeviceSnapshot state;
  std::vector<DeviceChange> changes;
  int reloads = 0;
  int downs = 0;
  /// What every operation ends with.
  Result<std::vector<std::string>> outcome = std::vector<std::string>{};
};

}  // namespace adit::control::testing
