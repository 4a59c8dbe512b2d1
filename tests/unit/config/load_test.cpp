// Files on disk: drop-ins, key files, modes, names.
#include <sys/stat.h>

#include <sstream>

#include "config/test_support.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

std::vector<std::string> printed(const Outcome& outcome) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    lines.push_back(diagnostic.toString());
  }
  return lines;
}

std::string onlyLine(const Outcome& outcome) {
  CAPTURE(printed(outcome));
  REQUIRE(outcome.diagnostics.size() == 1);
  return printed(outcome).front();
}

}  // namespace

TEST_CASE("load: files of NAME.d follow in the order of their names") {
  const TemporaryFolder folder;
  const auto main = folder.file("tun0.conf", kInterface + kPeer);
  folder.file("tun0.d/20-map.conf", "[Map]\nListen = tcp/80\nTo = nas\n");
  folder.file("tun0.d/10-peer.conf", "\xef\xbb\xbf[Peer]\nName = nas\nPublicKey = " + kPeerB +
                                         "\nAllowedIPs = 10.9.0.2\n[Interface]\nListenPort = 7\n");
  folder.file("tun0.d/ignored.txt", "nonsense");
  folder.file("tun0.d/.hidden.conf", "nonsense");
  const Outcome outcome = load(main);
  CAPTURE(printed(outcome));
  REQUIRE(outcome.ok());
  REQUIRE(outcome.diagnostics.empty());
  CHECK(outcome.config->peers.at(1).name == "nas");
  CHECK(outcome.config->interface.listenPort == 7);
  CHECK(outcome.config->maps.at(0).targets.at(0).toString() == "10.9.0.2");
  REQUIRE(outcome.files.size() == 3);
  CHECK(outcome.files[0].path == main);
  CHECK_THAT(outcome.files[1].path.string(), EndsWith("10-peer.conf"));
}

TEST_CASE("load: duplicates across files name the other file") {
  const TemporaryFolder folder;
  const auto main = folder.file("tun0.conf", kInterface + "ListenPort = 1\n" + kPeer);
  folder.file("tun0.d/a.conf", kPeer + "[Interface]\nListenPort = 2\n");
  const auto lines = printed(load(main));
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Contains("a.conf:2:1: error: the peer of " + main.string() + ":5 has"));
  CHECK_THAT(lines[1],
             Contains("a.conf:4:1: error: ListenPort stands already on " + main.string() + ":3"));
}

TEST_CASE("load: errors of every file in one run, by file") {
  const TemporaryFolder folder;
  const auto main = folder.file("tun0.conf", kInterface + "MTU = x\n");
  folder.file("tun0.d/a.conf", "[Peer]\nPublicKey = x\n");
  folder.file("tun0.d/b.conf", "[Map]\nListen = x\n");
  const auto lines = printed(load(main));
  REQUIRE(lines.size() == 4);
  CHECK_THAT(lines[0], Contains("tun0.conf:3:7: error"));
  CHECK_THAT(lines[1], Contains("a.conf:2:13: error"));
  CHECK_THAT(lines[2], Contains("b.conf:1:2: error"));
  CHECK_THAT(lines[3], Contains("b.conf:2:10: error"));
}

TEST_CASE("load: keys from files, relative to the configuration's folder") {
  const TemporaryFolder folder;
  folder.file("keys/own.key", kPrivate + "\n");
  const auto psk = folder.file("psk", kPreshared + "\r\n");
  const auto main =
      folder.file("tun0.conf", "[Interface]\nPrivateKeyFile = keys/own.key # kept apart\n" + kPeer +
                                   "PresharedKeyFile = " + psk.string() + "\n");
  const Outcome outcome = load(main);
  CAPTURE(printed(outcome));
  REQUIRE(outcome.ok());
  CHECK(outcome.config->interface.privateKey->toBase64() == kPrivate);
  CHECK(outcome.config->interface.privateKeyFile == "keys/own.key");
  CHECK(crypto::presharedKeyToBase64(*outcome.config->peers.at(0).presharedKey) == kPreshared);
  // parse() opens nothing.
  CHECK_FALSE(parse(readWhole(main), main.string()).config->interface.privateKey.has_value());
}

TEST_CASE("load: a key file that is wrong is named with the line that names it") {
  const TemporaryFolder folder;
  const auto loadWith = [&](const std::string& value) {
    return onlyLine(
        load(folder.file("tun0.conf", "[Interface]\nPrivateKeyFile = " + value + "\n")));
  };
  folder.file("short.key", kPrivate.substr(0, 40));
  folder.file("empty.key", "");
  folder.file("two.key", kPrivate + "\n" + kPrivate + "\n");
  folder.file("big.key", std::string(5000, 'x'));
  std::filesystem::create_directory(folder.path() / "sub");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(loadWith("absent.key"), Contains(":2:1: error: the key file") &&
                                         Contains("absent.key: cannot open it: No such file"));
  CHECK_THAT(loadWith("/no/such/folder/AbCdEfGhIjKl"),
             EndsWith("the key file: cannot open it: No such file or directory"));
  CHECK_THAT(loadWith("short.key"),
             Contains("short.key: a key has 44 characters of base64, this one "
                      "has 40"));
  CHECK_THAT(loadWith("empty.key"), Contains("empty.key: it is empty"));
  CHECK_THAT(loadWith("two.key"), Contains("two.key: characters after the end"));
  CHECK_THAT(loadWith("big.key"), Contains("larger than 4096 bytes"));
  CHECK_THAT(loadWith("sub"), Contains("it is a folder"));
  CHECK_THAT(loadWith("pipe"), Contains("it is not a regular file"));
  CHECK_THAT(loadWith(kPrivate), Contains(":2:18: error: this is a key where the path"));
}

TEST_CASE("load: the interface's own public key is found in a key file as well") {
  const TemporaryFolder folder;
  folder.file("own.key", kPrivate);
  CHECK_THAT(onlyLine(load(folder.file("tun0.conf",
                                       "[Interface]\nPrivateKeyFile = own.key\n[Peer]\n"
                                       "PublicKey = " +
                                           kOwnPublic + "\n"))),
             Contains("interface's own public key"));
}

TEST_CASE("load: secrets that others can read get a warning with the chmod") {
  const TemporaryFolder folder;
  const auto main = folder.file("tun0.conf", kInterface);
  const auto key = folder.file("own.key", kPrivate);
  for (const mode_t mode : {0644U, 0640U, 0604U, 0622U}) {
    REQUIRE(::chmod(main.c_str(), mode) == 0);
    const Outcome outcome = load(main);
    CHECK(outcome.ok());
    CHECK_THAT(onlyLine(outcome), Contains(":2:1: warning: others can read this file") &&
                                      EndsWith("run: chmod 600 " + main.string()));
  }
  // A file without secrets may be read by anyone; its key file may not.
  const auto other = folder.file("tun1.conf", "[Interface]\nPrivateKeyFile = own.key\n");
  REQUIRE(::chmod(other.c_str(), 0644) == 0);
  CHECK(load(other).diagnostics.empty());
  REQUIRE(::chmod(key.c_str(), 0644) == 0);
  CHECK_THAT(onlyLine(load(other)), Contains(":2:1: warning: others can read the key file") &&
                                        EndsWith("run: chmod 600 " + key.string()));
}

TEST_CASE("load: a file that others can change gets a warning, since its hooks run as root") {
  const TemporaryFolder folder;
  folder.file("own.key", kPrivate);
  REQUIRE(::chmod((folder.path() / "own.key").c_str(), 0600) == 0);
  const auto main = folder.file("tun1.conf", "[Interface]\nPrivateKeyFile = own.key\n");
  for (const mode_t mode : {0664U, 0646U, 0602U}) {
    REQUIRE(::chmod(main.c_str(), mode) == 0);
    const Outcome outcome = load(main);
    CHECK(outcome.ok());
    CHECK_THAT(onlyLine(outcome), Contains("warning: others can change this file") &&
                                      EndsWith("run: chmod go-w " + main.string()));
  }
  REQUIRE(::chmod(main.c_str(), 0644) == 0);
  CHECK(load(main).diagnostics.empty());
}

TEST_CASE("load: a path with blanks is quoted in the command") {
  const TemporaryFolder folder;
  const auto main = folder.file("it's a/tun0.conf", kInterface);
  REQUIRE(::chmod(main.c_str(), 0644) == 0);
  CHECK_THAT(onlyLine(load(main)), Contains("it'\\''s a/tun0.conf'"));
}

TEST_CASE("load: a file that cannot be read is one error") {
  const TemporaryFolder folder;
  CHECK_THAT(onlyLine(load(folder.path() / "absent.conf")),
             EndsWith("absent.conf: error: cannot open it: No such file or directory"));
  std::filesystem::create_directory(folder.path() / "folder.conf");
  CHECK_THAT(onlyLine(load(folder.path() / "folder.conf")), EndsWith("error: it is a folder"));
}

TEST_CASE("load: NAME must be able to be an interface") {
  CHECK(interfaceNameOf("/etc/adit/tun0.conf").value() == "tun0");
  CHECK(interfaceNameOf("fifteen_bytes_x.conf").has_value());
  CHECK_THAT(interfaceNameOf("sixteen_bytes_xx.conf").error().message, Contains("1 to 15 bytes"));
  CHECK_THAT(interfaceNameOf("/etc/adit/tun 0.conf").error().message, Contains("no blanks"));
  CHECK_THAT(interfaceNameOf("/etc/adit/tun0").error().message, Contains("NAME.conf"));
  CHECK_FALSE(checkInterfaceName("..").has_value());
  const TemporaryFolder folder;
  const Outcome outcome = load(folder.file("a-name-that-is-too-long.conf", kInterface));
  CHECK(outcome.ok());
  CHECK_THAT(onlyLine(outcome), Contains("warning: the file's name is NAME.conf"));
}

TEST_CASE("load: wg's dialect reads one file and no key files") {
  const TemporaryFolder folder;
  const auto main = folder.file("peers", kPeer);
  folder.file("peers.d/a.conf", "nonsense");
  CHECK(load(main, Dialect::WireGuard).diagnostics.empty());
}
