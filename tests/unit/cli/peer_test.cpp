// peer, export and import as a person runs them, against files of a folder of the test's own.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/peer_file.hpp"
#include "config/parser.hpp"
#include "control/wg_format.hpp"
#include "fake_daemon.hpp"

using namespace adit;
using namespace adit::cli::testing;
using namespace adit::control::testing;
using Catch::Matchers::Contains;
using control::testing::FakeDevice;
using Json = nlohmann::ordered_json;

namespace {

const std::string kConfig = fmt::format(
    "[Interface]\nPrivateKey = {}\nAddress = 10.10.0.1/24, fd10::1/64\nListenPort = 51820\n"
    "\n# the NAS\n[Peer]\nName = nas\nPublicKey = {}\nAllowedIPs = 10.10.0.2/32, fd10::2/128\n",
    kPrivateKey, kFirstPeer);

std::string contentOf(const std::string& file) {
  return shell(fmt::format("cat '{}'", file)).out;
}

unsigned modeOf(const std::string& file) {
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  return status.st_mode & 0777U;
}

config::Config parsed(const std::string& text) {
  config::Outcome outcome = config::parse(text, "test");
  INFO(text);
  REQUIRE(outcome.ok());
  return std::move(*outcome.config);
}

}  // namespace

TEST_CASE("peer: a section is replaced and removed by itself") {
  const std::string text =
      "# of both\n[Peer]\nPublicKey = a\n# inside\nName = a\n\n# of the second\n[Peer]\nName = b\n";
  const cli::SectionLines first = cli::sectionAt(text, 2);
  CHECK(first.first == 2);
  CHECK(first.last == 5);
  CHECK(cli::withoutSection(text, first) == "# of both\n\n# of the second\n[Peer]\nName = b\n");
  CHECK(cli::withSection(text, first, "[Peer]\nName = c\n") ==
        "# of both\n[Peer]\nName = c\n\n# of the second\n[Peer]\nName = b\n");
  CHECK(cli::withoutSection("# ours\n[Peer]\nName = b\n", {2, 3}).empty());
}

TEST_CASE("export: a phone gets a file, the server its peer, and only the file the private key") {
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig);
  const Outcome outcome = runAdit("export phone --endpoint vps.example.net");
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const config::Config file = parsed(outcome.out);
  CHECK(file.interface.addresses.front().toString() == "10.10.0.3/32");
  REQUIRE(file.peers.size() == 1);
  CHECK(file.peers[0].publicKey.toBase64() == kPublicKey);
  CHECK(file.peers[0].endpoint->toString() == "vps.example.net:51820");
  CHECK(file.peers[0].allowedIps[0].toString() == "10.10.0.0/24");
  CHECK(file.peers[0].persistentKeepalive == 25);

  const std::string path = sandbox.path().string() + "/adit0.d/peer-phone.conf";
  CHECK(modeOf(path) == 0600);
  const std::string written = contentOf(path);
  CHECK_THAT(written, Contains(file.interface.privateKey->publicKey().toBase64()) &&
                          !Contains(file.interface.privateKey->toBase64()) &&
                          Contains(crypto::presharedKeyToBase64(*file.peers[0].presharedKey)));
  CHECK(contentOf(sandbox.path().string() + "/adit0.conf") == kConfig);
  CHECK(runAdit("check adit0").status == 0);

  const Outcome again = runAdit("export phone --endpoint vps.example.net");
  CHECK(again.status == 1);
  CHECK_THAT(again.err, Contains("--rotate"));
  CHECK(contentOf(path) == written);

  const Outcome rotated = runAdit("export PHONE --rotate --endpoint '2001:db8::1'");
  INFO(rotated.err);
  REQUIRE(rotated.status == 0);
  const config::Config fresh = parsed(rotated.out);
  CHECK(fresh.interface.addresses.front().toString() == "10.10.0.3/32");
  CHECK(fresh.peers[0].endpoint->toString() == "[2001:db8::1]:51820");
  CHECK_THAT(contentOf(path),
             Contains(fresh.interface.privateKey->publicKey().toBase64()) &&
                 Contains("Name = phone") &&
                 !Contains(file.interface.privateKey->publicKey().toBase64()) &&
                 !Contains(crypto::presharedKeyToBase64(*file.peers[0].presharedKey)));
}

TEST_CASE("export: what it refuses leaves nothing behind") {
  const Sandbox sandbox;
  std::string text = kConfig;
  text.insert(text.find("ListenPort"), "Public = nowhere0\n");
  sandbox.write("adit0.conf", text);
  const std::string taken = sandbox.write("taken.txt", "mine");
  const auto [arguments, expected] = GENERATE(table<std::string, std::string>({
      {"export phone", "PublicEndpoint"},
      {"export phone --endpoint 'a b'", "a b"},
      {"export 'a b' --endpoint a.example", "a b"},
      {"export nas --endpoint a.example", "--rotate"},
      {"export nas --rotate --endpoint a.example", "lines 8 to 11"},
      {"export phone --rotate --endpoint a.example", "no peer"},
      {"export phone --endpoint a.example --allowed-ips x", "--allowed-ips"},
      {"export phone --interface adit7 --endpoint a.example", "adit7.conf"},
      {"export phone --endpoint a.example --output \"$ADIT_CONFIG_DIR/taken.txt\"", "taken.txt"},
  }));
  const Outcome outcome = runAdit(arguments);
  INFO(arguments << ": " << outcome.err);
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains(expected));
  CHECK((!std::filesystem::exists(sandbox.path() / "adit0.d") ||
         std::filesystem::is_empty(sandbox.path() / "adit0.d")));
  CHECK(contentOf(taken) == "mine");
}

TEST_CASE("export: a daemon that refuses gets the old files back") {
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig);
  FakeDevice device;
  device.outcome = tl::unexpected(Error{"no room for another peer"});
  const FakeDaemon daemon(device);
  const std::string output = sandbox.path().string() + "/phone.txt";
  const Outcome outcome =
      runAdit(fmt::format("export phone --endpoint a.example --output '{}'", output));
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("no room"));
  CHECK_FALSE(std::filesystem::exists(output));
  CHECK_FALSE(std::filesystem::exists(sandbox.path() / "adit0.d/peer-phone.conf"));
}

TEST_CASE("export: into a file, or as a QR code") {
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig);
  const std::string output = sandbox.path().string() + "/laptop.txt";
  const Outcome outcome = runAdit(fmt::format(
      "export laptop --endpoint a.example:7 --allowed-ips '0.0.0.0/0, ::/0' --output '{}'",
      output));
  CHECK(outcome.status == 0);
  CHECK(outcome.out == output + ": written\n");
  CHECK(modeOf(output) == 0600);
  const config::Config file = parsed(contentOf(output));
  CHECK(file.peers[0].endpoint->toString() == "a.example:7");
  CHECK(file.peers[0].allowedIps.size() == 2);
  CHECK_THAT(runAdit("export phone --endpoint a.example --qr").out,
             Contains("█") && !Contains("PrivateKey"));
}

TEST_CASE("peer list: of files while it is down, with the daemon's figures while it is up") {
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig + "[Map]\nListen = tcp/18080\nTo = nas:80\n");
  CHECK_THAT(runAdit("peer list").out, Contains("nas") && Contains("10.10.0.2/32, fd10::2/128") &&
                                           Contains("not up") && Contains("tcp/18080"));
  const Json down = Json::parse(runAdit("peer list --json").out);
  REQUIRE(down.size() == 1);
  CHECK(down[0]["name"] == "nas");
  CHECK(down[0]["up"] == false);
  CHECK(down[0]["latest_handshake_age"].is_null());
  CHECK(down[0]["maps"] == Json{"tcp/18080"});
  CHECK(down[0]["file"] == sandbox.path().string() + "/adit0.conf:7");

  FakeDevice device(richSnapshot());
  device.state.configured.files.clear();
  const FakeDaemon daemon(device);
  const Outcome listed = runAdit("peer list --json");
  INFO(listed.err);
  const Json up = Json::parse(listed.out);
  REQUIRE(up.size() == 3);
  CHECK(up[1]["up"] == true);
  CHECK(up[1]["rx_bytes"] == 2224);
  CHECK_THAT(runAdit("peer list").out, !Contains(kPresharedKey) && Contains("never"));
}

TEST_CASE("peer remove: its file, its mappings, and nothing of the person's own") {
  const Sandbox sandbox;
  const std::string own = kConfig + "[Map]\nListen = tcp/18080\nTo = nas:80\n";
  sandbox.write("adit0.conf", own);
  REQUIRE(runAdit("export phone --endpoint a.example").status == 0);
  REQUIRE(runAdit("map add adit0 tcp/9000 phone").status == 0);
  REQUIRE(runAdit("map add adit0 tcp/9001 10.10.0.3:80").status == 0);
  REQUIRE(runAdit("map add adit0 tcp/9002 nas").status == 0);

  const Outcome asked = shell("adit peer remove phone </dev/null");
  CHECK(asked.status == 1);
  CHECK_THAT(asked.err, Contains("tcp/9000, tcp/9001") && Contains("--yes"));
  CHECK(std::filesystem::exists(sandbox.path() / "adit0.d/peer-phone.conf"));

  FakeDevice device;
  device.outcome = std::vector<std::string>{"peer phone: removed"};
  {
    const FakeDaemon daemon(device);
    const Outcome outcome = runAdit(fmt::format(
        "peer remove phone --yes --interface '{}/adit0.conf'", sandbox.path().string()));
    INFO(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(outcome.out == "peer phone: removed\n");
    CHECK(device.reloads == 1);
  }
  CHECK_FALSE(std::filesystem::exists(sandbox.path() / "adit0.d/peer-phone.conf"));
  CHECK_THAT(contentOf(sandbox.path().string() + "/adit0.d/maps.conf"),
             Contains("tcp/9002") && !Contains("tcp/9000") && !Contains("tcp/9001"));

  const Outcome refused = runAdit("peer remove nas --yes --json");
  CHECK(refused.status == 1);
  CHECK_THAT(Json::parse(refused.out)["error"].get<std::string>(),
             Contains("lines 7 to 10") && Contains("adit reload adit0"));
  CHECK(contentOf(sandbox.path().string() + "/adit0.conf") == own);
  CHECK_THAT(runAdit("peer remove nobody --yes").err, Contains("adit peer list"));
}

TEST_CASE("peer remove: a mapping of the person's own file that names the peer is in the way") {
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig);
  REQUIRE(runAdit("export phone --endpoint a.example").status == 0);
  sandbox.write("adit0.conf", kConfig + "[Map]\nListen = tcp/18080\nTo = phone:80\n");
  const Outcome outcome = runAdit("peer remove phone --yes");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("adit0.conf:11"));
  CHECK(std::filesystem::exists(sandbox.path() / "adit0.d/peer-phone.conf"));
}

TEST_CASE("import: a wg-quick file, comments included") {
  const Sandbox sandbox;
  std::filesystem::create_directory(sandbox.path() / "wireguard");
  const std::string text = fmt::format(
      "# home\n[Interface]\nPrivateKey = {}  # mine\nAddress = 10.0.0.2/24\nDNS = 10.0.0.1\n"
      "SaveConfig = true\nPostUp = echo '# %i'\n\n[Peer]\nPublicKey = {}\nAllowedIPs = 0.0.0.0/0\n"
      "Endpoint = a.example:51820\n",
      kPrivateKey, kFirstPeer);
  const std::string file = sandbox.write("wireguard/wg0.conf", text);
  const Outcome outcome = runAdit(fmt::format("import '{}'", file));
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const std::string made = sandbox.path().string() + "/wg0.conf";
  std::string expected = text;
  expected.replace(expected.find("SaveConfig"), 0, "# adit import: ");
  CHECK(contentOf(made) == expected);
  CHECK(modeOf(made) == 0600);
  CHECK(contentOf(file) == text);
  CHECK_THAT(outcome.err, Contains("line 6") && Contains("adit save") && !Contains(kPrivateKey));
  CHECK_THAT(outcome.out,
             Contains("wg-quick down wg0; adit up wg0") && Contains("disable wg-quick@wg0"));
  CHECK(runAdit("check wg0").status == 0);

  const Outcome again = runAdit(fmt::format("import '{}'", file));
  CHECK(again.status == 1);
  CHECK_THAT(again.err, Contains("--name"));
  CHECK(runAdit(fmt::format("import '{}' --name adit5", file)).status == 0);
  CHECK(contentOf(sandbox.path().string() + "/adit5.conf") == expected);
}

TEST_CASE("import: a wrong file is listed and nothing written") {
  const Sandbox sandbox;
  std::filesystem::create_directory(sandbox.path() / "wireguard");
  const std::string file =
      sandbox.write("wireguard/wg0.conf", "[Interface]\nPrivateKey = x\nListenPort = 70000\n");
  const Outcome outcome = runAdit(fmt::format("import '{}'", file));
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains(file + ":2:") && Contains(file + ":3:"));
  CHECK_FALSE(std::filesystem::exists(sandbox.path() / "wg0.conf"));
  CHECK_THAT(runAdit("import /nonexistent.conf").err, Contains("/nonexistent.conf"));
  CHECK_THAT(runAdit(fmt::format("import '{}' --name a/b", file)).err, Contains("--name"));
}

TEST_CASE("peer rotate: one line changes, in the person's own file and in NAME.d") {
  const Sandbox sandbox;
  sandbox.write("adit0.conf", kConfig);
  const Outcome told = runAdit("peer rotate nas");
  INFO(told.err);
  REQUIRE(told.status == 0);
  const std::string key = told.out.substr(0, 44);
  CHECK(told.out == key + "\n");
  REQUIRE(crypto::presharedKeyFromBase64(key));
  CHECK_THAT(told.err, Contains("adit peer rotate NAME --key -") && !Contains(key));
  const std::string own = contentOf(sandbox.path().string() + "/adit0.conf");
  CHECK_THAT(own, Contains("PresharedKey = " + key + "\n") && Contains("# the NAS\n[Peer]\n"));
  std::string rest = own;
  rest.erase(rest.find("PresharedKey"), std::string("PresharedKey = \n").size() + key.size());
  CHECK(rest == kConfig);

  REQUIRE(runAdit("export phone --endpoint a.example").status == 0);
  const Outcome taken = shell(fmt::format("echo '{}' | adit peer rotate phone --key -", key));
  INFO(taken.err);
  CHECK(taken.status == 0);
  CHECK_THAT(taken.out, Contains("next session") && !Contains(key));
  CHECK_THAT(contentOf(sandbox.path().string() + "/adit0.d/peer-phone.conf"),
             Contains("PresharedKey = " + key) && Contains("Name = phone"));
  CHECK_THAT(shell("echo rubbish | adit peer rotate phone --key -").err,
             Contains("no preshared key") && !Contains("rubbish"));
}
