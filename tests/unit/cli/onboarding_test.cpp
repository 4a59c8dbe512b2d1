// The decisions of `adit init` and `adit invite`, without a machine.
#include <catch2/catch.hpp>

#include "cli/init_network.hpp"
#include "cli/invite_file.hpp"
#include "cli/onboarding.hpp"
#include "config/parser.hpp"
#include "control/fake_kernel.hpp"
#include "enrol/keys.hpp"
#include "noise/fakes.hpp"

using namespace adit;
using namespace adit::cli;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using control::FakeRouting;
using noise::test::countingKey;
using noise::test::SeededRandom;

namespace {

IpAddress address(const char* text) {
  return *IpAddress::parse(text);
}

FakeRouting::Route route(const char* destination, std::uint32_t interface) {
  FakeRouting::Route result;
  result.destination = *Prefix::parse(destination);
  result.interface = interface;
  return result;
}

config::Config configOf(const std::string& rest) {
  const config::Outcome outcome = config::parse(
      "[Interface]\nPrivateKey = " + countingKey(1).toBase64() + "\nListenPort = 51820\n" + rest,
      "adit0.conf");
  INFO((outcome.ok() ? "" : outcome.diagnostics.front().toString()));
  REQUIRE(outcome.ok());
  return *outcome.config;
}

std::string peer(std::uint8_t key, const std::string& networks) {
  return fmt::format("[Peer]\nName = peer{}\nPublicKey = {}\nAllowedIPs = {}\n", key,
                     countingKey(key).publicKey().toBase64(), networks);
}

std::string invited(const std::string& name, const std::string& addresses,
                    const std::string& more = "") {
  return fmt::format(
      "[Invitation]\nName = {}\nPublicKey = {}\nPresharedKey = {}\nAddress = {}\n"
      "Expires = 2026-12-02T03:04:05Z\n{}",
      name, countingKey(77).publicKey().toBase64(), countingKey(78).toBase64(), addresses, more);
}

std::vector<std::string> texts(const std::vector<InterfaceAddress>& addresses) {
  std::vector<std::string> all;
  for (const InterfaceAddress& each : addresses) {
    all.push_back(each.toString());
  }
  return all;
}

constexpr std::chrono::seconds kEnd{1796180645};
const control::NamedConfig kNamed{"adit0", "/nowhere/adit0.conf"};

}  // namespace

TEST_CASE("onboarding: which addresses the Internet can route to") {
  for (const char* inside :
       {"10.1.2.3", "172.16.0.1", "172.31.255.1", "192.168.1.1", "100.64.0.1", "100.127.0.1",
        "169.254.1.1", "127.0.0.1", "fd00::1", "fc00::1", "fe80::1", "::1"}) {
    CHECK_FALSE(isPublic(address(inside)));
  }
  for (const char* outside :
       {"203.0.113.9", "172.32.0.1", "100.128.0.1", "9.9.9.9", "2001:db8::1"}) {
    CHECK(isPublic(address(outside)));
  }
}

TEST_CASE("onboarding: the public side is that of the default route, or the one that is named") {
  FakeRouting routing;
  routing.addressList = {
      *InterfaceAddress::parse("192.168.1.4/24"), *InterfaceAddress::parse("203.0.113.9/24"),
      *InterfaceAddress::parse("203.0.113.10/24"), *InterfaceAddress::parse("2001:db8::9/64")};
  CHECK_FALSE(publicSide(routing, ""));
  routing.routeList = {route("0.0.0.0/0", 2), route("::/0", 2)};
  const auto side = publicSide(routing, "");
  REQUIRE(side);
  CHECK(side->interface == "eth0");
  CHECK_FALSE(side->ambiguous);
  CHECK(side->addresses == std::vector{address("203.0.113.9"), address("2001:db8::9")});
  routing.routeList.push_back(route("0.0.0.0/0", 7));
  routing.routeList.back().metric = 100;
  CHECK(publicSide(routing, "")->ambiguous);
  CHECK(publicSide(routing, "")->interface == "eth0");
  CHECK(publicSide(routing, "adit0")->interface == "adit0");
  CHECK_FALSE(publicSide(routing, "eth9"));
}

TEST_CASE("onboarding: the tunnel's network meets no other of the machine") {
  FakeRouting routing;
  SeededRandom random(1);
  routing.routeList = {route("10.0.0.0/9", 2), route("10.128.0.0/10", 2), route("0.0.0.0/0", 2)};
  routing.addressList = {*InterfaceAddress::parse("10.192.0.1/11")};
  for (int i = 0; i < 50; ++i) {
    const auto network = freeNetworkV4(routing, random);
    REQUIRE(network);
    CHECK(network->length() == 24);
    CHECK(Prefix::parse("10.224.0.0/11")->contains(*network));
  }
  routing.routeList.push_back(route("10.224.0.0/11", 2));
  CHECK_FALSE(freeNetworkV4(routing, random));
  const Prefix v6 = randomNetworkV6(random);
  CHECK(v6.length() == 64);
  CHECK(Prefix::parse("fd00::/8")->contains(v6));
  CHECK(randomNetworkV6(random) != v6);
}

TEST_CASE("onboarding: hosts of a network") {
  CHECK(hostOf(*Prefix::parse("10.7.0.0/16"), 258) == address("10.7.1.2"));
  CHECK(hostOf(*Prefix::parse("fd00:1::/64"), 2) == address("fd00:1::2"));
}

TEST_CASE("onboarding: a new machine gets the first address that nobody has") {
  const std::string own = "Address = 10.7.0.1/24, fd10::1/64\n";
  CHECK(texts(*freeAddresses(configOf(own))) ==
        std::vector<std::string>{"10.7.0.2/24", "fd10::2/64"});
  const std::string taken = own + peer(2, "10.7.0.2/32, fd10::2/128, 0.0.0.0/0") +
                            peer(3, "10.7.0.4/30") + invited("box", "10.7.0.3/24");
  CHECK(texts(*freeAddresses(configOf(taken))) ==
        std::vector<std::string>{"10.7.0.8/24", "fd10::3/64"});
  CHECK(texts(*freeAddresses(configOf("Address = 10.7.0.2/30\n"))) ==
        std::vector<std::string>{"10.7.0.1/30"});
  CHECK_FALSE(freeAddresses(configOf("Address = 10.7.0.1/32\n")));
  CHECK_FALSE(freeAddresses(configOf("Address = 10.7.0.1/30\n" + peer(2, "10.7.0.2/32"))));
  CHECK_FALSE(freeAddresses(configOf("")));
}

TEST_CASE("onboarding: an invitation holds the public half of what the token has") {
  SeededRandom random(1);
  const config::Config config = configOf("Address = 10.7.0.1/24\nCipher = aes-128-gcm\n");
  const crypto::PublicKey server = countingKey(1).publicKey();
  const auto made = makeInvitation(
      kNamed, config, server, {"nas", "tcp/8000-9000, udp/53, third-party", 24h}, kEnd, random);
  REQUIRE(made);
  CHECK(made->file == "/nowhere/adit0.d/peer-nas.conf");
  CHECK(made->token.suite == crypto::Suite::Aes128Gcm);
  CHECK(made->token.expires == kEnd + 24h);
  CHECK(made->token.server == server);
  const auto keys = enrol::enrolmentKeys(made->token.secret, server);
  CHECK(made->config.publicKey == keys.privateKey.publicKey());
  CHECK(made->config.presharedKey == keys.presharedKey);
  CHECK(grantsText(made->config.allowMaps, made->config.allowThirdParty) ==
        "tcp/8000-9000, udp/53, third-party");
  const auto other = makeInvitation(kNamed, config, server, {"nas", "", 24h}, kEnd, random);
  REQUIRE(other);
  CHECK_FALSE(other->token.secret == made->token.secret);
}

TEST_CASE("onboarding: names are taken by peers and by open invitations alone") {
  SeededRandom random(1);
  const auto make = [&](const std::string& rest, const std::string& name,
                        std::chrono::seconds now) {
    return makeInvitation(kNamed, configOf("Address = 10.7.0.1/24\n" + rest),
                          countingKey(1).publicKey(), {name, "", 24h}, now, random);
  };
  CHECK_FALSE(make(peer(2, "10.7.0.2/32"), "Peer2", kEnd));
  CHECK_FALSE(make(invited("nas", "10.7.0.2/24"), "nas", kEnd - 1s));
  CHECK(make(invited("nas", "10.7.0.2/24"), "nas", kEnd));
  CHECK(
      make(invited("nas", "10.7.0.2/24", "Bound = " + countingKey(5).publicKey().toBase64() + "\n"),
           "nas", kEnd - 1s));
  CHECK_FALSE(make("", "..", kEnd));
  CHECK_FALSE(make("", "a/b", kEnd));
  CHECK_FALSE(make("", "", kEnd));
}

TEST_CASE("onboarding: endpoints with and without a port") {
  CHECK(*endpointWithPort("server.example", 51820) == "server.example:51820");
  CHECK(*endpointWithPort("server.example:4", 51820) == "server.example:4");
  CHECK(*endpointWithPort("203.0.113.9", 51820) == "203.0.113.9:51820");
  CHECK(*endpointWithPort("2001:db8::9", 51820) == "[2001:db8::9]:51820");
  CHECK(*endpointWithPort("[2001:db8::9]", 51820) == "[2001:db8::9]:51820");
  CHECK(*endpointWithPort("[2001:db8::9]:4", 51820) == "[2001:db8::9]:4");
  CHECK_FALSE(endpointWithPort("https://server.example", 51820));
  CHECK_FALSE(endpointWithPort("", 51820));
  CHECK_FALSE(endpointWithPort("server.example:0", 51820));
}

TEST_CASE("onboarding: durations in words") {
  CHECK(durationText(24h) == "24 hours");
  CHECK(durationText(48h) == "2 days");
  CHECK(durationText(90min) == "1 hour");
  CHECK(durationText(59s) == "59 seconds");
  CHECK(durationText(1min) == "1 minute");
}
