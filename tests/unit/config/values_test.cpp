// Single values: what is accepted, what is refused, and at which byte.
#include "config/values.hpp"

#include "config/diagnostics.hpp"
#include "config/test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;

namespace {

struct Refused {
  std::string text;
  std::size_t offset;
  std::string says;
};

template <typename Parse>
void requireRefused(Parse parse, const std::vector<Refused>& all) {
  for (const Refused& refused : all) {
    CAPTURE(refused.text);
    const auto value = parse(refused.text);
    REQUIRE_FALSE(value.has_value());
    CAPTURE(value.error().message);
    CHECK(value.error().offset == refused.offset);
    CHECK_THAT(value.error().message, Contains(refused.says));
  }
}

}  // namespace

TEST_CASE("endpoints: the accepted forms print as they are written") {
  for (const std::string text :
       {"192.0.2.1:51820", "[2001:db8::1]:1", "[fe80::1%eth0.100]:65535", "[fe80::1%12]:51820",
        "vps.example.net:51820", "VPS.Example.net.:51820", "localhost:51820", "x_1.example:9",
        "[::1]:51820", "xn--bcher-kva.example:443", "3com.example:1"}) {
    CAPTURE(text);
    const auto endpoint = parseEndpoint(text);
    REQUIRE(endpoint.has_value());
    CHECK(endpoint->toString() == text);
    CHECK(endpoint->literal.has_value() == (text[0] == '[' || text[0] == '1'));
  }
}

TEST_CASE("endpoints: the refused forms say what is right") {
  requireRefused(parseEndpoint,
                 {{"192.0.2.1", 9, "write HOST:PORT"},
                  {"vps.example.net", 15, "write HOST:PORT"},
                  {"192.0.2.1:", 9, "port is missing"},
                  {":51820", 0, "host is missing"},
                  {"192.0.2.1:0", 10, "1 to 65535"},
                  {"192.0.2.1:65536", 10, "1 to 65535"},
                  {"192.0.2.1:051820", 10, "1 to 65535"},
                  {"192.0.2.1:+5", 10, "1 to 65535"},
                  {"192.0.2.1:99999999999999999999999", 10, "1 to 65535"},
                  {"192.0.2.1:wireguard", 10, "1 to 65535"},
                  {"192.0.2.300:51820", 0, "neither an address nor a host name"},
                  {"192.0.2:51820", 0, "neither an address nor a host name"},
                  {"0.0.0.0:51820", 0, "not the address of one host"},
                  {"224.0.0.1:51820", 0, "not the address of one host"},
                  {"[ff02::1]:51820", 1, "not the address of one host"},
                  {"[::]:51820", 1, "not the address of one host"},
                  {"[192.0.2.1]:51820", 1, "brackets are for these alone"},
                  {"[::ffff:192.0.2.1]:51820", 1, "write the IPv4 address"},
                  {"[vps.example.net]:51820", 1, "brackets are for these alone"},
                  {"[2001:db8::1:51820", 0, "not closed"},
                  {"2001:db8::1]:51820", 0, "needs brackets here; write [ADDRESS]:PORT"},
                  {"[2001:db8::1]51820", 13, "expected : and a port"},
                  {"[2001:db8::1]:", 13, "port is missing"},
                  {"[2001:db8::1%eth0]:51820", 12, "only link-local addresses"},
                  {"[fe80::1%]:51820", 9, "zone"},
                  {"[fe80::1%a/b]:51820", 10, "does not belong"},
                  {"[fe80::1%sixteen_bytes_xx]:51820", 9, "zone"},
                  {"[fe80::1%0]:51820", 9, "interface number"},
                  {"[fe80::1%25eth0]:51820", 9, "write %eth0"},
                  {"[febf::1]:51820", 1, "%INTERFACE"},
                  {"fe80::1%eth0:51820", 0, "needs brackets"},
                  {"192.0.2.1%eth0:51820", 9, "only IPv6 addresses have a zone"},
                  {"udp://192.0.2.1:51820", 0, "no scheme"},
                  {"https://vps.example.net:51820", 0, "no scheme"},
                  {"192.0.2.1:51820,192.0.2.2:51820", 15, "one endpoint"},
                  {"192.0.2.1 :51820", 9, "blank"},
                  {"-vps.example.net:51820", 0, "not a host name"},
                  {"vps..example.net:51820", 4, "1 to 63"},
                  {"vps!example.net:51820", 3, "not a host name"},
                  {std::string(64, 'a') + ".net:51820", 0, "1 to 63"}});
}

TEST_CASE("listeners: every way to write one") {
  const auto tcp = parseListen("tcp/18080");
  REQUIRE(tcp.has_value());
  CHECK((tcp->match.tcp && !tcp->match.udp && tcp->match.ports.first == 18080 && !tcp->address));
  const auto udp = parseListen("203.0.113.9:8000-9000/UDP");
  REQUIRE(udp.has_value());
  CHECK((!udp->match.tcp && udp->match.udp && udp->match.ports.last == 9000));
  CHECK(udp->address->toString() == "203.0.113.9");
  const auto both = parseListen("[2001:db8::1]:tcp+udp/53");
  REQUIRE(both.has_value());
  CHECK((both->match.tcp && both->match.udp && both->address->isV6()));
  CHECK_FALSE(parseListen("0.0.0.0:tcp/53")->address.has_value());
  requireRefused(parseListen, {{"8080", 0, "write tcp/PORT"},
                               {"tcp", 0, "write tcp/PORT"},
                               {"tcp/", 4, "1 to 65535"},
                               {"tcp/0", 4, "1 to 65535"},
                               {"0-5/udp", 0, "1 to 65535"},
                               {"tcp/70000", 4, "1 to 65535"},
                               {"tcp/9-5", 4, "reversed; write 5-9"},
                               {"tcp/1-65536", 6, "1 to 65535"},
                               {"tcp/80-", 7, "1 to 65535"},
                               {"sctp/80", 0, "not a protocol"},
                               {"80/sctp", 3, "not a protocol"},
                               {"tcp/80/90", 4, "1 to 65535"},
                               {"tcp/80,tcp/443", 6, "another [Map]"},
                               {"tcp://80", 3, "one /"},
                               {"tcp / 80", 3, "blank"},
                               {"8080:80/tcp", 0, "To"},
                               {"203.0.113.9:443", 12, "write tcp/PORT"},
                               {"[203.0.113.9:tcp/443", 0, "not closed"},
                               {"[2001:db8::1]tcp/443", 13, "expected :"},
                               {"2001:db8::1:tcp/443", 0, "brackets"}});
}

TEST_CASE("targets: peers, addresses and ports") {
  CHECK(parseTarget("nas")->host == "nas");
  CHECK_FALSE(parseTarget("nas")->ports.has_value());
  CHECK(parseTarget("nas:80")->ports->first == 80);
  CHECK(parseTarget("10.9.0.2:6000-6009")->ports->last == 6009);
  CHECK(parseTarget("[fd10::2]:80")->address->isV6());
  CHECK(parseTarget("[fd10::2]")->host == "fd10::2");
  requireRefused(parseTarget, {{"fd10::2", 0, "write [fd10::2]"},
                               {"fd10::2:80", 0, "write [fd10::2]:80"},
                               {":80", 0, "target is missing"},
                               {"nas:0", 4, "1 to 65535"},
                               {"nas:", 4, "1 to 65535"},
                               {"nas:6009-6000", 4, "reversed"},
                               {"nas:80/tcp", 6, "does not belong"},
                               {"8080", 0, "neither"},
                               {"[10.9.0.2]:80", 0, "brackets are for IPv6"},
                               {"[fe80::1%eth0]:80", 8, "zone"},
                               {"0.0.0.0:80", 0, "one host"},
                               {"10.9.0.2 :80", 8, "blank"},
                               {"n@s", 1, "neither"}});
}

TEST_CASE("keys: the error says what is wrong and never shows them") {
  REQUIRE_FALSE(checkKeyText(kPrivate).has_value());
  const std::string hex(64, 'a');
  std::string urlSafe = kPrivate;
  urlSafe[urlSafe.find('/')] = '_';
  std::string mistyped = kPrivate;
  mistyped[42] = 'l';
  const std::vector<Refused> refused{{kPrivate.substr(0, 43), 0, "final = is missing"},
                                     {kPrivate.substr(0, 30), 0, "this one has 30"},
                                     {kPrivate.substr(1), 0, "this one has 43"},
                                     {kPrivate + "=", 44, "after the end"},
                                     {kPrivate + kPrivate, 44, "after the end"},
                                     {kPrivate + " x", 44, "after the end"},
                                     {"x " + kPrivate, 1, "not base64"},
                                     {urlSafe, kPrivate.find('/'), "URL-safe"},
                                     {hex, 0, "hexadecimal"},
                                     {mistyped, 42, "mistyped"},
                                     {std::string(44, 'A'), 42, "32 bytes"},
                                     {"(none)", 0, "not shown"},
                                     {"", 0, "this one has 0"}};
  for (const Refused& each : refused) {
    CAPTURE(each.text);
    const auto error = checkKeyText(each.text);
    REQUIRE(error.has_value());
    CAPTURE(error->message);
    CHECK(error->offset == each.offset);
    CHECK_THAT(error->message, Contains(each.says));
    CHECK(error->message.find(kPrivate.substr(4, 8)) == std::string::npos);
  }
}

TEST_CASE("numbers, switches, rates and sizes") {
  CHECK(parseNumber32("0xca6c", "a mark") == 0xca6cU);
  CHECK(parseNumber32("4294967295", "a mark") == 4294967295U);
  CHECK_FALSE(parseNumber32("4294967296", "a mark").has_value());
  CHECK_FALSE(parseNumber32("0x", "a mark").has_value());
  CHECK_FALSE(parseNumber32("0x-1", "a mark").has_value());
  CHECK_FALSE(parseNumber32("-1", "a mark").has_value());
  CHECK_FALSE(parseNumber32("0b1", "a mark").has_value());
  CHECK(parseSwitch("Yes") == true);
  CHECK(parseSwitch("OFF") == false);
  CHECK_FALSE(parseSwitch("1").has_value());
  CHECK(parseRate("200mbit") == 200'000'000U);
  CHECK(parseRate("10 Gbit") == 10'000'000'000U);
  CHECK(parseRate("1bit") == 1U);
  for (const std::string bad : {"200", "200mbps", "200Mb", "0mbit", "-1mbit", "1.5gbit", "mbit", "",
                                "18446744073709551615gbit"}) {
    CAPTURE(bad);
    CHECK_FALSE(parseRate(bad).has_value());
  }
  CHECK(formatRate(200'000'000) == "200mbit");
  CHECK(formatRate(1'500'000'000) == "1500mbit");
  CHECK(formatRate(1001) == "1001bit");
  CHECK(parseSize("128M") == 128U << 20);
  CHECK(parseSize("128MiB") == 128U << 20);
  CHECK(parseSize("4096") == 4096U);
  CHECK_FALSE(parseSize("128X").has_value());
}

TEST_CASE("CPU lists: kernel lists, nothing reversed or unknown") {
  for (const std::string good : {"0", "0-3,8,10-11", "all", "ALL", "127", "0-0"}) {
    CAPTURE(good);
    CHECK_FALSE(checkCpuList(good).has_value());
  }
  for (const std::string bad :
       {"4-N", "3-0", "0,,1", "0,", "-3", "0x3", "ff", "0-3-5", "99999999"}) {
    CAPTURE(bad);
    CHECK(checkCpuList(bad).has_value());
  }
}

TEST_CASE("prefixes: bare addresses, masked bits, strict lengths") {
  bool masked = false;
  CHECK(parsePrefix("10.9.0.2", &masked)->toString() == "10.9.0.2/32");
  CHECK_FALSE(masked);
  CHECK(parsePrefix("10.9.0.2/24", &masked)->toString() == "10.9.0.0/24");
  CHECK(masked);
  CHECK(parsePrefix("FD00::1/64", &masked)->toString() == "fd00::/64");
  const auto parse = [](const std::string& text) {
    bool ignored = false;
    return parsePrefix(text, &ignored);
  };
  requireRefused(parse, {{"10.9.0.0/33", 9, "0 to 32"},
                         {"fd00::/129", 7, "0 to 128"},
                         {"10.9.0.0/", 9, "prefix length"},
                         {"10.9.0.0/255.255.255.0", 9, "prefix length"},
                         {"10.9.0.0/024", 9, "prefix length"},
                         {"10.9.0/24", 0, "not an IPv4 or IPv6 address"},
                         {"010.9.0.0/24", 0, "not an IPv4 or IPv6 address"},
                         {"any", 0, "not an IPv4 or IPv6 address"},
                         {"fe80::1%eth0/64", 7, "zone"}});
}

TEST_CASE("names of peers and interfaces") {
  for (const std::string good : {"nas", "NAS-2", "my.nas", "4x4", "a_b"}) {
    CHECK(parsePeerName(good).has_value());
  }
  for (const std::string bad :
       {"10.9.0.2", "10.9", "8080", "fd00::1", "a b", "na/s", "n\xc3\xa4s"}) {
    CAPTURE(bad);
    CHECK_FALSE(parsePeerName(bad).has_value());
  }
  CHECK_FALSE(parsePeerName(std::string(64, 'a')).has_value());
  for (const std::string good : {"eth0", "enp1s0.100", "fifteen_bytes_x", "a"}) {
    CHECK(parseInterfaceName(good).has_value());
  }
  for (const std::string bad :
       {"", "sixteen_bytes_xx", "a/b", "a b", "a\tb", "a:b", "a%d", ".", ".."}) {
    CAPTURE(bad);
    CHECK_FALSE(parseInterfaceName(bad).has_value());
  }
}

TEST_CASE("messages show words and numbers but nothing that may be a piece of a key") {
  for (const std::string harmless : {"70000", "vps.example.net:51820", "2001:db8::7", "10.9.0.0/24",
                                     "homeserver", "1234567890"}) {
    CHECK(isShowable(harmless));
  }
  CHECK_FALSE(isShowable(kPrivate));
  for (std::size_t i = 0; i + 12 <= kPrivate.size(); ++i) {
    CHECK_FALSE(isShowable(kPrivate.substr(i, 12)));
  }
  CHECK_FALSE(isShowable("a\x01"));
  CHECK_FALSE(isShowable(std::string(100, ' ')));
}

TEST_CASE("suggestions come from near names only") {
  const std::vector<std::string_view> names{"Endpoint", "AllowedIPs", "PublicKey"};
  CHECK(closest("Endpiont", names) == "Endpoint");
  CHECK(closest("allowed_ips", names) == "AllowedIPs");
  CHECK(closest("Allowed IP", names) == "AllowedIPs");
  CHECK(closest("Compression", names).empty());
  CHECK(closest("", names).empty());
  CHECK(closest(std::string(10000, 'x'), names).empty());
}
