// What people get wrong in their first files, and what this version does not do.
#include "test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

std::string only(const std::string& text) {
  const auto all = messages(parse(text, "test.conf"));
  CAPTURE(all);
  REQUIRE(all.size() == 1);
  return all.front();
}

const std::string kServed = "AllowedIPs = 10.9.0.2/32\nName = nas\n";
const std::string kMap = "[Map]\nListen = tcp/8080\nTo = nas:80\n";

}  // namespace

TEST_CASE("newcomer: the own private key is no peer's public key") {
  const std::string text = only(kInterface + "[Peer]\nPublicKey = " + kPrivate + "\n");
  CHECK_THAT(text, StartsWith("4:1 error:") && Contains("own private key") && !Contains(kPrivate));
  // Also as it was before it was clamped.
  std::string unclamped = kPrivate;
  unclamped[0] = 'f';  // the lowest three bits of the first byte
  REQUIRE(crypto::PrivateKey::fromBase64(unclamped).value() ==
          crypto::PrivateKey::fromBase64(kPrivate).value());
  CHECK_THAT(
      only("[Interface]\nPrivateKey = " + unclamped + "\n[Peer]\nPublicKey = " + kPrivate + "\n"),
      Contains("own private key"));
  CHECK_THAT(only(kInterface + "[Peer]\nPublicKey = " + kOwnPublic + "\n"),
             Contains("own public key"));
}

TEST_CASE("newcomer: what stands for a value is not taken for one") {
  CHECK_THAT(only("[Interface]\nPrivateKey = <output of `adit genkey`>\n"),
             StartsWith("2:14 error:") && Contains("`adit genkey`"));
  CHECK_THAT(only(kInterface + "[Peer]\nPublicKey = <the NAS's; `adit pubkey` prints it>\n"),
             Contains("`adit pubkey`") && !Contains("comment"));
}

TEST_CASE("newcomer: a server that is to be found needs a port") {
  const std::string text = kInterface + kPeer + kServed + kMap;
  CHECK_THAT(only(text), StartsWith("1:2 warning: without ListenPort") && Contains("line 3"));
  CHECK_THAT(only(kInterface + "ListenPort = 0\n" + kPeer + kServed + kMap),
             Contains("without ListenPort"));
  for (const std::string& sound : {kInterface + "ListenPort = 51820\n" + kPeer + kServed + kMap,
                                   kInterface + kPeer + kServed + "Endpoint = 192.0.2.1:5\n" + kMap,
                                   kInterface + kPeer + kServed}) {
    CHECK(messages(parse(sound, "test.conf")).empty());
  }
}

TEST_CASE("newcomer: one wrong line gives one error") {
  CHECK_THAT(only(kInterface + kPeer + "Name = nas\nAllowedIP = 10.9.0.2/32\n" + kMap),
             StartsWith("6:1 error:") && Contains("AllowedIPs"));
  CHECK_THAT(only(kInterface + "ListenPort = 51820\n" + kPeer + kServed +
                  "[Map]\nListen = tcp/8080\nTo =  nsa\n"),
             StartsWith("10:7 error: no peer is called"));
}
