#include <catch2/catch.hpp>

#include "config/diff.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "config/writer.hpp"
#include "test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;

namespace {

const std::string kServerText =
    "[Interface]\n"
    "PrivateKey = YAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n"
    "Address = 10.77.3.1/24\n"
    "ListenPort = 51820\n"
    "PublicEndpoint = vpn.example:51820, [2001:db8::9]:51820\n";
const std::string kInvitationText =
    "\n[Invitation]\n"
    "Name = nas\n"
    "PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\n"
    "PresharedKey = /UwcSPg38hW/D9Y3tcS1FOV0K1wuURMbS0sesJEP5ak=\n"
    "Address = 10.77.3.2/24, fd10::2/64\n"
    "AllowMaps = tcp/8000-9000, third-party\n"
    "Expires = 2026-12-02T03:04:05Z\n";
const std::string kPeerText =
    "\n[Peer]\n"
    "Name = nas\n"
    "PublicKey = TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=\n"
    "AllowedIPs = 10.77.3.2/32\n";
const std::string kBound = "Bound = TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=\n";

std::string firstError(const std::string& text) {
  const Outcome outcome = parse(text, "adit0.conf");
  return outcome.diagnostics.empty() ? "" : outcome.diagnostics.front().message;
}

std::string without(std::string text, const std::string& key) {
  const std::size_t start = text.find(key + " = ");
  return text.erase(start, text.find('\n', start) + 1 - start);
}

}  // namespace

TEST_CASE("invitation: is read as it was written") {
  const Config config = parseClean(kServerText + kInvitationText);
  REQUIRE(config.interface.publicEndpoints.size() == 2);
  CHECK(config.interface.publicEndpoints[1].toString() == "[2001:db8::9]:51820");
  REQUIRE(config.invitations.size() == 1);
  const InvitationConfig& invitation = config.invitations[0];
  CHECK(invitation.name == "nas");
  CHECK(invitation.addresses.size() == 2);
  CHECK(invitation.allowMaps.size() == 1);
  CHECK(invitation.allowThirdParty);
  CHECK(invitation.expires == std::chrono::seconds(1796180645));
  CHECK_FALSE(invitation.bound);
  CHECK(diff(config, parseClean(write(config))).empty());
  CHECK(write(parseClean(write(config))) == write(config));
}

TEST_CASE("invitation: every key but AllowMaps and Bound is required") {
  for (const std::string key : {"Name", "PublicKey", "PresharedKey", "Address", "Expires"}) {
    CHECK_THAT(firstError(kServerText + without(kInvitationText, key)), Contains("has no " + key));
  }
  CHECK(firstError(kServerText + without(kInvitationText, "AllowMaps")).empty());
}

TEST_CASE("invitation: name and addresses are not those of a peer, until the peer has joined") {
  const std::string unbound = firstError(kServerText + kPeerText + kInvitationText);
  CHECK_THAT(unbound, Contains("has this name already"));
  CHECK(firstError(kServerText + kPeerText + kInvitationText + kBound).empty());
  std::string renamed = kPeerText;
  renamed.replace(renamed.find("nas"), 3, "box");
  CHECK_THAT(firstError(kServerText + renamed + kInvitationText),
             Contains("10.77.3.2 belongs to the peer"));
}

TEST_CASE("invitation: two do not promise the same") {
  std::string second = kInvitationText;
  second.replace(second.find("xTIBA5"), 6, "xTIBA6");
  CHECK_THAT(firstError(kServerText + kInvitationText + second), Contains("has this name already"));
  second.replace(second.find("nas"), 3, "box");
  CHECK_THAT(firstError(kServerText + kInvitationText + second), Contains("is promised by"));
}

TEST_CASE("invitation: its keys are shown by no message and no difference") {
  const Config before = parseClean(kServerText);
  const Config after = parseClean(kServerText + kInvitationText);
  CHECK(diff(before, after).lines() == std::vector<std::string>{"invitation nas: added"});
  CHECK(diff(after, before).lines() == std::vector<std::string>{"invitation nas: removed"});
  const Config bound = parseClean(kServerText + kInvitationText + kBound);
  REQUIRE(diff(after, bound).lines().size() == 1);
  CHECK_THAT(diff(after, bound).lines()[0], Contains("invitation nas: Bound"));
}

TEST_CASE("invitation: times are strict") {
  CHECK(parseUtcTime("1970-01-01T00:00:00Z") == std::chrono::seconds(0));
  CHECK(parseUtcTime("2028-02-29T23:59:59Z") == std::chrono::seconds(1835481599));
  CHECK(formatUtcTime(std::chrono::seconds(1835481599)) == "2028-02-29T23:59:59Z");
  for (const char* bad :
       {"", "2027-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-12-02", "2026-12-02 03:04:05Z",
        "2026-12-02T24:00:00Z", "2026-12-02T03:60:05Z", "2026-12-02T03:04:60Z",
        "2026-12-02T03:04:05", "1969-12-31T23:59:59Z", "+026-12-02T03:04:05Z"}) {
    CHECK_FALSE(parseUtcTime(bad));
  }
}

TEST_CASE("PublicEndpoint: what can be reached from outside") {
  const std::string prefix =
      "[Interface]\nPrivateKey = "
      "YAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\nPublicEndpoint = ";
  CHECK(firstError(prefix + "server.example:51820\n").empty());
  CHECK_FALSE(firstError(prefix + "server.example\n").empty());
  CHECK_THAT(firstError(prefix + "[fe80::1%eth0]:51820\n"), Contains("link-local"));
}
