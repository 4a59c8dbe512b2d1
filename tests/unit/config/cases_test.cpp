// The handed cases that a configuration file can show; inputs in tests/cases.
#include "config/test_support.hpp"
#include "config/writer.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

Outcome parseCase(const std::string& name, Dialect dialect = Dialect::Adit) {
  const std::filesystem::path path = std::filesystem::path(ADIT_SOURCE_DIR) / "tests/cases" / name;
  return parse(readWhole(path), name, dialect);
}

Config soundCase(const std::string& name) {
  Outcome outcome = parseCase(name);
  std::erase_if(outcome.diagnostics, isAdvice);
  CAPTURE(name, messages(outcome));
  REQUIRE(outcome.diagnostics.empty());
  REQUIRE(outcome.ok());
  return std::move(*outcome.config);
}

std::vector<std::string> badCase(const std::string& name, Dialect dialect = Dialect::Adit) {
  const Outcome outcome = parseCase(name, dialect);
  CAPTURE(name, messages(outcome));
  REQUIRE_FALSE(outcome.ok());
  return messages(outcome);
}

std::vector<std::string> texts(const std::vector<Prefix>& prefixes) {
  std::vector<std::string> result;
  for (const Prefix& prefix : prefixes) {
    result.push_back(prefix.toString());
  }
  return result;
}

}  // namespace

TEST_CASE("case 1: comments end values, with and without a blank before #") {
  const Config config = soundCase("01-inline-comment.conf");
  REQUIRE(config.interface.privateKey->toBase64() == kPrivate);
  REQUIRE(config.interface.addresses.at(0).toString() == "10.9.0.1/24");
  REQUIRE(config.peers.at(0).endpoint->toString() == "192.0.2.10:51820");
  REQUIRE(texts(config.peers.at(0).allowedIps) == std::vector<std::string>{"10.9.0.0/24"});
}

TEST_CASE("case 1: a semicolon is no comment, and the error says what is") {
  const auto errors = badCase("01-semicolon-comment.conf");
  REQUIRE(errors.size() == 2);
  REQUIRE_THAT(errors[0],
               StartsWith("6:29 error: `;` does not start a comment") && Contains("`#`"));
  REQUIRE_THAT(errors[1], StartsWith("7:1 error: `;` does not start a comment"));
}

TEST_CASE("case 2: a byte order mark at the start is skipped") {
  REQUIRE(soundCase("02-bom.conf").peers.size() == 1);
}

TEST_CASE("case 2: a byte order mark elsewhere is named with its bytes and column") {
  const auto errors = badCase("02-bom-elsewhere.conf");
  REQUIRE_THAT(errors.at(0), StartsWith("4:1 error: U+FEFF (byte order mark, bytes EF BB BF)"));
}

TEST_CASE("case 2: a no-break space is named, and the key beside it is not shown") {
  const auto errors = badCase("02-no-break-space.conf");
  REQUIRE(errors.size() == 1);
  REQUIRE_THAT(errors[0], StartsWith("2:13 error: U+00A0 (no-break space, bytes C2 A0)"));
  REQUIRE_THAT(errors[0], !Contains(kPrivate.substr(0, 8)));
}

TEST_CASE("case 2: UTF-16 is not UTF-8") {
  const auto errors = badCase("02-utf16.conf");
  REQUIRE(errors == std::vector<std::string>{
                        "1:1 error: the file is not UTF-8 but UTF-16; save it as UTF-8"});
}

TEST_CASE("case 4: names ignore case and blanks, values keep theirs") {
  const Config config = soundCase("04-case-and-blanks.conf");
  REQUIRE(config.interface.privateKey->toBase64() == kPrivate);
  REQUIRE(config.interface.dnsServers.at(0).toString() == "9.9.9.9");
  REQUIRE(config.interface.listenPort == 51820);
  REQUIRE(config.peers.at(0).publicKey.toBase64() == kPeerA);
  REQUIRE(texts(config.peers.at(0).allowedIps) == std::vector<std::string>{"10.9.0.2/32"});
  REQUIRE(config.peers.at(0).endpoint->host == "VPS.Example.net");
}

TEST_CASE("case 5: lists accumulate over lines and commas, and survive writing") {
  const Config config = soundCase("05-lists.conf");
  const Config again = parseClean(write(config));
  for (const Config& each : {config, again}) {
    REQUIRE(each.interface.addresses.size() == 2);
    REQUIRE(each.interface.addresses[0].toString() == "10.9.0.2/32");
    REQUIRE(each.interface.addresses[1].toString() == "fd00:9::2/128");
    REQUIRE(texts(each.peers.at(0).allowedIps) ==
            std::vector<std::string>{"10.9.0.0/24", "fd00:9::/64", "192.168.50.0/24",
                                     "198.51.100.7/32"});
  }
}

TEST_CASE("case 5: single-valued keys given twice name both lines") {
  const auto errors = badCase("05-single-twice.conf");
  REQUIRE(errors == std::vector<std::string>{
                        "4:1 error: ListenPort stands already on line 3; it has one value",
                        "5:1 error: PrivateKey stands already on line 2; it has one value"});
}

TEST_CASE("case 6: empty elements, an empty value and semicolons are errors with their column") {
  const auto errors = badCase("06-empty-elements.conf");
  REQUIRE(errors.size() == 5);
  REQUIRE_THAT(errors[0], StartsWith("6:25 error: the list ends in a comma"));
  REQUIRE_THAT(errors[1], StartsWith("7:13 error: AllowedIPs has no value"));
  REQUIRE_THAT(errors[2], StartsWith("8:25 error: `;` neither separates"));
  REQUIRE_THAT(errors[3], StartsWith("9:14 error: an empty element"));
  REQUIRE_THAT(errors[4], StartsWith("10:26 error: an empty element"));
}

TEST_CASE("case 6: a peer without prefixes is written without the key") {
  const Config config = parseClean(kInterface + kPeer);
  REQUIRE_THAT(write(config), !Contains("AllowedIPs"));
}

TEST_CASE("case 7: the second half of a wrapped hook is named with its line") {
  const auto errors = badCase("07-wrapped-hook.conf");
  REQUIRE(errors == std::vector<std::string>{
                        "3:2 error: expected Key = Value; if it continues the PostUp of line 2, "
                        "join the two lines"});
}

TEST_CASE("case 7: setconf with a whole file says which command to use") {
  const auto errors = badCase("07-setconf-whole-file.conf", Dialect::WireGuard);
  REQUIRE(errors.size() == 6);
  REQUIRE_THAT(errors[0], StartsWith("3:1 error: Address does not belong here"));
  REQUIRE_THAT(errors[1], StartsWith("4:1 error: DNS does not belong here"));
  REQUIRE_THAT(errors[2], StartsWith("5:1 error: PostUp does not belong here"));
  REQUIRE_THAT(errors[3], StartsWith("8:1 error: Name does not belong here"));
  REQUIRE_THAT(errors[4], StartsWith("12:2 error: [Map] does not belong here"));
  REQUIRE_THAT(errors[5], StartsWith("16:2 error: [Tune] does not belong here"));
  for (const std::string& error : errors) {
    REQUIRE_THAT(error, Contains("adit strip") && Contains("adit reload"));
  }
  REQUIRE(soundCase("07-setconf-whole-file.conf").maps.size() == 1);
}

TEST_CASE("case 10: two peers of one key name both lines") {
  REQUIRE(
      badCase("10-same-public-key.conf") ==
      std::vector<std::string>{"8:1 error: the peer of line 5 has the same PublicKey; merge the "
                               "two or correct one key"});
}

TEST_CASE("case 10: the interface's own key is no peer's") {
  const auto errors = badCase("10-own-public-key.conf");
  REQUIRE(errors.size() == 1);
  REQUIRE_THAT(errors[0], StartsWith("5:1 error: this is the interface's own public key"));
}

TEST_CASE("case 11: the same prefix on two peers names both lines") {
  REQUIRE(
      badCase("11-same-prefix.conf") ==
      std::vector<std::string>{"10:14 error: 10.9.0.0/24 belongs to the peer of line 6 already; "
                               "a prefix leads to one peer"});
}

TEST_CASE("case 11: a more specific prefix of another peer is legal") {
  REQUIRE(soundCase("11-more-specific.conf").peers.size() == 2);
}

TEST_CASE("case 14: a key that is not clamped is the same key") {
  const Config config = soundCase("14-unclamped.conf");
  const Config again = parseClean(write(config));
  REQUIRE(config.interface.privateKey == again.interface.privateKey);
  REQUIRE(config.interface.privateKey->publicKey() == again.interface.privateKey->publicKey());
}

TEST_CASE("case 15: IPv6 endpoint without brackets") {
  REQUIRE(badCase("15-bare-port.conf") ==
          std::vector<std::string>{"6:12 error: an IPv6 address needs brackets here; write "
                                   "[2001:db8::7]:51820"});
  REQUIRE(badCase("15-bare.conf") ==
          std::vector<std::string>{
              "6:12 error: an IPv6 address needs brackets here; write [2001:db8::7]:PORT"});
}

TEST_CASE("case 15: IPv6 endpoint without port") {
  REQUIRE(badCase("15-no-port.conf") ==
          std::vector<std::string>{"6:25 error: the port is missing; write [2001:db8::7]:PORT"});
}

TEST_CASE("case 15: brackets survive every form of output") {
  const Config config = soundCase("15-brackets.conf");
  const EndpointName& endpoint = *config.peers.at(0).endpoint;
  REQUIRE(endpoint.host == "2001:db8::7");
  REQUIRE(endpoint.port == 51820);
  REQUIRE(endpoint.literal->isV6());
  REQUIRE(endpoint.toString() == "[2001:db8::7]:51820");
  REQUIRE_THAT(write(config), Contains("Endpoint = [2001:db8::7]:51820\n"));
}

TEST_CASE("case 16: a zone by name or number is kept") {
  for (const auto& [name, zone] :
       {std::pair{"16-zone.conf", "enp1s0"}, {"16-zone-number.conf", "3"}}) {
    const Config config = soundCase(name);
    const EndpointName& endpoint = *config.peers.at(0).endpoint;
    REQUIRE(endpoint.host == "fe80::1");
    REQUIRE(endpoint.zone == zone);
    REQUIRE_THAT(write(config), Contains(std::string("Endpoint = [fe80::1%") + zone + "]:51820\n"));
  }
}

TEST_CASE("case 16: a link-local endpoint needs its zone") {
  REQUIRE(badCase("16-no-zone.conf") ==
          std::vector<std::string>{"6:13 error: a link-local address needs its interface; write "
                                   "[fe80::1%INTERFACE]:PORT"});
}

TEST_CASE("case 20: hooks are kept to the byte and in order") {
  const Outcome outcome = parseCase("20-hooks.conf");
  REQUIRE(outcome.ok());
  const InterfaceConfig& interface = outcome.config->interface;
  REQUIRE(interface.postUp.size() == 2);
  REQUIRE(interface.postUp[0].command == "logger -t %i \"up #1\"; nft list tables >/dev/null");
  REQUIRE(interface.postUp[0].location.line == 3);
  REQUIRE(interface.postUp[1].command == "true");
  REQUIRE(interface.preDown.at(0).command == "logger mark $(adit show %i fwmark)");
  REQUIRE(interface.postDown.at(0).command == "logger \"unbalanced");
  REQUIRE(messages(outcome) ==
          std::vector<std::string>{"6:19 warning: this quote is not closed; the shell will refuse "
                                   "the hook"});
}

TEST_CASE("case 34: AllowedIPs too narrow for clients' addresses") {
  const auto narrow = badCase("34-narrow.conf");
  REQUIRE(narrow.size() == 1);
  REQUIRE_THAT(narrow[0], StartsWith("9:1 error:") &&
                              Contains("too narrow for Table = reply (line 4)") &&
                              Contains("write AllowedIPs = 0.0.0.0/0"));
  const auto requested = badCase("34-requested-map.conf");
  REQUIRE(requested.size() == 1);
  REQUIRE_THAT(requested[0], StartsWith("12:1 error:") && Contains("line 8") &&
                                 Contains("Table = reply") && Contains("0.0.0.0/0"));
  REQUIRE(std::holds_alternative<TableReply>(soundCase("34-wide.conf").interface.table));
}

TEST_CASE("case 37: a catch-all range may hold the tunnel's port, a mapping of it alone may not") {
  const Config config = soundCase("37-catch-all.conf");
  REQUIRE(config.maps.at(0).firstPort == 1);
  REQUIRE(config.maps.at(0).lastPort == 65535);
  REQUIRE(config.maps.at(1).overrideListener);
  REQUIRE(
      badCase("37-own-port.conf") ==
      std::vector<std::string>{"12:1 error: udp/51820 is the tunnel's own port (ListenPort, line "
                               "4); choose another"});
}

TEST_CASE("case 39: shifted ranges keep their distance, and must fit") {
  const Config config = soundCase("39-shifted.conf");
  REQUIRE(config.maps.at(0).firstPort == 5000);
  REQUIRE(config.maps.at(0).lastPort == 5009);
  REQUIRE(config.maps.at(0).targetPort == 6000);
  const auto errors = badCase("39-ranges.conf");
  REQUIRE(errors.size() == 4);
  REQUIRE_THAT(errors[0], StartsWith("12:10 error: the range 5009-5000 is reversed"));
  REQUIRE_THAT(errors[1], StartsWith("17:1 error: the target range 65500-65600 passes 65535"));
  REQUIRE_THAT(errors[2], StartsWith("20:14 error: \"0\" is not a port"));
  REQUIRE_THAT(errors[3], StartsWith("25:10 error: \"0\" is not a port"));
}

TEST_CASE("case 40: overlapping mappings name both lines, tcp and udp do not conflict") {
  REQUIRE(
      badCase("40-overlap.conf") ==
      std::vector<std::string>{
          "21:1 error: tcp/8080 overlaps tcp/8000-8100 of line 17; a port leads to one target",
          "25:1 error: tcp/8080 overlaps tcp/8000-8100 of line 17; a port leads to one target"});
}

TEST_CASE("case 52: passive FTP needs equal numbers") {
  REQUIRE(soundCase("52-passive-ftp.conf").maps.size() == 2);
  const Outcome shifted = parseCase("52-shifted-passive.conf");
  REQUIRE(shifted.ok());
  REQUIRE(messages(shifted).size() == 1);
  REQUIRE_THAT(messages(shifted)[0],
               StartsWith("17:1 warning: the range is shifted from 50000 to 40000") &&
                   Contains("passive mode"));
}
