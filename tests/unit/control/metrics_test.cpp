// The page, and the server that nobody may hold up.
#include "control/metrics_page.hpp"
#include "control/metrics_server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "cli_fake_device.hpp"
#include "scratch.hpp"

using namespace adit;
using namespace adit::control;
using namespace adit::control::testing;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

class FakeClock : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return time; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return time; }
  BootTime time = SystemClock().now();
};

UniqueFd clientOf(const Endpoint& endpoint) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  const socklen_t length = endpoint.toSockaddr(address);
  REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  return fd;
}

void say(const UniqueFd& fd, std::string_view text) {
  REQUIRE(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
}

struct Server {
  Server() {
    auto listener = listenForScrapes({Endpoint{IpAddress::parse("127.0.0.1").value(), 0, 0}, ""});
    REQUIRE(listener);
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    REQUIRE(::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    endpoint = Endpoint::fromSockaddr(reinterpret_cast<const sockaddr*>(&address));
    server.emplace(
        loop, clock, std::move(*listener), metrics::Hosts::Loopback,
        [this] {
          ++pages;
          return page;
        },
        MetricsServer::Limits{.connections = 3, .patience = 300ms, .fresh = 200ms});
  }

  /// Runs the loop until `done`, or for so long.
  void pump(const std::function<bool()>& done, std::chrono::milliseconds most = 3000ms) {
    const auto end = std::chrono::steady_clock::now() + most;
    bool over = false;
    EventSource timer;
    timer = loop.timer([&] {
      over = done() || std::chrono::steady_clock::now() > end;
      timer.schedule(SystemClock().now() + 2ms);
    });
    timer.schedule(SystemClock().now());
    loop.pumpUntil(over);
  }

  /// All that comes until the server closes.
  std::string hear(const UniqueFd& fd) {
    std::string text;
    bool closed = false;
    pump([&] {
      std::array<char, 65536> buffer{};
      const ssize_t count = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
      closed = count == 0 || (count < 0 && errno != EAGAIN);
      return closed;
    });
    CHECK(closed);
    return text;
  }

  std::string page = "adit_interface_warnings 0\n";
  int pages = 0;
  EventLoop loop;
  FakeClock clock;
  Endpoint endpoint;
  std::optional<MetricsServer> server;
};

constexpr std::string_view kScrape = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

DeviceSnapshot snapshot() {
  DeviceSnapshot device = richSnapshot();
  device.maps[0].usage = nat::MapUsage{3, 1, 10, 1000, 20, 2000};
  device.peers[1].name = "a \"NAS\"\nadit_forged 1";
  return device;
}

}  // namespace

TEST_CASE("metrics: the page obeys Prometheus' conventions") {
  const std::string text = metricsPage(snapshot());
  static const std::regex help("# HELP (adit_[a-z][a-z0-9_]*) [A-Z].*\\.");
  static const std::regex type("# TYPE (adit_[a-z0-9_]+) (counter|gauge)");
  static const std::regex sample(
      "(adit_[a-z0-9_]+)\\{([a-z_]+=\"(?:[^\"\\\\\n]|\\\\[\\\\\"n])*\",?)+\\} [0-9.e+-]+");
  std::istringstream lines(text);
  std::set<std::string> seen;
  std::set<std::string> samples;
  std::string name;
  std::string kind;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      name = match[1];
      CHECK(seen.insert(name).second);
    } else if (std::regex_match(line, match, type)) {
      CHECK(match[1] == name);
      kind = match[2];
      CHECK(name.ends_with("_total") == (kind == "counter"));
    } else {
      REQUIRE(std::regex_match(line, match, sample));
      CHECK(match[1] == name);
      // Name and labels of a sample are unique.
      CHECK(samples.insert(line.substr(0, line.rfind(' '))).second);
    }
  }
  CHECK(seen.size() >= 15);
}

TEST_CASE("metrics: what the page says, and what it never says") {
  const DeviceSnapshot device = snapshot();
  const std::string text = metricsPage(device);
  const std::string key = device.peers[1].publicKey.toBase64();
  CHECK_THAT(text, Contains("adit_peer_receive_bytes_total{interface=\"" + device.name +
                            "\",public_key=\"" + key));
  CHECK_THAT(text, Contains("adit_peer_handshakes_total{") && Contains("} 7\n"));
  CHECK_THAT(text, Contains("adit_peer_unanswered_seconds{") && Contains("} 12\n"));
  CHECK_THAT(text, Contains("listen=\"tcp/18080\",target=\"nas:80\"} 2000\n"));
  CHECK_THAT(text, Contains("adit_map_active{interface=\"" + device.name +
                            "\",listen=\"udp/5000-5009\",target=\"10.10.0.2:5000\"} 0\n"));
  CHECK_THAT(text, Contains("cipher=\"aes-256-gcm\"} 3400000000\n"));
  CHECK_THAT(text, Contains("reason=\"replay\"} 9\n"));
  CHECK_THAT(text, !Contains("\nadit_forged"));
  CHECK_THAT(text, !Contains(device.privateKey->toBase64()));
  for (const PeerSnapshot& peer : device.peers) {
    if (!peer.presharedKey.isZero()) {
      CHECK_THAT(text, !Contains(crypto::presharedKeyToBase64(peer.presharedKey)));
    }
    if (peer.endpoint) CHECK_THAT(text, !Contains(peer.endpoint->address.toString()));
  }
}

TEST_CASE("metrics server: a scrape, in pieces too, and the end") {
  Server server;
  const UniqueFd whole = clientOf(server.endpoint);
  say(whole, kScrape);
  CHECK_THAT(server.hear(whole), Contains("200 OK") && Contains(server.page));
  const UniqueFd pieces = clientOf(server.endpoint);
  for (const char c : kScrape) {
    say(pieces, std::string_view(&c, 1));
    server.pump([] { return true; });
  }
  CHECK_THAT(server.hear(pieces), Contains("200 OK"));
  CHECK(server.server->connections() == 0);
  // Within 200 ms the page is made once.
  CHECK(server.pages == 1);
  server.clock.time += 250ms;
  const UniqueFd later = clientOf(server.endpoint);
  say(later, kScrape);
  server.hear(later);
  CHECK(server.pages == 2);
}

TEST_CASE("metrics server: who says nothing, or never stops, is cut off") {
  Server server;
  const UniqueFd silent = clientOf(server.endpoint);
  server.pump([&] { return server.server->connections() == 1; });
  const UniqueFd endless = clientOf(server.endpoint);
  say(endless, std::string(metrics::kMaxHead + 1, 'a'));
  CHECK_THAT(server.hear(endless), Contains(" 431 "));
  server.clock.time += 400ms;
  server.pump([&] { return server.server->connections() == 0; });
  CHECK(server.server->connections() == 0);
  CHECK(server.hear(silent).empty());
}

TEST_CASE("metrics server: many that hold on do not keep a scraper out") {
  Server server;
  std::vector<UniqueFd> holders;
  for (int i = 0; i < 20; ++i) {
    holders.push_back(clientOf(server.endpoint));
    server.pump([] { return true; });
  }
  server.pump([&] { return server.server->connections() == 3; });
  CHECK(server.server->connections() == 3);
  const UniqueFd scraper = clientOf(server.endpoint);
  say(scraper, kScrape);
  CHECK_THAT(server.hear(scraper), Contains("200 OK"));
}

TEST_CASE("metrics server: who does not read blocks nobody") {
  Server server;
  server.page = std::string(16 << 20, 'x');
  const UniqueFd lazy = clientOf(server.endpoint);
  say(lazy, kScrape);
  server.pump([&] { return server.pages == 1; });
  server.page = "short";
  server.clock.time += 250ms;
  const UniqueFd scraper = clientOf(server.endpoint);
  say(scraper, kScrape);
  CHECK_THAT(server.hear(scraper), Contains("short"));
  CHECK(server.server->connections() == 1);
  server.clock.time += 400ms;
  server.pump([&] { return server.server->connections() == 0; });
  CHECK(server.server->connections() == 0);
}

TEST_CASE("metrics server: a unix socket for everybody who may enter its folder") {
  const std::filesystem::path folder = adit::testing::makeScratch("adit-metrics");
  const std::string path = (folder / "adit0.metrics").string();
  const config::MetricsAddress address{{}, path};
  const auto listener = listenForScrapes(address);
  REQUIRE(listener);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0666);
  CHECK_FALSE(listenForScrapes(address));
  CHECK(address.toString() == "unix:" + path);
  std::filesystem::remove_all(folder);
}
