// Lines, sections and keys: what the grammar makes of a file's text.
#include "config/schema.hpp"
#include "config/test_support.hpp"
#include "config/unicode.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

std::string withPeer(const std::string& line) {
  return kInterface + kPeer + line + "\n";
}

std::string nul(std::string text) {
  text[text.find('@')] = '\0';
  return text;
}

}  // namespace

TEST_CASE("grammar: every key of control-plane's example") {
  const Config config = parseClean(
      "[Interface]\nPrivateKey = " + kPrivate +
      "\nAddress = 10.10.0.1/24, fd10::1/64\nListenPort = 51820\nMTU = auto\nFwMark = 0xca6c\n"
      "DNS = 9.9.9.9, example.net\nTable = auto\nExpose = maps\nBackend = userspace\n"
      "Cipher = AES-256-GCM\nPublic = eth0\nBind = 203.0.113.9\nExtensions = off\n"
      "Metrics = 127.0.0.1:9586\n"
      "PreUp = a\nPostUp = b\nPreDown = c\nPostDown = d\nSaveConfig = false\n"
      "[Peer]\nName = nas\nPublicKey = " +
      kPeerA + "\nPresharedKey = " + kPreshared +
      "\nEndpoint = home.example.net:51820\nAllowedIPs = 10.10.0.2/32, fd10::2/128\n"
      "PersistentKeepalive = 25\nRoam = off\n"
      "AllowMaps = tcp/8000-9000, udp/51413, 53/tcp+udp, third-party\n"
      "[Map]\nListen = tcp/18080\nTo = NAS:80\nSource = masquerade\nAllow = 198.51.100.0/24\n"
      "Rate = 200mbit\nHairpin = on\nOverride = yes\n"
      "[Tune]\nProfile = auto\nRps = eth0:all\nRfs = 32768\nXps = off\nIrq = 0-3,8\n"
      "CongestionControl = bbr\nBuffers = 128M\nQdisc = fq\nConntrack = auto\nBacklog = 5000\n");
  const InterfaceConfig& interface = config.interface;
  CHECK(interface.addresses.size() == 2);
  CHECK(interface.listenPort == 51820);
  CHECK_FALSE(interface.mtu.has_value());
  CHECK(interface.firewallMark == 0xca6cU);
  CHECK(interface.dnsServers.size() == 1);
  CHECK(interface.dnsSearch == std::vector<std::string>{"example.net"});
  CHECK(std::holds_alternative<TableAuto>(interface.table));
  CHECK(interface.expose == Expose::Maps);
  CHECK(interface.backend == Backend::Userspace);
  CHECK(interface.cipher == crypto::Suite::Aes256Gcm);
  CHECK_FALSE(interface.extensions);
  CHECK(interface.publicInterface == "eth0");
  CHECK(interface.bindAddress->toString() == "203.0.113.9");
  CHECK(interface.metrics->toString() == "127.0.0.1:9586");
  CHECK(interface.preUp.at(0).command == "a");
  CHECK(interface.location.line == 1);
  const PeerConfig& peer = config.peers.at(0);
  CHECK(peer.name == "nas");
  CHECK(crypto::presharedKeyToBase64(*peer.presharedKey) == kPreshared);
  CHECK(peer.persistentKeepalive == 25);
  CHECK_FALSE(peer.roam);
  CHECK(peer.allowThirdParty);
  CHECK(peer.allowMaps == std::vector<PortGrant>{{PortGrant::Protocol::Tcp, 8000, 9000},
                                                 {PortGrant::Protocol::Udp, 51413, 51413},
                                                 {PortGrant::Protocol::Both, 53, 53}});
  const MapConfig& map = config.maps.at(0);
  CHECK(map.targetHost == "nas");
  CHECK(map.targets.size() == 2);
  CHECK(map.targetPort == 80);
  CHECK(map.source == Source::Masquerade);
  CHECK(map.allow.at(0).toString() == "198.51.100.0/24");
  CHECK(map.rate == 200'000'000U);
  CHECK((map.hairpin && map.overrideListener));
  CHECK(config.tune.profile == TuneConfig::Profile::Auto);
  CHECK(config.tune.settings.size() == 9);
  CHECK(config.tune.settings.at(0).key == "Rps");
  CHECK(config.tune.settings.at(0).value == "eth0:all");
}

TEST_CASE("grammar: defaults") {
  const Config config = parseClean(kInterface + kPeer + "[Map]\nListen=tcp/80\nTo=10.9.0.2\n" +
                                   "[Peer]\nPublicKey=" + kPeerB + "\nAllowedIPs=10.9.0.2\n");
  CHECK_FALSE(config.interface.listenPort.has_value());
  CHECK_FALSE(config.interface.cipher.has_value());
  CHECK(config.interface.extensions);
  CHECK(config.interface.expose == Expose::All);
  CHECK(config.peers.at(0).roam);
  CHECK(config.peers.at(0).persistentKeepalive == 0);
  CHECK(config.maps.at(0).source == Source::Preserve);
  CHECK(config.maps.at(0).targetPort == 80);
  CHECK_FALSE(config.maps.at(0).hairpin);
  CHECK(config.tune.profile == TuneConfig::Profile::Off);
  CHECK(parseClean(kInterface + "[Tune]\nRps = auto\n").tune.profile ==
        TuneConfig::Profile::Explicit);
}

TEST_CASE("grammar: an ordinary wg-quick file works unchanged") {
  const Config config =
      parseClean("[Interface]\r\nAddress = 10.2.0.2/32\r\nPrivateKey = " + kPrivate +
                 "\r\nDNS = 10.2.0.1\r\nTable = 51820\r\nFwMark = off\r\nMTU = 1420\r\nPreUp = \r\n"
                 "SaveConfig = false\r\n\r\n[Peer]\r\nPublicKey = " +
                 kPeerA +
                 "\r\nAllowedIPs = 0.0.0.0/0, ::/0\r\nEndpoint = 192.0.2.1:51820\r\n"
                 "PersistentKeepalive = off\r\n");
  CHECK(std::get<std::uint32_t>(config.interface.table) == 51820);
  CHECK_FALSE(config.interface.firewallMark.has_value());
  CHECK(config.interface.preUp.empty());
  CHECK(config.interface.mtu == 1420);
}

TEST_CASE("grammar: Address and DNS may be separated by blanks, as wg-quick has it") {
  const Config config =
      parseClean("[Interface]\nPrivateKey=" + kPrivate +
                 "\nAddress = 10.9.0.1/24 fd00::1/64\nDNS = 9.9.9.9 example.net\n");
  CHECK(config.interface.addresses.size() == 2);
  CHECK(config.interface.dnsSearch.size() == 1);
}

TEST_CASE("grammar: bytes that are no text") {
  CHECK(onlyMessage(nul(withPeer("Endpoint = 192@0.2.1:1"))) ==
        "5:15 error: a NUL byte; a configuration is text");
  CHECK(onlyMessage(nul(withPeer("# comment @"))) ==
        "5:11 error: a NUL byte; a configuration is text");
  CHECK_THAT(onlyMessage(withPeer("Endpoint = vps\xff.example:1")),
             StartsWith("5:15 error: byte FF is not UTF-8"));
  CHECK_THAT(onlyMessage(withPeer("Endpoint = vps\xc0\xaf:1")),
             StartsWith("5:15 error: byte C0 is not UTF-8"));
  CHECK_THAT(onlyMessage(withPeer("# K\xfc"
                                  "che")),
             StartsWith("5:4 warning: byte FC"));
  CHECK_THAT(onlyMessage(withPeer("Endpoint = 192.0.2.1:1\x07")),
             StartsWith("5:23 error: control character U+0007"));
  CHECK_THAT(onlyMessage(withPeer("Roam = on\rName = nas")), Contains("carriage return"));
  CHECK(parse(withPeer("# K\xc3\xbc"
                       "che, caf\xc3\xa9\xc2\xa0!"),
              "x")
            .diagnostics.empty());
}

TEST_CASE("grammar: UTF-16 with and without a mark") {
  for (const std::string_view text :
       {std::string_view("\xff\xfe[\0I\0", 6), std::string_view("\xfe\xff\0[\0I", 6),
        std::string_view("[\0I\0n\0", 6), std::string_view("\0[\0I\0n", 6)}) {
    CHECK_THAT(onlyMessage(text), Contains("UTF-16"));
  }
}

TEST_CASE("grammar: characters that only look right") {
  CHECK_THAT(onlyMessage(withPeer("\xd0\x90llowedIPs = 10.9.0.2")),
             StartsWith("5:1 error: U+0410 (Cyrillic A, bytes D0 90) only looks like a plain A"));
  CHECK_THAT(onlyMessage(withPeer("Endpoint \xef\xbc\x9d 192.0.2.1:1")),
             StartsWith("5:10 error: U+FF1D") && Contains("looks like a plain ="));
  CHECK_THAT(onlyMessage(withPeer("AllowMaps = tcp/8000\xe2\x80\x93"
                                  "9000")),
             StartsWith("5:21 error: U+2013 (en dash") && Contains("plain -"));
  CHECK_THAT(onlyMessage(withPeer("Name = \xe2\x80\x9cnas\xe2\x80\x9d")), Contains("U+201C"));
  CHECK_THAT(onlyMessage(withPeer("Name = na\xe2\x80\x8bs")), Contains("zero width space"));
  CHECK_THAT(onlyMessage(withPeer("Endpoint = b\xc3\xbc"
                                  "cher.example:1")),
             Contains("not ASCII"));
  CHECK_THAT(onlyMessage(withPeer("\xc2\xa0Name = nas")), StartsWith("5:1 error: U+00A0"));
}

TEST_CASE("grammar: hooks keep odd characters, with a warning for blanks the shell does not know") {
  const Outcome outcome = parse(kInterface +
                                    "PostUp = echo caf\xc3\xa9\nPostUp = echo\xc2\xa0"
                                    "a\n",
                                "x");
  REQUIRE(outcome.ok());
  CHECK(outcome.config->interface.postUp.at(0).command == "echo caf\xc3\xa9");
  CHECK(outcome.config->interface.postUp.at(1).command ==
        "echo\xc2\xa0"
        "a");
  REQUIRE(outcome.diagnostics.size() == 1);
  CHECK_THAT(messages(outcome)[0], StartsWith("4:14 warning: U+00A0"));
}

TEST_CASE("grammar: every Unicode description decodes") {
  CHECK(describeCharacter("\xf0\x9f\x98\x80") == "U+1F600 (bytes F0 9F 98 80)");
  CHECK_FALSE(decodeCharacter("\xed\xa0\x80", 0).codePoint.has_value());      // a surrogate
  CHECK_FALSE(decodeCharacter("\xf4\x90\x80\x80", 0).codePoint.has_value());  // beyond U+10FFFF
  CHECK_FALSE(decodeCharacter("\xe0\x80\xaf", 0).codePoint.has_value());      // overlong
  CHECK_FALSE(decodeCharacter("\xe2\x82", 0).codePoint.has_value());          // cut short
  CHECK(lookalikeOf(0xff10) == "0");
  CHECK_FALSE(lookalikeOf(0x1f600).has_value());
}

TEST_CASE("grammar: lines that are no entry") {
  CHECK_THAT(onlyMessage(withPeer("Endpoint 192.0.2.1:1")),
             StartsWith("5:1 error: expected Key = Value"));
  CHECK_THAT(onlyMessage(withPeer("  = x")), StartsWith("5:3 error: expected Key = Value"));
  CHECK_THAT(onlyMessage(withPeer("[Peer")), StartsWith("5:1 error: the section header does not"));
  CHECK_THAT(onlyMessage(withPeer("[]")), StartsWith("5:1 error: the section header is empty"));
  CHECK_THAT(
      onlyMessage(kInterface + "[Peer] PublicKey=" + kPeerA + "\nPublicKey = " + kPeerA + "\n"),
      StartsWith("3:8 error: text after the section header"));
  CHECK_THAT(onlyMessage(kInterface + "Public = " + std::string(1 << 20, 'a')),
             Contains("longer than 1048576 bytes"));
}

TEST_CASE("grammar: unknown names get a suggestion") {
  CHECK_THAT(onlyMessage(withPeer("EndPiont = 192.0.2.1:1")),
             StartsWith("5:1 error: unknown key \"EndPiont\" in [Peer]; did you mean Endpoint?"));
  CHECK_THAT(onlyMessage(withPeer("Allowed IPs = 10.9.0.2")), Contains("did you mean AllowedIPs?"));
  CHECK_THAT(onlyMessage(withPeer("AllowedIP = 10.9.0.2")), Contains("did you mean AllowedIPs?"));
  CHECK_THAT(onlyMessage(withPeer("Adress = 10.9.0.2")),
             Contains("did you mean Address of [Interface]?"));
  CHECK_THAT(onlyMessage(withPeer("Address = 10.9.0.2")),
             StartsWith("5:1 error: Address belongs into [Interface], not into [Peer]"));
  CHECK_THAT(onlyMessage(kInterface + "Endpoint = 192.0.2.1:1\n"),
             StartsWith("3:1 error: Endpoint belongs into [Peer]"));
  CHECK_THAT(onlyMessage(withPeer("Compress = yes")), Contains("the keys of [Peer] are Name,"));
  CHECK_THAT(onlyMessage(kInterface + "Jc = 4\n"), Contains("AmneziaWG"));
  CHECK_THAT(onlyMessage("[Interfaces]\nPrivateKey = " + kPrivate + "\n"),
             StartsWith("1:2 error: unknown section \"Interfaces\"; did you mean [Interface]?"));
  CHECK_THAT(onlyMessage(kInterface + "[Wibble]\nfoo = bar\n"), Contains("the sections are"));
  CHECK_THAT(onlyMessage("PrivateKey = " + kPrivate + "\nListenPort = 1\n"),
             StartsWith("1:1 error: a key before the first section"));
}

TEST_CASE("grammar: a misspelt section does not hide the errors inside") {
  const Outcome outcome = parse(kInterface + "[Peeer]\nEndpoint = x\n", "x");
  REQUIRE(outcome.diagnostics.size() == 3);
  CHECK_THAT(messages(outcome)[0], Contains("did you mean [Peer]?"));
  CHECK_THAT(messages(outcome)[1], Contains("no PublicKey"));
  CHECK_THAT(messages(outcome)[2], Contains("port is missing"));
}

TEST_CASE("grammar: a key that an editor wrapped") {
  const Outcome outcome = parse("[Interface]\nPrivateKey = " + kPrivate.substr(0, 20) + "\n" +
                                    kPrivate.substr(20) + "\nListenPort =\n[Peer]\nPublicKey =\n",
                                "x");
  CHECK(
      messages(outcome) ==
      std::vector<std::string>{
          "2:14 error: a key has 44 characters of base64, this one has 20",
          "3:1 error: unknown key in [Interface]; if the line continues the one above it, join the "
          "two",
          "4:13 error: ListenPort has no value; write ListenPort = PORT, or leave the line out",
          "6:12 error: PublicKey has no value; write PublicKey = KEY"});
}

TEST_CASE("grammar: required parts and sections that stand once") {
  CHECK_THAT(onlyMessage(""), StartsWith("1:1 error: there is no [Interface]"));
  CHECK_THAT(onlyMessage("[Peer]\nPublicKey = " + kPeerA), Contains("no [Interface]"));
  CHECK_THAT(onlyMessage("[Interface]\n"), StartsWith("1:2 error: [Interface] has no private key"));
  CHECK_THAT(onlyMessage(kInterface + "[Peer]\nAllowedIPs = 10.9.0.2\n"),
             StartsWith("3:2 error: [Peer] has no PublicKey"));
  CHECK_THAT(onlyMessage(kInterface + "[Interface]\nListenPort = 1\n"),
             StartsWith("3:2 error: [Interface] stands already on line 1"));
  CHECK_THAT(onlyMessage(kInterface + "[Tune]\n[Tune]\n"), Contains("[Tune] stands already"));
  CHECK_THAT(onlyMessage(kInterface + "[Map]\nTo = 10.9.0.2\n"), Contains("[Map] has no Listen"));
  CHECK_THAT(onlyMessage(kInterface + "[Map]\nListen = tcp/80\n"), Contains("[Map] has no To"));
  CHECK_THAT(onlyMessage("[Interface]\nPrivateKey = " + kPrivate + "\nPrivateKeyFile = /x\n"),
             StartsWith("3:1 error: PrivateKeyFile and PrivateKey (line 2) exclude each other"));
}

TEST_CASE("grammar: a hook may set the key, as wg-quick's manual has it") {
  const Outcome outcome =
      parse("[Interface]\nPostUp = wg set %i private-key /etc/wireguard/%i.key\n", "x");
  REQUIRE(outcome.ok());
  CHECK_THAT(messages(outcome).at(0), StartsWith("1:2 warning: [Interface] has no private key"));
}

TEST_CASE("grammar: values that are refused") {
  const auto inInterface = [](const std::string& line) { return onlyMessage(kInterface + line); };
  CHECK_THAT(inInterface("ListenPort = 65536"), Contains("0 to 65535"));
  CHECK_THAT(inInterface("ListenPort = 51 820"), Contains("is not a port"));
  CHECK_THAT(inInterface("ListenPort = \"51820\""), Contains("without quotes"));
  CHECK_THAT(inInterface("ListenPort ="), StartsWith("3:13 error: ListenPort has no value"));
  CHECK_THAT(inInterface("ListenPort = # none"), Contains("ListenPort has no value"));
  CHECK_THAT(inInterface("ListenPort == 51820"), Contains("is not a port"));
  CHECK_THAT(inInterface("SaveConfig = true"), StartsWith("3:14 error:") && Contains("adit save"));
  CHECK_THAT(inInterface("SaveConfig = maybe"), Contains("neither on nor off"));
  CHECK_THAT(inInterface("FwMark = 0xfffffffff"), Contains("or off"));
  CHECK_THAT(inInterface("MTU = 67"), Contains("or auto"));
  CHECK_THAT(inInterface("Table = 0"), Contains("not a routing table"));
  CHECK_THAT(inInterface("Table = replay"), Contains("not a routing table"));
  CHECK_THAT(inInterface("Expose = some"), Contains("write all or maps"));
  CHECK_THAT(inInterface("Backend = gpu"), Contains("write auto or kernel or userspace"));
  CHECK_THAT(inInterface("Cipher = rot13"), Contains("chacha20-poly1305"));
  CHECK_THAT(inInterface("Public = eth0/1"), StartsWith("3:14 error:"));
  CHECK_THAT(inInterface("Bind = eth0"), Contains("not an IPv4 or IPv6 address"));
  for (const std::string open :
       {"0.0.0.0:9586", "203.0.113.9:9586", "[::]:9586", "localhost:9586"}) {
    CHECK_THAT(inInterface("Metrics = " + open),
               Contains("error:") && Contains("unix:/PATH or off"));
  }
  CHECK_THAT(inInterface("Metrics = 127.0.0.1"), Contains("error:") && Contains("unix:/PATH"));
  CHECK_THAT(inInterface("Metrics = on"), Contains("error:"));
  CHECK_THAT(inInterface("Metrics = unix:adit.sock"), Contains("must begin with /"));
  CHECK_THAT(inInterface("Metrics = unix:/" + std::string(120, 'a')), Contains("longer than 107"));
  CHECK_THAT(inInterface("DNS = 1.1.1"), Contains("name server"));
  CHECK_THAT(inInterface("DNS = 9.9.9.9,"), StartsWith("3:14 error: the list ends in a comma"));
  CHECK_THAT(inInterface("Address = 0.0.0.0/0"), Contains("cannot be an interface's address"));
  CHECK_THAT(inInterface("Address = 10.9.0.1/24, 10.9.0.1/24"), StartsWith("3:24 error: 10.9.0.1"));
  CHECK_THAT(inInterface("Address = 10.9.0.0/24"), Contains("warning: 10.9.0.0/24 is the network"));
  CHECK_THAT(inInterface("Address = fd00::1/64\nMTU = 1279"),
             StartsWith("4:1 error: an MTU of 1279"));
  CHECK_THAT(inInterface("[Tune]\nIrq = 4-N"), StartsWith("4:9 error:"));
  CHECK_THAT(inInterface("[Tune]\nRfs = -1"), Contains("auto or off"));
  CHECK_THAT(inInterface("[Tune]\nCongestionControl = b b r"), Contains("kernel algorithm"));
  CHECK_THAT(onlyMessage(withPeer("PersistentKeepalive = 65536")), Contains("or off"));
  CHECK_THAT(onlyMessage(withPeer("PersistentKeepalive = 25s")), Contains("or off"));
  CHECK_THAT(onlyMessage(withPeer("AllowedIPs = 10.9.0.2/32 10.9.0.3/32")),
             StartsWith("5:25 error: a blank inside"));
  CHECK_THAT(
      onlyMessage(withPeer("AllowedIPs = 10.9.0.2/24")),
      StartsWith("5:14 warning: \"10.9.0.2/24\" has bits set after its length; 10.9.0.0/24"));
  CHECK_THAT(onlyMessage(withPeer("AllowedIPs = +10.9.0.2/32")), Contains("without + or -"));
  CHECK_THAT(onlyMessage(withPeer("AllowMaps = 8000-9000")), Contains("write tcp/PORT"));
  CHECK_THAT(onlyMessage(withPeer("AllowMaps = tcp/9000-8000")), Contains("reversed"));
  CHECK_THAT(onlyMessage(kInterface + "[Peer]\nPublicKey = " + std::string(43, 'A') + "=\n"),
             Contains("all zero"));
}

TEST_CASE("grammar: all errors of a file in one run, in order") {
  const Outcome outcome = parse(
      "[Interface]\nMTU = x\nPrivateKey = short\nBogus = 1\n[Peer]\nEndpoint = x\nAllowedIPs = "
      "1.2.3.4/99, 5\n[Map]\nListen = tcp/0\n",
      "dir/test.conf");
  std::vector<unsigned> lines;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    lines.push_back(diagnostic.location.line);
  }
  CHECK(lines == std::vector<unsigned>{2, 3, 4, 5, 6, 7, 7, 8, 9});
  CHECK_THAT(outcome.diagnostics.front().toString(), StartsWith("dir/test.conf:2:7: error: "));
}

TEST_CASE("grammar: wg's dialect takes its keys and needs no private key") {
  const Outcome outcome = parse("[Interface]\nListenPort = 0\nFwMark = off\n" + kPeer +
                                    "PresharedKey = " + std::string(43, 'A') +
                                    "=\nAllowedIPs = 10.9.0.2/32\nEndpoint = 192.0.2.1:1\n",
                                "x", Dialect::WireGuard);
  CAPTURE(messages(outcome));
  REQUIRE(outcome.diagnostics.empty());
  CHECK_FALSE(outcome.config->interface.privateKey.has_value());
  CHECK(outcome.config->interface.firewallMark == 0U);
  CHECK(outcome.config->interface.listenPort == 0);
  CHECK(outcome.config->peers.at(0).presharedKey->isZero());
  CHECK(parse("", "x", Dialect::WireGuard).ok());
  CHECK(parse(kPeer, "x", Dialect::WireGuard).ok());
}

TEST_CASE("grammar: the table of keys is complete and its names are unique in a section") {
  for (const std::string_view section : sectionNames()) {
    const auto keys = keysOf(*findSection(section));
    REQUIRE_FALSE(keys.empty());
    for (const KeySpec& spec : keys) {
      CAPTURE(section, spec.name);
      CHECK(findKey(*findSection(section), spec.name) == &spec);
      CHECK((spec.parse != nullptr && spec.format != nullptr));
      CHECK_FALSE((spec.syntax.empty() || spec.fallback.empty()));
    }
  }
}
