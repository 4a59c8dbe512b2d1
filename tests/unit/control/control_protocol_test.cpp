#include "control/control_protocol.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "cli_fake_device.hpp"

using namespace adit;
using namespace adit::control;
using namespace adit::control::testing;
using Json = nlohmann::ordered_json;

namespace {

Json ask(const std::string& line, FakeDevice& device) {
  const std::string answer = handleControl(line, device);
  REQUIRE(answer.back() == '\n');
  REQUIRE(answer.find('\n') == answer.size() - 1);
  return Json::parse(answer);
}

bool holdsKeys(const std::string& text) {
  return text.find(kPrivateKey) != std::string::npos ||
         text.find(kPresharedKey) != std::string::npos;
}

}  // namespace

TEST_CASE("control: show brings a device across without loss") {
  FakeDevice device(richSnapshot());
  const auto view = decodeShowResponse(handleControl(encodeShowRequest(true), device));
  REQUIRE(view);
  const DeviceSnapshot& got = view->device;
  const DeviceSnapshot& want = device.state;
  CHECK(got.name == want.name);
  CHECK(got.privateKey == want.privateKey);
  CHECK(view->hasPrivateKey);
  CHECK(view->publicKey->toBase64() == kPublicKey);
  CHECK(got.listenPort == want.listenPort);
  CHECK(got.firewallMark == want.firewallMark);
  CHECK(got.configured.listenPort == want.configured.listenPort);
  CHECK(got.configured.firewallMark == want.configured.firewallMark);
  CHECK(got.configured.files == want.configured.files);
  CHECK(got.backend == want.backend);
  CHECK(got.backendReason == want.backendReason);
  CHECK(got.mtu == want.mtu);
  CHECK(got.addresses == want.addresses);
  CHECK(got.warnings == want.warnings);
  REQUIRE(got.troubles.size() == 1);
  CHECK(got.troubles[0].kind == "preshared-key");
  CHECK(got.troubles[0].peer == "nas");
  CHECK(got.troubles[0].text == want.troubles[0].text);
  CHECK(got.suiteSpeeds == want.suiteSpeeds);
  CHECK(got.drops == want.drops);
  REQUIRE(got.maps.size() == 2);
  CHECK(got.maps[0].listen == "tcp/18080");
  CHECK(got.maps[0].active);
  CHECK(got.maps[0].to == "nas");
  CHECK(got.maps[0].targets == std::vector<std::string>{"10.10.0.2:80"});
  CHECK(got.maps[1].target == "10.10.0.2:5000");
  CHECK(got.maps[1].source == "masquerade");
  CHECK_FALSE(got.maps[1].active);
  CHECK(got.maps[1].reason == "the port is taken");
  REQUIRE(got.peers.size() == 3);
  for (std::size_t i = 0; i < got.peers.size(); ++i) {
    const PeerSnapshot& peer = got.peers[i];
    const PeerSnapshot& original = want.peers[i];
    CHECK(peer.name == original.name);
    CHECK(peer.configuredEndpoint == original.configuredEndpoint);
    CHECK(peer.publicKey == original.publicKey);
    CHECK(peer.presharedKey == original.presharedKey);
    CHECK(peer.endpoint == original.endpoint);
    CHECK(peer.unresolvedEndpoint == original.unresolvedEndpoint);
    CHECK(peer.allowedIps == original.allowedIps);
    CHECK(peer.persistentKeepalive == original.persistentKeepalive);
    CHECK(peer.lastHandshake == original.lastHandshake);
    CHECK(peer.rxBytes == original.rxBytes);
    CHECK(peer.txBytes == original.txBytes);
    CHECK(peer.suite == original.suite);
    CHECK(peer.clockBehind == original.clockBehind);
    CHECK(peer.clockBehindBy == original.clockBehindBy);
    CHECK(peer.handshakes == original.handshakes);
    CHECK(peer.unanswered == original.unanswered);
    CHECK(peer.suiteSpeeds == original.suiteSpeeds);
    CHECK(peer.drops == original.drops);
  }
  CHECK(view->hasPresharedKey == std::vector{true, false, false});
}

TEST_CASE("control: keys are given only to a show that asks for them") {
  FakeDevice device(richSnapshot());
  CHECK(holdsKeys(handleControl(encodeShowRequest(true), device)));
  for (const std::string& request :
       {encodeShowRequest(false), std::string(R"({"op":"show"})"), encodeStatusRequest()}) {
    const std::string answer = handleControl(request, device);
    CHECK_FALSE(holdsKeys(answer));
    const auto view = decodeShowResponse(answer);
    REQUIRE(view);
    CHECK_FALSE(view->device.privateKey);
    CHECK(view->hasPrivateKey);
    CHECK(view->publicKey->toBase64() == kPublicKey);
    CHECK(view->device.peers[0].presharedKey.isZero());
    CHECK(view->hasPresharedKey == std::vector{true, false, false});
  }
  CHECK_FALSE(ask(R"({"op":"status","keys":true})", device)["ok"].get<bool>());
}

TEST_CASE("control: who only reads sees no keys and changes nothing") {
  FakeDevice device(richSnapshot());
  const auto answer = [&](const std::string& line) {
    return handleControl(line, device, Access::Read);
  };
  for (const std::string& request : {encodeShowRequest(false), encodeStatusRequest()}) {
    const std::string seen = answer(request);
    CHECK_FALSE(holdsKeys(seen));
    CHECK(decodeShowResponse(seen));
  }
  const auto keys = decodeShowResponse(answer(encodeShowRequest(true)));
  REQUIRE_FALSE(keys);
  CHECK(keys.error().code == EPERM);
  CHECK_THAT(keys.error().message, Catch::Contains("only root may see"));
  for (const std::string& request :
       {encodeSetRequest({}), encodeSavedRequest({}), encodePlainRequest("reload"),
        encodePlainRequest("down"), encodePlainRequest("something new")}) {
    const auto refused = decodeNotesResponse(answer(request));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == EPERM);
    CHECK_THAT(refused.error().message, Catch::Contains("sudo"));
  }
  CHECK(device.changes.empty());
  CHECK(device.reloads == 0);
  CHECK(device.downs == 0);
}

TEST_CASE("control: a change comes across whole") {
  DeviceChange change;
  change.privateKey = crypto::PrivateKey::fromBase64(kPrivateKey)->secret();
  change.listenPort = 0;
  change.firewallMark = 7;
  change.replacePeers = true;
  PeerChange& peer = change.peers.emplace_back();
  peer.publicKey = publicKey(kFirstPeer);
  peer.updateOnly = true;
  peer.presharedKey.emplace();
  peer.endpoint = Endpoint::parse("192.0.2.1:51820").value();
  peer.persistentKeepalive = 0;
  peer.replaceAllowedIps = true;
  peer.addAllowedIps = {Prefix::parse("10.0.0.0/8").value()};
  peer.removeAllowedIps = {Prefix::parse("fd00::/8").value()};
  change.peers.emplace_back().publicKey = publicKey(kSecondPeer);
  change.peers.back().remove = true;

  FakeDevice device;
  device.outcome = std::vector<std::string>{"10.0.0.0/8 was taken from nas"};
  const auto notes = decodeNotesResponse(handleControl(encodeSetRequest(change), device));
  REQUIRE(notes);
  CHECK(*notes == std::vector<std::string>{"10.0.0.0/8 was taken from nas"});
  REQUIRE(device.changes.size() == 1);
  const DeviceChange& got = device.changes[0];
  CHECK(got.privateKey == change.privateKey);
  CHECK(got.listenPort == 0);
  CHECK(got.firewallMark == 7);
  CHECK(got.replacePeers);
  REQUIRE(got.peers.size() == 2);
  CHECK(got.peers[0].publicKey == change.peers[0].publicKey);
  CHECK(got.peers[0].updateOnly);
  CHECK_FALSE(got.peers[0].remove);
  CHECK(got.peers[0].presharedKey->isZero());
  CHECK(got.peers[0].endpoint == change.peers[0].endpoint);
  CHECK(got.peers[0].persistentKeepalive == 0);
  CHECK(got.peers[0].replaceAllowedIps);
  CHECK(got.peers[0].addAllowedIps == change.peers[0].addAllowedIps);
  CHECK(got.peers[0].removeAllowedIps == change.peers[0].removeAllowedIps);
  CHECK(got.peers[1].remove);
  CHECK_FALSE(got.peers[1].presharedKey);
  CHECK_FALSE(got.peers[1].endpoint);
  CHECK_FALSE(got.peers[1].persistentKeepalive);
}

TEST_CASE("control: the files that were saved come across") {
  FakeDevice device;
  const std::vector<config::FileStamp> files{{.path = "/etc/adit/x.conf", .size = 7, .hash = {3}},
                                             {.path = "/etc/adit/x.d/a.conf", .size = 0}};
  CHECK(decodeNotesResponse(handleControl(encodeSavedRequest(files), device)));
  CHECK(device.state.configured.files == files);
  for (const std::string hash : {"", "00", "zz", "0"}) {
    const Json line{{"op", "saved"}, {"files", {{{"path", "/x"}, {"size", 1}, {"hash", hash}}}}};
    CHECK(ask(line.dump(), device)["ok"] == false);
  }
  CHECK(device.state.configured.files == files);
}

TEST_CASE("control: a change of nothing is a change") {
  FakeDevice device;
  REQUIRE(decodeNotesResponse(handleControl(encodeSetRequest({}), device)));
  REQUIRE(device.changes.size() == 1);
  CHECK_FALSE(device.changes[0].privateKey);
  CHECK_FALSE(device.changes[0].listenPort);
  CHECK(device.changes[0].peers.empty());
}

TEST_CASE("control: reload and down are passed on with their notes and errors") {
  FakeDevice device;
  device.outcome = std::vector<std::string>{"peer nas: endpoint", "mtu 1420"};
  CHECK(decodeNotesResponse(handleControl(encodePlainRequest("reload"), device)) ==
        device.outcome.value());
  CHECK(device.reloads == 1);
  REQUIRE(decodeNotesResponse(handleControl(encodePlainRequest("down"), device)));
  CHECK(device.downs == 1);

  device.outcome = tl::unexpected(Error{"adit0.conf:3:1: error: no", EBUSY});
  const auto failed = decodeNotesResponse(handleControl(encodePlainRequest("reload"), device));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "adit0.conf:3:1: error: no");
  CHECK(failed.error().code == EBUSY);
}

TEST_CASE("control: a wrong request is refused with a reason and does nothing") {
  const std::string line = GENERATE(
      "", " ", "{", "nonsense", "[]", "null", "1", "\"op\"", "{}", R"({"op":1})", R"({"op":null})",
      R"({"op":"dance"})", R"({"op":"SHOW"})", R"({"op":"show","keys":1})",
      R"({"op":"show","kyes":true})", R"({"op":"down","now":true})", R"({"op":"reload"} {})",
      R"({"op":"set"})", R"({"op":"set","change":[]})",
      R"({"op":"set","change":{"listen_port":-1}})",
      R"({"op":"set","change":{"listen_port":65536}})",
      R"({"op":"set","change":{"listen_port":1.5}})",
      R"({"op":"set","change":{"listen_port":"1"}})",
      R"({"op":"set","change":{"fwmark":4294967296}})",
      R"({"op":"set","change":{"private_key":"short"}})",
      R"({"op":"set","change":{"private_key":7}})", R"({"op":"set","change":{"peers":{}}})",
      R"({"op":"set","change":{"peers":[1]}})", R"({"op":"set","change":{"peers":[{}]}})",
      R"({"op":"set","change":{"peers":[{"public_key":"x"}]}})",
      R"({"op":"set","change":{"mtu":1}})", "{\"op\":\"show\xff\"}",
      R"({"op":"set","change":{"peers":[{"public_key":"uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=","endpoint":"a.example:1"}]}})",
      R"({"op":"set","change":{"peers":[{"public_key":"uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=","add_allowed_ips":["x"]}]}})",
      R"({"op":"set","change":{"peers":[{"public_key":"uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=","add_allowed_ips":[1]}]}})",
      R"({"op":"set","change":{"peers":[{"public_key":"uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=","name":"x"}]}})");
  FakeDevice device;
  INFO(line);
  const Json answer = ask(line, device);
  CHECK(answer["ok"] == false);
  CHECK_FALSE(answer.at("error").get<std::string>().empty());
  CHECK(device.changes.empty());
  CHECK(device.reloads == 0);
  CHECK(device.downs == 0);
}

TEST_CASE("control: errors do not repeat keys") {
  FakeDevice device;
  const std::string key = std::string(kPrivateKey).substr(1);
  const std::string answer =
      handleControl(Json{{"op", "set"}, {"change", {{"private_key", key}}}}.dump(), device);
  CHECK(answer.find(key) == std::string::npos);
  CHECK(answer.find("private_key") != std::string::npos);
}

TEST_CASE("control: depth and size of a request are bounded") {
  FakeDevice device;
  const std::string deep = R"({"op":)" + std::string(1'000'000, '[');
  CHECK(ask(deep, device)["error"].get<std::string>().find("nested") != std::string::npos);
  const std::string wide = R"({"op":")" + std::string(kMaxControlRequest, 'a') + R"("})";
  CHECK(ask(wide, device)["error"].get<std::string>().find("bytes") != std::string::npos);
  // Brackets inside of a text are text.
  CHECK(ask(R"({"op":"[[[[[[[[[[[[[[[[[[[[[[[[[[\"["})", device)["error"].get<std::string>().find(
            "unknown operation") != std::string::npos);
}

TEST_CASE("control: text that is not UTF-8 still makes a valid line") {
  FakeDevice device;
  device.state.warnings = {"bad \xff\xfe byte"};
  const auto view = decodeShowResponse(handleControl(encodeStatusRequest(), device));
  REQUIRE(view);
  CHECK(view->device.warnings[0].find("byte") != std::string::npos);
}

TEST_CASE("control: an answer that makes no sense is an error of the client") {
  const std::string line =
      GENERATE("", "{}", "x", R"({"ok":1})", R"({"ok":true})", R"({"ok":true,"device":1})",
               R"({"ok":true,"device":{}})", R"({"ok":true,"device":{"name":"a","peers":[{}]}})",
               R"({"ok":true,"device":{"name":"a","drops":{"x":-1}}})",
               R"({"ok":true,"device":{"name":"a","peers":[{"public_key":"x"}]}})");
  INFO(line);
  CHECK_FALSE(decodeShowResponse(line));
}

TEST_CASE("control: a client understands a newer daemon") {
  const auto view = decodeShowResponse(
      R"({"ok":true,"later":1,"device":{"name":"a","colour":"red","peers":[{"public_key":"uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=","endpoint":"[fe80::1%no-such-link]:51820","cipher":"rot-13","later":[]}]}})");
  REQUIRE(view);
  CHECK_FALSE(view->device.peers[0].suite);
  // The zone is another namespace's; the text is shown as it is.
  CHECK_FALSE(view->device.peers[0].endpoint);
  CHECK(view->device.peers[0].unresolvedEndpoint == "[fe80::1%no-such-link]:51820");
}

TEST_CASE("control: times that cannot be are bounded") {
  const auto view = decodeShowResponse(
      R"({"ok":true,"device":{"name":"a","peers":[{"public_key":"uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=","latest_handshake":18446744073709551615}]}})");
  REQUIRE(view);
  CHECK(view->device.peers[0].lastHandshake > std::chrono::nanoseconds::zero());
}
