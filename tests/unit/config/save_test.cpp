// `adit save`: a person's file stays theirs.
#include <sys/stat.h>

#include "config/test_support.hpp"
#include "config/writer.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;

namespace {

const std::string kFile =
    "# my server\n[Interface]\n  PrivateKey=" + kPrivate +
    "  # keep secret\nListenPort = 51820 # open in the firewall\nPostUp = echo \"a # b\"\n"
    "SaveConfig = false\n\n# the NAS at home\n[peer]\nname = nas\nPublicKey = " +
    kPeerA +
    "\nEndpoint = Home.Example.net:51820 # dynamic\nAllowedIPs = 10.9.0.2/32 # itself\n"
    "AllowedIPs = 192.168.50.0/24 # its network\n\n[Peer]\nPublicKey = " +
    kPeerB + "\nAllowedIPs = 10.9.0.3/32\n# after the phone\n\n[Map]\nListen = 443/tcp\nTo = nas\n";

Outcome loadSound(const std::filesystem::path& path) {
  Outcome outcome = load(path);
  CAPTURE(messages(outcome));
  REQUIRE(outcome.ok());
  return outcome;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("save: without a change the file is not touched") {
  const TemporaryFolder folder;
  for (const std::string& text :
       {kFile, kFile.substr(0, kFile.size() - 1), "\xef\xbb\xbf" + kFile}) {
    const auto path = folder.file("tun0.conf", text);
    const Outcome loaded = loadSound(path);
    const auto report = save(loaded, *loaded.config);
    REQUIRE(report.has_value());
    CHECK_FALSE(report->written);
    CHECK(report->notSaved.empty());
    CHECK(readWhole(path) == text);
  }
}

TEST_CASE("case 22: comments, order, host names and hooks stay; changed values are replaced") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.interface.listenPort = 51821;
  wanted.interface.mtu = 1400;
  wanted.peers[0].persistentKeepalive = 25;
  const auto report = save(loaded, wanted);
  REQUIRE(report.has_value());
  CHECK(report->written);
  CHECK(report->notSaved.empty());
  std::string expected = replaced(kFile, "51820 # open", "51821 # open");
  expected = replaced(expected, "SaveConfig = false\n", "SaveConfig = false\nMTU = 1400\n");
  expected = replaced(expected, "# its network\n", "# its network\nPersistentKeepalive = 25\n");
  CHECK(readWhole(path) == expected);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0600U);
  CHECK(write(*loadSound(path).config) == write(wanted));
}

TEST_CASE("case 22: save refuses a file that changed since it was loaded") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.interface.listenPort = 1;
  const std::string edited = kFile + "# edited\n";
  folder.file("tun0.conf", edited);
  const auto report = save(loaded, wanted);
  REQUIRE_FALSE(report.has_value());
  CHECK_THAT(report.error().message, Contains("changed since it was loaded"));
  CHECK(readWhole(path) == edited);
  std::filesystem::remove(path);
  CHECK_FALSE(save(loaded, wanted).has_value());
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("case 22: an address does not replace a host name, and that is said") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.peers[0].endpoint =
      EndpointName{"192.0.2.7", 51820, "", IpAddress::parse("192.0.2.7").value()};
  const auto report = save(loaded, wanted);
  REQUIRE(report.has_value());
  CHECK_FALSE(report->written);
  CHECK(report->notSaved ==
        std::vector<std::string>{"peer nas: Endpoint: Home.Example.net:51820 -> 192.0.2.7:51820"});
}

TEST_CASE("case 14: save does not rewrite an unclamped key") {
  const TemporaryFolder folder;
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(0xff);
  const std::string text = replaced(kFile, kPrivate, crypto::PublicKey{bytes}.toBase64());
  const auto path = folder.file("tun0.conf", text);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.interface.privateKey = crypto::PrivateKey(bytes);
  CHECK_FALSE(save(loaded, wanted)->written);
  CHECK(readWhole(path) == text);
}

TEST_CASE("save: lists over several lines become one, their comments stay") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.peers[0].allowedIps.push_back(Prefix::parse("10.77.0.0/16").value());
  REQUIRE(save(loaded, wanted)->written);
  CHECK_THAT(readWhole(path),
             Contains("AllowedIPs = 10.9.0.2/32, 192.168.50.0/24, 10.77.0.0/16 # itself\n# its "
                      "network\n\n"));
}

TEST_CASE("save: peers and mappings come and go") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.peers.erase(wanted.peers.begin() + 1);
  wanted.maps.clear();
  PeerConfig peer;
  peer.publicKey = crypto::PublicKey::fromBase64(kPeerC).value();
  peer.presharedKey = crypto::presharedKeyFromBase64(kPreshared).value();
  peer.allowedIps.push_back(Prefix::parse("10.9.0.4/32").value());
  wanted.peers.push_back(peer);
  wanted.tune.profile = TuneConfig::Profile::Auto;
  const auto report = save(loaded, wanted);
  REQUIRE(report.has_value());
  CHECK(report->notSaved.empty());
  const std::string text = readWhole(path);
  CHECK_THAT(text, !Contains(kPeerB) && !Contains("[Map]") && Contains("# after the phone"));
  CHECK_THAT(text, Contains("\n[Peer]\nPublicKey = " + kPeerC + "\nPresharedKey = " + kPreshared +
                            "\nAllowedIPs = 10.9.0.4/32\n"));
  CHECK_THAT(text, Contains("\n[Tune]\nProfile = auto\n"));
  CHECK(write(*loadSound(path).config) == write(wanted));
}

TEST_CASE("save: a hook goes as a whole, with the # inside it") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.interface.postUp.clear();
  REQUIRE(save(loaded, wanted)->written);
  CHECK(readWhole(path) == replaced(kFile, "PostUp = echo \"a # b\"\n", ""));
}

TEST_CASE("save: CR LF stays CR LF") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", "[Interface]\r\nPrivateKey = " + kPrivate + "\r\n");
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.interface.listenPort = 7;
  wanted.tune.profile = TuneConfig::Profile::Auto;
  REQUIRE(save(loaded, wanted)->written);
  CHECK(readWhole(path) == "[Interface]\r\nPrivateKey = " + kPrivate +
                               "\r\nListenPort = 7\r\n\r\n[Tune]\r\nProfile = auto\r\n");
}

TEST_CASE("save: what files of NAME.d and key files say stays out, and is said") {
  const TemporaryFolder folder;
  folder.file("own.key", kPrivate);
  const auto path = folder.file("tun0.conf", "[Interface]\nPrivateKeyFile = own.key\n");
  const auto dropIn =
      folder.file("tun0.d/nas.conf", "[Peer]\nName = nas\nPublicKey = " + kPeerA + "\n");
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.peers[0].roam = false;
  wanted.interface.listenPort = 7;
  wanted.interface.privateKey = crypto::PrivateKey::fromBase64(kOtherPrivate).value();
  const auto report = save(loaded, wanted);
  REQUIRE(report.has_value());
  CHECK(report->written);
  CHECK(report->notSaved ==
        std::vector<std::string>{"interface: PrivateKey: changed", "peer nas: Roam: on -> off"});
  CHECK(readWhole(path) == "[Interface]\nPrivateKeyFile = own.key\nListenPort = 7\n");
  CHECK_THAT(readWhole(dropIn), !Contains("Roam"));
}

TEST_CASE("save: a result that would not load is refused") {
  const TemporaryFolder folder;
  const auto path = folder.file("tun0.conf", kFile);
  folder.file("tun0.d/mtu.conf", "[Interface]\nMTU = 1400\n");
  const Outcome loaded = loadSound(path);
  Config wanted = *loaded.config;
  wanted.interface.mtu = 1300;
  const auto report = save(loaded, wanted);
  REQUIRE_FALSE(report.has_value());
  CHECK_THAT(report.error().message, Contains("would not be valid") && Contains("MTU"));
  CHECK(readWhole(path) == kFile);
}
