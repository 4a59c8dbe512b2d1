// Parts of a configuration that contradict each other.
#include "config/test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// Nine lines: a server with two peers; mappings follow from line 10.
const std::string kServer = "[Interface]\nPrivateKey = " + kPrivate +
                            "\nAddress = 10.9.0.1/24\nListenPort = 51820\n[Peer]\nName = nas\n"
                            "PublicKey = " +
                            kPeerA + "\nAllowedIPs = 10.9.0.2/32, 192.168.50.0/24, fd09::2/128\n\n";

std::string map(const std::string& listen, const std::string& to = "nas") {
  return "[Map]\nListen = " + listen + "\nTo = " + to + "\n";
}

/// A NAS that dials out; its peer's AllowedIPs stand on line 6.
std::string nas(const std::string& allowed, const std::string& rest) {
  return "[Interface]\nPrivateKey = " + kPrivate +
         "\nAddress = 10.9.0.2/24\n[Peer]\nPublicKey = " + kPeerA + "\nAllowedIPs = " + allowed +
         "\nEndpoint = 192.0.2.1:51820\n" + rest;
}

}  // namespace

TEST_CASE("mappings overlap by protocol and address") {
  const std::vector<std::tuple<std::string, std::string, bool>> pairs{
      {"tcp/80", "tcp/80", true},
      {"tcp/80", "udp/80", false},
      {"tcp/80", "tcp+udp/80", true},
      {"udp/80", "tcp+udp/80", true},
      {"tcp/80-90", "tcp/90-95", true},
      {"tcp/80-90", "tcp/91-95", false},
      {"tcp/1-65535", "tcp/80", true},
      {"tcp/80", "tcp/1-65535", true},
      {"203.0.113.9:tcp/80", "203.0.113.10:tcp/80", false},
      {"203.0.113.9:tcp/80", "203.0.113.9:tcp/80", true},
      {"203.0.113.9:tcp/80", "tcp/80", true},
      {"tcp/80", "203.0.113.9:tcp/80", true},
      {"tcp/80", "[2001:db8::1]:tcp/80", true},
      {"203.0.113.9:tcp/80", "[2001:db8::1]:tcp/80", false}};
  for (const auto& [first, second, overlap] : pairs) {
    CAPTURE(first, second);
    const Outcome outcome = parse(kServer + map(first) + map(second), "x");
    CAPTURE(messages(outcome));
    CHECK(outcome.ok() != overlap);
    if (overlap) {
      REQUIRE(outcome.diagnostics.size() == 1);
      CHECK_THAT(messages(outcome)[0], StartsWith("14:1 error:") && Contains("of line 11"));
    }
  }
}

TEST_CASE("the tunnel's own port is refused alone and left out of ranges") {
  CHECK(parse(kServer + map("udp/51000-52000"), "x").ok());
  CHECK(parse(kServer + map("tcp/51820"), "x").ok());
  CHECK_THAT(onlyMessage(kServer + map("tcp+udp/51820")), Contains("tunnel's own port"));
  CHECK_THAT(onlyMessage(kServer + map("203.0.113.9:udp/51820")), Contains("tunnel's own port"));
}

TEST_CASE("targets of mappings") {
  const Config both = parseClean(kServer + map("tcp/80"));
  REQUIRE(both.maps.at(0).targets.size() == 2);
  CHECK(both.maps[0].targets[0].toString() == "10.9.0.2");
  CHECK(both.maps[0].targets[1].toString() == "fd09::2");
  const Config one = parseClean(kServer + map("203.0.113.9:tcp/80"));
  REQUIRE(one.maps.at(0).targets.size() == 1);
  CHECK(one.maps[0].targets[0].isV4());
  const Config host = parseClean(kServer + map("tcp/80", "192.168.50.20:8080"));
  CHECK(host.maps.at(0).targets.at(0).toString() == "192.168.50.20");
  CHECK(host.maps[0].targetPort == 8080);
  CHECK(parseClean(kServer + map("udp/80-89", "nas:180-189")).maps.at(0).targetPort == 180);

  CHECK_THAT(onlyMessage(kServer + map("tcp/80", "nsa")),
             StartsWith("12:6 error: no peer is called \"nsa\"; did you mean nas?"));
  CHECK_THAT(onlyMessage(kServer + map("tcp/80", "web.example.net")),
             Contains("write the Name of a [Peer], or an address"));
  CHECK_THAT(onlyMessage(kServer + map("[2001:db8::1]:tcp/80", "10.9.0.2")),
             Contains("different families"));
  CHECK_THAT(onlyMessage(kServer + map("udp/80-89", "nas:180-188")),
             Contains("9 target ports for 10"));
  CHECK_THAT(onlyMessage(kServer + map("udp/1-100", "nas:65500")),
             Contains("65500-65599 passes 65535; begin at 65436 or below"));
  CHECK_THAT(onlyMessage(kServer + map("tcp/80", "10.8.0.2")),
             Contains("warning: no peer's AllowedIPs hold 10.8.0.2"));
  CHECK_THAT(onlyMessage(kServer + "[Peer]\nName = lan\nPublicKey = " + kPeerB +
                         "\nAllowedIPs = 10.8.0.0/24\n" + map("tcp/80", "lan")),
             StartsWith("16:1 error: the AllowedIPs of this peer (line 13) name no single"));
}

TEST_CASE("shifted TCP ranges warn, UDP ranges and single ports do not") {
  CHECK_THAT(onlyMessage(kServer + map("tcp/50000-50100", "nas:40000")),
             Contains("warning: the range is shifted from 50000 to 40000"));
  CHECK(parse(kServer + map("udp/5000-5009", "nas:6000"), "x").diagnostics.empty());
  CHECK(parse(kServer + map("tcp/18080", "nas:80"), "x").diagnostics.empty());
}

TEST_CASE("names of peers are unique whatever their case") {
  CHECK_THAT(onlyMessage(kServer + "[Peer]\nName = NAS\nPublicKey = " + kPeerB + "\n"),
             StartsWith("11:1 error: the peer on line 6 has this name already"));
}

TEST_CASE("every copy of a key or prefix is named with the first") {
  const Outcome outcome = parse(kServer + "[Peer]\nPublicKey = " + kPeerA +
                                    "\nAllowedIPs = 10.9.0.2\n[Peer]\nPublicKey = " + kPeerA +
                                    "\nAllowedIPs = 10.9.0.2/32\n",
                                "x");
  REQUIRE(outcome.diagnostics.size() == 4);
  CHECK_THAT(messages(outcome)[0], StartsWith("11:1 error:") && Contains("line 7"));
  CHECK_THAT(messages(outcome)[1], StartsWith("12:14 error:") && Contains("line 8"));
  CHECK_THAT(messages(outcome)[2], StartsWith("14:1 error:") && Contains("line 7"));
  CHECK_THAT(messages(outcome)[3], StartsWith("15:14 error:") && Contains("line 8"));
}

TEST_CASE("a prefix twice on one peer is dropped with a warning") {
  const Outcome outcome =
      parse(kInterface + kPeer + "AllowedIPs = 10.9.0.0/24, 10.9.0.9/24\n", "x");
  REQUIRE(outcome.ok());
  CHECK(outcome.config->peers.at(0).allowedIps.size() == 1);
  REQUIRE(outcome.diagnostics.size() == 2);
  CHECK_THAT(messages(outcome)[1], Contains("warning: 10.9.0.0/24 stands already on line 5"));
}

TEST_CASE("a peer with this interface's own address is a copied line") {
  CHECK_THAT(onlyMessage("[Interface]\nPrivateKey = " + kPrivate + "\nAddress = 10.9.0.1/24\n" +
                         kPeer + "AllowedIPs = 10.9.0.1/32\n"),
             StartsWith("6:1 warning: 10.9.0.1 is this interface's own address"));
}

TEST_CASE("the MTU must suit IPv6 where a peer's prefixes use it") {
  const std::string small = "[Interface]\nPrivateKey = " + kPrivate + "\nMTU = 1200\n" + kPeer;
  CHECK(parse(small + "AllowedIPs = 10.9.0.2\n", "x").ok());
  CHECK_THAT(onlyMessage(small + "AllowedIPs = fd00::2\n"),
             StartsWith("3:1 error: an MTU of 1200"));
}

TEST_CASE("Table = reply needs AllowedIPs that hold clients") {
  const auto reply = [](const std::string& allowed, const std::string& address = "10.9.0.2/24") {
    return "[Interface]\nPrivateKey = " + kPrivate + "\nTable = reply\nAddress = " + address +
           "\n" + kPeer + "AllowedIPs = " + allowed + "\n";
  };
  CHECK(parse(reply("0.0.0.0/0"), "x").diagnostics.empty());
  CHECK(parse(reply("0.0.0.0/1, 128.0.0.0/1"), "x").diagnostics.empty());
  CHECK_THAT(onlyMessage(reply("10.9.0.0/24")),
             StartsWith("7:1 error:") && Contains("write AllowedIPs = 0.0.0.0/0 (Table = reply"));
  CHECK_THAT(onlyMessage(reply("0.0.0.0/1")), Contains("too narrow"));
  CHECK_THAT(onlyMessage(reply("10.9.0.0/24, fd00::/64", "10.9.0.2/24, fd00::2/64")),
             Contains("write AllowedIPs = 0.0.0.0/0, ::/0 "));
  CHECK_THAT(onlyMessage(reply("0.0.0.0/0", "10.9.0.2/24, fd00::2/64")),
             Contains("warning: Table = reply (line 3) answers clients of one family only"));
}

TEST_CASE("a NAS that asks for a port must be reachable by clients' addresses") {
  CHECK_THAT(onlyMessage(nas("10.9.0.1/32", map("tcp/80", "10.9.0.2"))),
             StartsWith("10:1 error: Source = preserve") && Contains("AllowedIPs of line 6"));
  CHECK_THAT(onlyMessage(nas("10.9.0.1/32", map("tcp/80", "192.168.50.20"))),
             Contains("Table = reply"));
  CHECK(parse(nas("10.9.0.1/32", map("tcp/80", "10.9.0.2") + "Source = masquerade\n"), "x")
            .diagnostics.empty());
  CHECK_THAT(onlyMessage(nas("0.0.0.0/0", map("tcp/80", "10.9.0.2"))),
             Contains("warning: with these AllowedIPs all traffic of this machine"));
}

TEST_CASE("preshared keys come from one place") {
  CHECK_THAT(onlyMessage(kInterface + kPeer + "PresharedKey = " + kPreshared +
                         "\nPresharedKeyFile = /x\n"),
             StartsWith("6:1 error: PresharedKeyFile and PresharedKey (line 5)"));
}
