// The canonical form, and what reload says of differences.
#include "config/writer.hpp"

#include "config/diff.hpp"
#include "config/test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;

namespace {

using Lines = std::vector<std::string>;

Lines difference(const std::string& before, const std::string& after) {
  return diff(parseClean(before), parseClean(after)).lines();
}

}  // namespace

TEST_CASE("write: canonical names and order, defaults left out") {
  const Config config =
      parseClean("[peer]\nroam=on\nallowedips=10.9.0.2 , fd00::2\npublickey=" + kPeerA +
                 "\nname=nas\n" + "[map]\nto=10.9.0.2:80\nlisten=80/TCP\n[tune]\nrps=AUTO\n" +
                 "[interface]\npostup=a # b\nmtu=auto\nfwmark=51820\nprivatekey=" + kPrivate +
                 "\ntable=off\naddress=10.9.0.1/24\n");
  CHECK(write(config) ==
        "[Interface]\nPrivateKey = " + kPrivate +
            "\nAddress = 10.9.0.1/24\nFwMark = 0xca6c\nTable = off\nPostUp = a # b\n"
            "\n[Peer]\nName = nas\nPublicKey = " +
            kPeerA +
            "\nAllowedIPs = 10.9.0.2/32, fd00::2/128\n"
            "\n[Map]\nListen = tcp/80\nTo = 10.9.0.2\n"
            "\n[Tune]\nRps = auto\n");
}

TEST_CASE("write: wg's dialect holds what wg takes, keys included") {
  Config config = parseClean(
      "[Interface]\nPrivateKeyFile = own.key\nAddress = 10.9.0.1/24\n"
      "ListenPort = 51820\n[Peer]\nName = nas\nPublicKey = " +
      kPeerA + "\nAllowedIPs = 10.9.0.2\n[Map]\nListen = tcp/80\nTo = nas\n");
  config.interface.privateKey = crypto::PrivateKey::fromBase64(kPrivate).value();
  const std::string text = write(config, Dialect::WireGuard);
  CHECK(text == "[Interface]\nPrivateKey = " + kPrivate +
                    "\nListenPort = 51820\n\n[Peer]\nPublicKey = " + kPeerA +
                    "\nAllowedIPs = 10.9.0.2/32\n");
  CHECK(parse(text, "x", Dialect::WireGuard).diagnostics.empty());
  CHECK_THAT(write(config), Contains("PrivateKeyFile = own.key\n") && !Contains(kPrivate));
}

TEST_CASE("diff: nothing for order, place, case and defaults") {
  CHECK(difference("[Interface]\nPrivateKey=" + kPrivate + "\nMTU=auto\n[Peer]\nPublicKey=" +
                       kPeerA + "\n[Peer]\nPublicKey=" + kPeerB + "\nRoam = on\n",
                   "[Peer]\nPublicKey=" + kPeerB + "\n[Peer]\nPublicKey=" + kPeerA +
                       "\n[Interface]\n# moved\nPrivateKey=" + kPrivate + "\nTable = auto\n")
            .empty());
}

TEST_CASE("case 14: an unclamped key is no difference") {
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(0xff);
  const std::string unclamped = crypto::PublicKey{bytes}.toBase64();
  const std::string clamped = crypto::PrivateKey(bytes).toBase64();
  REQUIRE(unclamped != clamped);
  CHECK(difference("[Interface]\nPrivateKey=" + unclamped + "\n",
                   "[Interface]\nPrivateKey=" + clamped + "\n")
            .empty());
}

TEST_CASE("case 23: a changed address and an added prefix are both said") {
  CHECK(difference("[Interface]\nPrivateKey=" + kPrivate +
                       "\nAddress=10.9.0.2/32\n[Peer]\nName=vps\n" + "PublicKey=" + kPeerA +
                       "\nAllowedIPs=10.9.0.0/24\n",
                   "[Interface]\nPrivateKey=" + kPrivate + "\nAddress=10.9.0.12/32\nMTU=1400\n" +
                       "[Peer]\nName=vps\nPublicKey=" + kPeerA +
                       "\nAllowedIPs=10.9.0.0/24,192.168.50.0/24\nPersistentKeepalive=25\n") ==
        Lines{"interface: Address: added 10.9.0.12/32", "interface: Address: removed 10.9.0.2/32",
              "interface: MTU: auto -> 1400", "peer vps: AllowedIPs: added 192.168.50.0/24",
              "peer vps: PersistentKeepalive: off -> 25"});
}

TEST_CASE("diff: secrets are said to differ and never shown") {
  const std::string other =
      "[Interface]\nPrivateKey = " + kOtherPrivate + "\nPrivateKeyCommand = x\n";
  const Lines lines = difference(
      kInterface + kPeer + "[Peer]\nPublicKey=" + kPeerB + "\nPresharedKey=" + kPreshared,
      "[Interface]\nPrivateKey = " + kOtherPrivate + "\nPostUp = secret-token\n" + kPeer +
          "PresharedKey = " + kPreshared + "\n[Peer]\nPublicKey=" + kPeerB);
  CHECK(lines == Lines{"interface: PostUp: 0 -> 1 commands", "interface: PrivateKey: changed",
                       "peer " + kPeerA + ": PresharedKey: added",
                       "peer " + kPeerB + ": PresharedKey: removed"});
}

TEST_CASE("case 11: a prefix that moves is said to be taken") {
  const std::string before = kInterface + "[Peer]\nName=a\nPublicKey=" + kPeerA +
                             "\nAllowedIPs=10.9.0.0/24\n[Peer]\nName=b\nPublicKey=" + kPeerB + "\n";
  const std::string after = kInterface + "[Peer]\nName=a\nPublicKey=" + kPeerA +
                            "\n[Peer]\nName=b\nPublicKey=" + kPeerB + "\nAllowedIPs=10.9.0.0/24\n";
  CHECK(difference(before, after) == Lines{"peer a: AllowedIPs: removed 10.9.0.0/24",
                                           "peer b: AllowedIPs: added 10.9.0.0/24",
                                           "peer b: AllowedIPs: 10.9.0.0/24 is taken from peer a"});
}

TEST_CASE("diff: peers, mappings and tuning come and go") {
  const std::string base =
      kInterface + "[Peer]\nName=nas\nPublicKey=" + kPeerA + "\nAllowedIPs=10.9.0.2\n";
  CHECK(difference(base + "[Map]\nListen=tcp/80\nTo=nas\n[Map]\nListen=udp/5-9\nTo=nas\n",
                   base + "[Map]\nListen=tcp/80\nTo=nas:8080\n[Map]\nListen=tcp/443\nTo=nas\n" +
                       "[Peer]\nPublicKey=" + kPeerB + "\n[Tune]\nQdisc=fq\n") ==
        Lines{"peer " + kPeerB + ": added", "map tcp/80: To: nas -> nas:8080",
              "map tcp/443: added, to nas", "map udp/5-9: removed",
              "tune: Qdisc: the profile's -> fq"});
  const Diff moved = diff(parseClean(base + "[Map]\nListen=tcp/80\nTo=nas\n"),
                          parseClean(kInterface + "[Peer]\nName=nas\nPublicKey=" + kPeerA +
                                     "\nAllowedIPs=10.9.0.3\n[Map]\nListen=tcp/80\nTo=nas\n"));
  CHECK(moved.lines().back() == "map tcp/80: To: nas is now at 10.9.0.3");
  CHECK(moved.changes.back().section == Section::Map);
}
