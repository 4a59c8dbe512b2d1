// The expected texts were printed by wg(8) of wireguard-tools 1.0.20210914 for the same device,
// served over its cross-platform socket.
#include "control/wg_format.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "cli_fake_device.hpp"

using namespace adit;
using namespace adit::control;
using namespace adit::control::testing;
using std::chrono::seconds;

namespace {

constexpr seconds kNow{1'796'040'826};

std::string field(std::string_view name, bool withInterface = false) {
  return formatField(viewOf(sampleSnapshot()), name, withInterface).value();
}

}  // namespace

TEST_CASE("wg format: pretty form") {
  CHECK(formatPretty(viewOf(sampleSnapshot()), {.now = kNow}) ==
        "interface: adit0\n"
        "  public key: wVMuGz01CPx+vDVPpnliDzPyhxSVQuaExnt7DYE2Kyk=\n"
        "  private key: (hidden)\n"
        "  listening port: 12912\n"
        "  fwmark: 0xca6c\n"
        "\n"
        "peer: Zi4U/VlFVvUiYEcDNANRJYkDtk81VTdj8ZQmqypRXFg=\n"
        "  allowed ips: (none)\n"
        "  latest handshake: (System clock wound backward; connection problems may ensue.)\n"
        "\n"
        "peer: WEAuaVuhdyscyTCXVfBDJR6nf9zxD75jmJzrfhkyE3Y=\n"
        "  endpoint: 182.122.22.19:3233\n"
        "  allowed ips: 192.168.4.6/32, ::/0\n"
        "  latest handshake: 25 years, 88 days, 10 hours, 27 minutes, 6 seconds ago\n"
        "  transfer: 2.17 KiB received, 37.43 KiB sent\n"
        "  persistent keepalive: every 1 minute, 51 seconds\n"
        "\n"
        "peer: uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=\n"
        "  preshared key: (hidden)\n"
        "  endpoint: [abcd:23::33]:51820\n"
        "  allowed ips: 192.168.4.4/32\n");
}

TEST_CASE("wg format: pretty form in colour") {
  CHECK(formatPretty(viewOf(sampleSnapshot()), {.color = true, .now = kNow}) ==
        "\x1b[0m\x1b[32m\x1b[1minterface\x1b[0m: \x1b[32madit0\x1b[0m\n"
        "  \x1b[1mpublic key\x1b[0m: wVMuGz01CPx+vDVPpnliDzPyhxSVQuaExnt7DYE2Kyk=\n"
        "  \x1b[1mprivate key\x1b[0m: (hidden)\n"
        "  \x1b[1mlistening port\x1b[0m: 12912\n"
        "  \x1b[1mfwmark\x1b[0m: 0xca6c\n"
        "\n"
        "\x1b[33m\x1b[1mpeer\x1b[0m: \x1b[33mZi4U/VlFVvUiYEcDNANRJYkDtk81VTdj8ZQmqypRXFg=\x1b[0m\n"
        "  \x1b[1mallowed ips\x1b[0m: (none)\n"
        "  \x1b[1mlatest handshake\x1b[0m: (\x1b[31mSystem clock wound backward; connection "
        "problems may ensue.\x1b[0m)\n"
        "\n"
        "\x1b[33m\x1b[1mpeer\x1b[0m: \x1b[33mWEAuaVuhdyscyTCXVfBDJR6nf9zxD75jmJzrfhkyE3Y=\x1b[0m\n"
        "  \x1b[1mendpoint\x1b[0m: 182.122.22.19:3233\n"
        "  \x1b[1mallowed ips\x1b[0m: 192.168.4.6\x1b[36m/\x1b[0m32, ::\x1b[36m/\x1b[0m0\n"
        "  \x1b[1mlatest handshake\x1b[0m: 25 \x1b[36myears\x1b[0m, 88 \x1b[36mdays\x1b[0m, 10 "
        "\x1b[36mhours\x1b[0m, 27 \x1b[36mminutes\x1b[0m, 6 \x1b[36mseconds\x1b[0m ago\n"
        "  \x1b[1mtransfer\x1b[0m: 2.17 \x1b[36mKiB\x1b[0m received, 37.43 \x1b[36mKiB\x1b[0m "
        "sent\n"
        "  \x1b[1mpersistent keepalive\x1b[0m: every 1 \x1b[36mminute\x1b[0m, 51 "
        "\x1b[36mseconds\x1b[0m\n"
        "\n"
        "\x1b[33m\x1b[1mpeer\x1b[0m: \x1b[33muFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=\x1b[0m\n"
        "  \x1b[1mpreshared key\x1b[0m: (hidden)\n"
        "  \x1b[1mendpoint\x1b[0m: [abcd:23::33]:51820\n"
        "  \x1b[1mallowed ips\x1b[0m: 192.168.4.4\x1b[36m/\x1b[0m32\n");
}

TEST_CASE("wg format: keys are shown when that is asked for") {
  const std::string text = formatPretty(viewOf(sampleSnapshot()), {.hideKeys = false, .now = kNow});
  CHECK(text.find(std::string("private key: ") + kPrivateKey) != std::string::npos);
  CHECK(text.find(std::string("preshared key: ") + kPresharedKey) != std::string::npos);
  CHECK(text.find("(hidden)") == std::string::npos);
}

TEST_CASE("wg format: a bare device is its name") {
  DeviceSnapshot device;
  device.name = "adit7";
  CHECK(formatPretty(viewOf(device), {.now = kNow}) == "interface: adit7\n");
  CHECK(formatField(viewOf(device), "dump", false).value() == "(none)\t(none)\t0\toff\n");
  CHECK(formatField(viewOf(device), "peers", false).value().empty());
  CHECK(formatConf(viewOf(device)) == "[Interface]\n\n");
}

TEST_CASE("wg format: what WireGuard does not know follows a peer's own lines") {
  const std::string text = formatPretty(viewOf(richSnapshot()), {.now = kNow});
  CHECK(text.find("  persistent keepalive: every 1 minute, 51 seconds\n"
                  "  name: nas\n"
                  "  cipher: aes-256-gcm\n"
                  "  peer clock behind: 2 handshakes refused; set the peer's clock\n\n") !=
        std::string::npos);
  CHECK(text.find("  unresolved endpoint: vps.example.net:51820\n") != std::string::npos);
}

TEST_CASE("wg format: WireGuard's own cipher adds no line") {
  DeviceSnapshot device = sampleSnapshot();
  const std::string without = formatPretty(viewOf(device), {.now = kNow});
  device.peers[1].suite = crypto::Suite::ChaCha20Poly1305;
  CHECK(formatPretty(viewOf(device), {.now = kNow}) == without);
}

TEST_CASE("wg format: fields") {
  const std::string first = kFirstPeer;
  const std::string second = kSecondPeer;
  const std::string third = kThirdPeer;
  CHECK(field("public-key") == std::string(kPublicKey) + "\n");
  CHECK(field("private-key") == std::string(kPrivateKey) + "\n");
  CHECK(field("listen-port") == "12912\n");
  CHECK(field("fwmark") == "0xca6c\n");
  CHECK(field("peers") == first + "\n" + second + "\n" + third + "\n");
  CHECK(field("preshared-keys") ==
        first + "\t" + kPresharedKey + "\n" + second + "\t(none)\n" + third + "\t(none)\n");
  CHECK(field("endpoints") == first + "\t[abcd:23::33]:51820\n" + second +
                                  "\t182.122.22.19:3233\n" + third + "\t(none)\n");
  CHECK(field("allowed-ips") ==
        first + "\t192.168.4.4/32\n" + second + "\t192.168.4.6/32 ::/0\n" + third + "\t(none)\n");
  CHECK(field("latest-handshakes") ==
        first + "\t0\n" + second + "\t1000000000\n" + third + "\t8000000000\n");
  CHECK(field("transfer") == first + "\t0\t0\n" + second + "\t2224\t38333\n" + third + "\t0\t0\n");
  CHECK(field("persistent-keepalive") ==
        first + "\toff\n" + second + "\t111\n" + third + "\toff\n");
}

TEST_CASE("wg format: dump") {
  const std::string dump =
      "6EtabScXwQA6E7QxVwNT26ypFGzxUMX4V1aA/rpSAno=\twVMuGz01CPx+vDVPpnliDzPyhxSVQuaExnt7DYE2Kyk=\t"
      "12912\t0xca6c\n"
      "uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=\tGIUVCT6VL18i6GXO8wEucvi18LWYrAMJ1drM47cPz1I=\t"
      "[abcd:23::33]:51820\t192.168.4.4/32\t0\t0\t0\toff\n"
      "WEAuaVuhdyscyTCXVfBDJR6nf9zxD75jmJzrfhkyE3Y=\t(none)\t182.122.22.19:3233\t"
      "192.168.4.6/32,::/0\t1000000000\t2224\t38333\t111\n"
      "Zi4U/"
      "VlFVvUiYEcDNANRJYkDtk81VTdj8ZQmqypRXFg=\t(none)\t(none)\t(none)\t8000000000\t0\t0\toff\n";
  CHECK(field("dump") == dump);
}

TEST_CASE("wg format: with `all` each line starts with the interface") {
  CHECK(field("listen-port", true) == "adit0\t12912\n");
  CHECK(field("peers", true) == std::string("adit0\t") + kFirstPeer + "\nadit0\t" + kSecondPeer +
                                    "\nadit0\t" + kThirdPeer + "\n");
  const std::string dump = field("dump", true);
  CHECK(std::count(dump.begin(), dump.end(), '\n') == 4);
  CHECK(dump.starts_with("adit0\t6Etab"));
  CHECK(dump.find("\nadit0\tuFmW") != std::string::npos);
}

TEST_CASE("wg format: an unknown field names the fields there are") {
  const auto text = formatField(viewOf(sampleSnapshot()), "endpoint", false);
  REQUIRE_FALSE(text);
  CHECK(text.error().message.find("endpoints") != std::string::npos);
}

TEST_CASE("wg format: the fields with keys are known") {
  CHECK(fieldShowsKeys("private-key"));
  CHECK(fieldShowsKeys("preshared-keys"));
  CHECK(fieldShowsKeys("dump"));
  CHECK_FALSE(fieldShowsKeys("public-key"));
  CHECK_FALSE(fieldShowsKeys("peers"));
  CHECK_FALSE(fieldShowsKeys("nonsense"));
}

TEST_CASE("wg format: showconf") {
  CHECK(formatConf(viewOf(sampleSnapshot())) ==
        "[Interface]\n"
        "ListenPort = 12912\n"
        "FwMark = 0xca6c\n"
        "PrivateKey = 6EtabScXwQA6E7QxVwNT26ypFGzxUMX4V1aA/rpSAno=\n"
        "\n"
        "[Peer]\n"
        "PublicKey = uFmW/sycfx/G0lcqdu2hHVm80gvo5UOxXOS9hajnWjM=\n"
        "PresharedKey = GIUVCT6VL18i6GXO8wEucvi18LWYrAMJ1drM47cPz1I=\n"
        "AllowedIPs = 192.168.4.4/32\n"
        "Endpoint = [abcd:23::33]:51820\n"
        "\n"
        "[Peer]\n"
        "PublicKey = WEAuaVuhdyscyTCXVfBDJR6nf9zxD75jmJzrfhkyE3Y=\n"
        "AllowedIPs = 192.168.4.6/32, ::/0\n"
        "Endpoint = 182.122.22.19:3233\n"
        "PersistentKeepalive = 111\n"
        "\n"
        "[Peer]\n"
        "PublicKey = Zi4U/VlFVvUiYEcDNANRJYkDtk81VTdj8ZQmqypRXFg=\n");
}

TEST_CASE("wg format: durations") {
  CHECK(formatDuration(seconds(0)).empty());
  CHECK(formatDuration(seconds(-5)).empty());
  CHECK(formatDuration(seconds(1)) == "1 second");
  CHECK(formatDuration(seconds(63)) == "1 minute, 3 seconds");
  CHECK(formatDuration(seconds(3600)) == "1 hour");
  CHECK(formatDuration(seconds(2 * 86400 + 1)) == "2 days, 1 second");
  CHECK(formatDuration(seconds(365 * 86400)) == "1 year");
  CHECK(formatDuration(seconds::max()).starts_with("292471208677 years, "));
}

TEST_CASE("wg format: ages") {
  CHECK(formatAgo(seconds(100), seconds(100)) == "Now");
  CHECK(formatAgo(seconds(163), seconds(100)) == "1 minute, 3 seconds ago");
  CHECK(formatAgo(seconds(99), seconds(100)) ==
        "(System clock wound backward; connection problems may ensue.)");
}

TEST_CASE("wg format: amounts") {
  CHECK(formatBytes(0) == "0 B");
  CHECK(formatBytes(1023) == "1023 B");
  CHECK(formatBytes(1024) == "1.00 KiB");
  CHECK(formatBytes(1258291) == "1.20 MiB");
  CHECK(formatBytes((1 << 20) - 1) == "1024.00 KiB");
  CHECK(formatBytes(1 << 20) == "1.00 MiB");
  CHECK(formatBytes(std::uint64_t{3} << 30) == "3.00 GiB");
  CHECK(formatBytes(std::uint64_t{5} << 40) == "5.00 TiB");
  CHECK(formatBytes(std::numeric_limits<std::uint64_t>::max()) == "16777216.00 TiB");
}
