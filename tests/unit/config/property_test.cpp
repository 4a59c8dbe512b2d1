// Properties that hold for every input: writing and reading agree, and no message holds a key.
#include <random>
#include <set>

#include "config/diff.hpp"
#include "config/test_support.hpp"
#include "config/writer.hpp"

using namespace adit;
using namespace adit::config;
using namespace adit::config::test;

namespace {

/// Fixed, so that a failure can be repeated.
constexpr unsigned kSeed = 20240517;
constexpr std::size_t kKeyPiece = 8;

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  std::string pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  std::string key() {
    std::array<std::uint8_t, 32> bytes{};
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(below(256));
    }
    keys_.push_back(crypto::PublicKey{bytes}.toBase64());
    return keys_.back();
  }
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

  std::string address() {
    if (chance(30)) return "fd00::" + std::to_string(below(9000) + 1);
    return "10." + std::to_string(below(250)) + "." + std::to_string(below(250)) + "." +
           std::to_string(below(250) + 1);
  }
  std::string prefix() { return address() + (chance(50) ? "" : "/" + std::to_string(below(33))); }
  std::string addresses(std::string (Generator::*one)()) {
    std::string list = (this->*one)();
    for (std::size_t more = below(4); more > 0; --more) {
      list += pick({",", ", ", " , "}) + (this->*one)();
    }
    return list;
  }

  /// A sound configuration, apart from warnings and chance duplicates.
  std::string config() {
    std::string text = "[Interface]\nPrivateKey = " + key() + "\n";
    maybe(text, "Address", addresses(&Generator::address));
    maybe(text, "ListenPort", std::to_string(below(65536)));
    maybe(text, "MTU", std::to_string(1280 + below(8000)));
    maybe(text, "FwMark", pick({"off", "0x1", "51820", "0xffffffff", "0"}));
    maybe(text, "DNS", pick({"9.9.9.9", "9.9.9.9, example.net", "fd00::1,a.b"}));
    maybe(text, "Table", pick({"auto", "off", "7", "0xca6c", "main"}));
    maybe(text, "Expose", pick({"all", "maps", "MAPS"}));
    maybe(text, "Backend", pick({"auto", "kernel", "userspace"}));
    maybe(text, "Cipher", pick({"auto", "aes-256-gcm", "AES-128-GCM", "chacha20-poly1305"}));
    maybe(text, "Extensions", pick({"on", "off", "no"}));
    maybe(text, "Public", pick({"eth0", "enp1s0.5"}));
    maybe(text, "Bind", address());
    maybe(text, "Metrics", pick({"127.0.0.1:9586", "[::1]:1", "unix:/run/adit/adit0.metrics"}));
    for (const std::string hook : {"PreUp", "PostUp", "PostUp", "PreDown", "PostDown"}) {
      maybe(text, hook, pick({"true", "echo \"a # b\"; x=1", "nft list tables | grep '#'"}));
    }
    for (std::size_t count = below(5); count > 0; --count) {
      addPeer(text);
    }
    for (std::size_t count = below(4); count > 0; --count) {
      addMap(text);
    }
    if (chance(40)) {
      text += "[Tune]\n";
      maybe(text, "Profile", pick({"auto", "off", "explicit"}));
      maybe(text, "Rps", pick({"AUTO", "0-3,5", "eth0:all"}));
      maybe(text, "Buffers", pick({"128M", "auto", "off"}));
    }
    return text;
  }

 private:
  void maybe(std::string& text, const std::string& name, const std::string& value) {
    if (chance(50)) text += name + pick({"=", " = ", "\t= "}) + value + "\n";
  }

  void addPeer(std::string& text) {
    text += "[Peer]\nPublicKey = " + key() + "\n";
    maybe(text, "Name", "p" + std::to_string(peers_++));
    maybe(text, "PresharedKey", key());
    maybe(
        text, "Endpoint",
        pick({"192.0.2.1:1", "[2001:db8::1]:65535", "[fe80::1%eth0]:9", "VPS.example.net:51820"}));
    maybe(text, "AllowedIPs", addresses(&Generator::prefix));
    maybe(text, "PersistentKeepalive", pick({"25", "off", "65535", "0"}));
    maybe(text, "Roam", pick({"on", "off"}));
    maybe(text, "AllowMaps", pick({"tcp/1-5", "third-party", "udp/9, third-party, 3/tcp"}));
  }

  void addMap(std::string& text) {
    const std::string port = std::to_string(1000 + 100 * maps_++);
    text += "[Map]\nListen = " + pick({"", "203.0.113.9:"}) + pick({"tcp/", "udp/", "tcp+udp/"}) +
            port + "\nTo = 10.9.0.2" + pick({"", ":80", ":" + port}) + "\n";
    maybe(text, "Source", pick({"preserve", "masquerade"}));
    maybe(text, "Allow", "198.51.100.0/24, 2001:db8::/32");
    maybe(text, "Rate", pick({"200mbit", "1001bit", "3 gbit"}));
    maybe(text, "Hairpin", pick({"on", "off"}));
    maybe(text, "Override", pick({"yes", "no"}));
  }

  std::mt19937 random_;
  std::vector<std::string> keys_;
  std::size_t peers_ = 0;
  std::size_t maps_ = 0;
};

std::set<std::string> piecesOf(const std::vector<std::string>& keys) {
  std::set<std::string> pieces;
  for (const std::string& key : keys) {
    for (std::size_t i = 0; i + kKeyPiece <= key.size(); ++i) {
      pieces.insert(key.substr(i, kKeyPiece));
    }
  }
  return pieces;
}

void requireNoPiece(const Outcome& outcome, const std::set<std::string>& pieces,
                    const std::string& text) {
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    const std::string& message = diagnostic.message;
    for (std::size_t i = 0; i + kKeyPiece <= message.size(); ++i) {
      if (pieces.contains(message.substr(i, kKeyPiece))) {
        CAPTURE(text, message);
        FAIL("a message holds a piece of a key");
      }
    }
  }
}

/// One thing that a hand or an editor does to a file.
std::string damage(Generator& g, std::string text) {
  const auto at = [&] { return g.below(text.size() + 1); };
  switch (g.below(9)) {
    case 0:
      return text.insert(
          at(), g.pick({"\n", " ", ";", "#", "=", ",", "\"", "[", "\xc2\xa0", "\r", "\xef\xbb\xbf",
                        "\xff", "\n[Peer]\n", "\xd0\x90", ":", "/"}));
    case 1:
      return text.erase(std::min(at(), text.size() - 1), g.below(30));
    case 2: {  // a key name mistyped, or the name of another key
      const std::size_t name = text.find(g.pick({"PrivateKey", "PublicKey", "PresharedKey"}));
      if (name == std::string::npos) return text;
      return text.replace(name, text.find('=', name) - name,
                          g.pick({"PrivatKey ",
                                  "Key ",
                                  "ListenPort",
                                  "Endpoint ",
                                  "AllowedIPs ",
                                  "Name ",
                                  "PrivateKeyFile ",
                                  "PresharedKeyFile ",
                                  "To",
                                  "Listen",
                                  "Rate",
                                  "Table ",
                                  "MTU",
                                  "DNS ",
                                  "Address",
                                  "",
                                  "[",
                                  "Public",
                                  "Cipher",
                                  "Rps",
                                  "Qdisc",
                                  "Buffers",
                                  "AllowMaps",
                                  "Allow"}));
    }
    case 3: {  // a section mistyped
      const std::size_t header = text.find('[', at());
      return header == std::string::npos ? text : text.replace(header, 2, g.pick({"[X", "", "["}));
    }
    case 4: {  // a line wrapped inside a key
      const std::size_t key = text.find(g.keys()[g.below(g.keys().size())]);
      return key == std::string::npos ? text : text.insert(key + g.below(44), "\n");
    }
    case 5:  // a key where it does not belong, whole or in part
      return text.insert(text.find('\n', std::min(at(), text.size() - 1)) + 1,
                         g.pick({"", "MTU = ", "Endpoint = ", "[", "Name = ", "To = ", "Table = ",
                                 "Public = ", "AllowedIPs = 10.9.0.0/", "Rate = "}) +
                             g.keys()[g.below(g.keys().size())].substr(g.below(20)) + "\n");
    case 6:
      std::swap(text[std::min(at(), text.size() - 1)], text[std::min(at(), text.size() - 1)]);
      return text;
    case 7: {
      const std::size_t line = text.find('\n', std::min(at(), text.size() - 1));
      return line == std::string::npos ? text : text.erase(line, 1);
    }
    default:
      return text.insert(0, g.pick({"\xef\xbb\xbf", "# x\n", "\n", "x", "\xff\xfe"}));
  }
}

}  // namespace

TEST_CASE("property: what is written reads the same") {
  Generator g(kSeed);
  unsigned sound = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string text = g.config();
    const Outcome first = parse(text, "x");
    if (!first.ok()) continue;
    ++sound;
    const std::string canonical = write(*first.config);
    const Outcome second = parse(canonical, "x");
    CAPTURE(text, canonical, messages(second));
    REQUIRE(second.ok());
    REQUIRE(write(*second.config) == canonical);
    REQUIRE(diff(*first.config, *second.config).empty());
    REQUIRE(first.config->peers.size() == second.config->peers.size());
    REQUIRE(first.config->maps.size() == second.config->maps.size());
    for (std::size_t i = 0; i < first.config->peers.size(); ++i) {
      REQUIRE(first.config->peers[i].allowedIps == second.config->peers[i].allowedIps);
      REQUIRE(first.config->peers[i].endpoint == second.config->peers[i].endpoint);
      REQUIRE(first.config->peers[i].allowMaps == second.config->peers[i].allowMaps);
    }
    for (std::size_t i = 0; i < first.config->maps.size(); ++i) {
      REQUIRE(first.config->maps[i].rate == second.config->maps[i].rate);
      REQUIRE(first.config->maps[i].targets == second.config->maps[i].targets);
      REQUIRE(first.config->maps[i].targetPort == second.config->maps[i].targetPort);
    }
    const auto& a = first.config->interface;
    const auto& b = second.config->interface;
    REQUIRE((a.addresses == b.addresses && a.table == b.table && a.dnsServers == b.dnsServers));
    REQUIRE((a.privateKey == b.privateKey && a.firewallMark == b.firewallMark));
    REQUIRE((a.postUp.size() == b.postUp.size() && a.cipher == b.cipher && a.mtu == b.mtu));
  }
  REQUIRE(sound > 500);
}

TEST_CASE("property: no message holds a piece of a key") {
  unsigned wrong = 0;
  for (unsigned round = 0; round < 4000; ++round) {
    Generator g(kSeed + round);
    std::string text = g.config();
    for (std::size_t blows = 1 + g.below(4); blows > 0; --blows) {
      text = damage(g, std::move(text));
    }
    const auto pieces = piecesOf(g.keys());
    for (const Dialect dialect : {Dialect::Adit, Dialect::WireGuard}) {
      const Outcome outcome = parse(text, "x", dialect);
      wrong += outcome.ok() ? 0 : 1;
      requireNoPiece(outcome, pieces, text);
    }
  }
  REQUIRE(wrong > 4000);
}

TEST_CASE("property: a key in the place of any value or name is not shown") {
  Generator g(kSeed);
  for (const std::string name : {"PrivateKey",
                                 "PrivateKeyFile",
                                 "Address",
                                 "ListenPort",
                                 "MTU",
                                 "FwMark",
                                 "DNS",
                                 "Table",
                                 "Expose",
                                 "Backend",
                                 "Cipher",
                                 "Extensions",
                                 "Public",
                                 "Bind",
                                 "Metrics",
                                 "SaveConfig",
                                 "Name",
                                 "PublicKey",
                                 "PresharedKey",
                                 "PresharedKeyFile",
                                 "Endpoint",
                                 "AllowedIPs",
                                 "PersistentKeepalive",
                                 "Roam",
                                 "AllowMaps",
                                 "Listen",
                                 "To",
                                 "Source",
                                 "Allow",
                                 "Rate",
                                 "Hairpin",
                                 "Override",
                                 "Profile",
                                 "Rps",
                                 "Rfs",
                                 "Irq",
                                 "CongestionControl",
                                 "Buffers",
                                 "Qdisc",
                                 "Nonsense",
                                 ""}) {
    for (const std::string section : {"Interface", "Peer", "Map", "Tune", ""}) {
      for (const std::string shape :
           {"%", "%x", "x%", "% %", "\"%\"", "%,", "%:1", "[%]:1", "tcp/%", "%/tcp", "10.9.0.2/%",
            "%-%", "1-%", "eth0:%", "nas:%"}) {
        const std::string key = g.key();
        std::string value = shape;
        for (std::size_t at = value.find('%'); at != std::string::npos; at = value.find('%')) {
          value.replace(at, 1, key);
        }
        const std::string text = "[" + (section.empty() ? key : section) + "]\n" +
                                 (name.empty() ? value : name + " = " + value) + "\n";
        requireNoPiece(parse(text, "x"), piecesOf({key}), text);
      }
    }
  }
}
