#include <catch2/catch.hpp>

#include "control/privileged_outcome.hpp"
#include "crypto/key.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;

namespace {

/// An outcome in which every member differs from its default.
config::Outcome fullOutcome() {
  config::Outcome outcome;
  config::Config& config = outcome.config.emplace();
  config::InterfaceConfig& interface = config.interface;
  interface.privateKey = crypto::PrivateKey::generate();
  interface.privateKeyFile = "/etc/key";
  interface.privateKeyCommand = "cat key";
  interface.addresses = {InterfaceAddress::parse("10.9.0.1/24").value(),
                         InterfaceAddress::parse("fd00::1/64").value()};
  interface.listenPort = 51820;
  interface.mtu = 1400;
  interface.firewallMark = 7;
  interface.dnsServers = {IpAddress::parse("192.0.2.1").value()};
  interface.dnsSearch = {"example.net"};
  interface.table = 1234u;
  interface.preUp = hooks(1, {"a"});
  interface.postUp = hooks(2, {"b", "c"});
  interface.preDown = hooks(4, {"d"});
  interface.postDown = hooks(5, {"e"});
  interface.expose = config::Expose::Maps;
  interface.backend = config::Backend::Userspace;
  interface.cipher = crypto::Suite::Aes256Gcm;
  interface.metrics = config::MetricsAddress{Endpoint::parse("[::1]:9586").value(), ""};
  interface.extensions = false;
  interface.publicInterface = "eth0";
  interface.bindAddress = IpAddress::parse("2001:db8::1").value();
  interface.location = at(6, 3);

  config::PeerConfig peer;
  peer.name = "nas";
  peer.publicKey = crypto::PrivateKey::generate().publicKey();
  peer.presharedKey = crypto::PrivateKey::generate().secret();
  peer.presharedKeyFile = "psk";
  peer.endpoint =
      config::EndpointName{"fe80::1", 51820, "eth0", IpAddress::parse("fe80::1").value()};
  peer.allowedIps = {Prefix::parse("0.0.0.0/0").value(), Prefix::parse("fd00::/8").value()};
  peer.persistentKeepalive = 25;
  peer.roam = false;
  peer.allowMaps = {{config::PortGrant::Protocol::Udp, 10, 20}};
  peer.allowThirdParty = true;
  peer.location = at(9);
  config.peers = {peer, config::PeerConfig{}};

  config::InvitationConfig invitation;
  invitation.name = "box";
  invitation.publicKey.bytes.fill(31);
  invitation.presharedKey.bytes()[3] = 32;
  invitation.addresses = {InterfaceAddress::parse("10.9.0.3/24").value()};
  invitation.allowMaps = {{config::PortGrant::Protocol::Udp, 53, 54}};
  invitation.expires = std::chrono::seconds(1796180645);
  invitation.bound.emplace().bytes.fill(33);
  invitation.location = at(9);
  config.invitations = {invitation};

  config::MapConfig map;
  map.protocol = config::MapConfig::Protocol::Both;
  map.listenAddress = IpAddress::parse("192.0.2.9").value();
  map.firstPort = 80;
  map.lastPort = 90;
  map.targetHost = "nas";
  map.targets = {IpAddress::parse("10.9.0.2").value()};
  map.targetPort = 8080;
  map.source = config::Source::Masquerade;
  map.allow = {Prefix::parse("198.51.100.0/24").value()};
  map.rate = 200'000'000;
  map.hairpin = true;
  map.overrideListener = true;
  map.location = at(12);
  config.maps = {map};

  config.tune.profile = config::TuneConfig::Profile::Explicit;
  config.tune.settings = {{"Rps", "auto", at(20, 7)}};
  config.tune.location = at(19);
  outcome.diagnostics = {{config::Severity::Warning, at(21, 5), "careful"}};
  config::FileStamp stamp;
  stamp.path = "/etc/adit/tun7.conf";
  stamp.size = 77;
  stamp.hash.fill(9);
  outcome.files = {stamp};
  return outcome;
}

config::Outcome across(const config::Outcome& outcome) {
  auto decoded = decodeOutcome(encodeOutcome(outcome));
  REQUIRE(decoded);
  return *decoded;
}

bool same(const config::Location& a, const config::Location& b) {
  return *a.file == *b.file && a.line == b.line && a.column == b.column;
}

}  // namespace

TEST_CASE("a configuration comes across whole", "[privileged]") {
  const config::Outcome sent = fullOutcome();
  const config::Outcome got = across(sent);
  // Encoding is a function of every member, so equal bytes mean equal members.
  CHECK(encodeOutcome(got) == encodeOutcome(sent));

  REQUIRE(got.config);
  const config::InterfaceConfig& interface = got.config->interface;
  const config::InterfaceConfig& original = sent.config->interface;
  CHECK(interface.privateKey == original.privateKey);
  CHECK(interface.addresses == original.addresses);
  CHECK(interface.listenPort == original.listenPort);
  CHECK(interface.table == original.table);
  CHECK(interface.cipher == original.cipher);
  CHECK(interface.metrics == original.metrics);
  CHECK(interface.bindAddress == original.bindAddress);
  CHECK_FALSE(interface.extensions);
  REQUIRE(interface.postUp.size() == 2);
  CHECK(interface.postUp[1].command == "c");
  CHECK(same(interface.postUp[1].location, at(3)));
  REQUIRE(got.config->peers.size() == 2);
  const config::PeerConfig& peer = got.config->peers[0];
  CHECK(peer.publicKey == sent.config->peers[0].publicKey);
  CHECK(peer.presharedKey == sent.config->peers[0].presharedKey);
  CHECK(peer.endpoint == sent.config->peers[0].endpoint);
  CHECK(peer.allowedIps == sent.config->peers[0].allowedIps);
  CHECK(peer.allowMaps == sent.config->peers[0].allowMaps);
  CHECK_FALSE(got.config->peers[1].presharedKey);
  REQUIRE(got.config->invitations.size() == 1);
  const config::InvitationConfig& invitation = got.config->invitations[0];
  CHECK(invitation.publicKey == sent.config->invitations[0].publicKey);
  CHECK(invitation.presharedKey == sent.config->invitations[0].presharedKey);
  CHECK(invitation.addresses == sent.config->invitations[0].addresses);
  CHECK(invitation.expires == sent.config->invitations[0].expires);
  CHECK(invitation.bound == sent.config->invitations[0].bound);
  REQUIRE(got.config->maps.size() == 1);
  CHECK(got.config->maps[0].rate == 200'000'000);
  CHECK(same(got.config->tune.settings.at(0).location, at(20, 7)));
  REQUIRE(got.diagnostics.size() == 1);
  CHECK(got.diagnostics[0].message == "careful");
  CHECK(same(got.diagnostics[0].location, at(21, 5)));
  CHECK(got.files == sent.files);
}

TEST_CASE("every kind of Table comes across", "[privileged]") {
  for (const config::Table& table :
       {config::Table(config::TableAuto{}), config::Table(config::TableOff{}),
        config::Table(config::TableReply{}), config::Table(0u), config::Table(254u)}) {
    config::Outcome outcome;
    outcome.config.emplace().interface.table = table;
    CHECK(across(outcome).config->interface.table == table);
  }
}

TEST_CASE("a failed outcome comes across with its diagnostics", "[privileged]") {
  config::Outcome outcome;
  outcome.diagnostics = {{config::Severity::Error, at(3, 9), "wrong"},
                         {config::Severity::Error, {}, "no file"}};
  const config::Outcome got = across(outcome);
  CHECK_FALSE(got.ok());
  REQUIRE(got.diagnostics.size() == 2);
  CHECK(got.diagnostics[0].location.column == 9);
  CHECK(got.diagnostics[1].location.file == nullptr);
}

TEST_CASE("damaged bytes of a configuration are an error", "[privileged]") {
  const Bytes whole = encodeOutcome(fullOutcome());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    if (decodeOutcome(std::span(whole).first(length))) FAIL("accepted " << length << " bytes");
  }
  Bytes longer = whole;
  longer.push_back(0);
  CHECK_FALSE(decodeOutcome(longer));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= 0xff;
    // Some changes are other values; none may be read past the end.
    (void)decodeOutcome(changed);
  }
}
