// Each finding from an observation that has its condition, and none from one that has not.
#include "doctor/diagnose.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace adit::doctor;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// A server whose peer calls it, and a session between them: nothing is wrong.
Observation healthy() {
  Observation seen;
  seen.machine.nic = "eth0";
  seen.machine.nicSpeed = 1'000'000'000;
  seen.machine.nicQueues = 1;
  seen.machine.cpus = {{0, 0.3, 0.1}, {1, 0.2, 0.05}};
  seen.machine.tcp = {"bbr", {"reno", "cubic", "bbr"}, 64 << 20, 64 << 20};
  seen.machine.conntrack = Conntrack{100, 65536, 0};
  seen.machine.softnet = {1'000'000, 0, 3};
  TunnelFacts tunnel;
  tunnel.name = "adit0";
  tunnel.backend = "kernel";
  tunnel.mtu = 1420;
  tunnel.speeds = {1000, 4000};
  PeerFacts peer;
  peer.label = "nas";
  peer.endpoint = "203.0.113.9:51820";
  peer.lastHandshake = 20s;
  peer.received = 5000;
  peer.cipher = "aes-256-gcm";
  peer.speeds = CipherSpeeds{900, 3000};
  peer.path = {.overhead = 80, .routeMtu = 1500};
  tunnel.peers.push_back(peer);
  seen.tunnels.push_back(tunnel);
  return seen;
}

PeerFacts& peerOf(Observation& seen) {
  return seen.tunnels.front().peers.front();
}

/// The only finding.
Finding only(const Observation& seen) {
  const auto findings = diagnose(seen);
  for (const Finding& finding : findings) {
    INFO(finding.id << ": " << finding.sentence);
  }
  REQUIRE(findings.size() == 1);
  CHECK_FALSE(findings.front().sentence.empty());
  CHECK_FALSE(findings.front().evidence.empty());
  CHECK_FALSE(findings.front().remedy.empty());
  return findings.front();
}

Observation silentPeer() {
  Observation seen = healthy();
  PeerFacts& peer = peerOf(seen);
  peer.called = true;
  peer.lastHandshake.reset();
  peer.unanswered = 32s;
  peer.received = 0;
  peer.cipher.clear();
  peer.speeds.reset();
  return seen;
}

Observation userspace(ModuleFacts module) {
  Observation seen = healthy();
  seen.tunnels.front().backend = "userspace";
  seen.tunnels.front().backendReason = "what the daemon says";
  seen.machine.module = module;
  return seen;
}

}  // namespace

TEST_CASE("doctor: a healthy machine has no finding") {
  CHECK(diagnose(healthy()).empty());
  CHECK(isHealthy({}));
  CHECK(diagnose(Observation{}).empty());
}

TEST_CASE("doctor: faults come before what is slow, and advice last; advice is healthy") {
  // The rules look at the firewall last.
  Observation seen = healthy();
  seen.tunnels.front().firewall = {{"chain INPUT drops", "ufw allow"}};
  seen.machine.tcp.congestionControl = "cubic";
  seen.machine.softnet.backlogDrops = 5000;
  const auto findings = diagnose(seen);
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].severity == Severity::Fault);
  CHECK(findings[1].id == "backlog-drops");
  CHECK(findings[2].id == "congestion-control");
  CHECK(findings[2].severity == Severity::Advice);
  CHECK_FALSE(isHealthy(findings));
  CHECK(isHealthy({findings[2]}));
}

TEST_CASE("doctor: handshakes that the daemon can explain") {
  const auto [kind, id, word] = GENERATE(table<std::string, std::string, std::string>(
      {{"foreign-key", "handshake-wrong-key", "PublicKey"},
       {"unknown-key", "handshake-unknown-key", "[Peer]"},
       {"preshared-key", "handshake-preshared-key", "PresharedKey"},
       {"cipher", "handshake-cipher", "Cipher = auto"}}));
  Observation seen = silentPeer();
  // Of no peer: silence has another reason then, and stays a finding of its own.
  const bool ofPeer = kind == "preshared-key" || kind == "cipher";
  seen.tunnels.front().troubles = {{kind, ofPeer ? "nas" : "", "what the daemon says"}};
  if (!ofPeer) peerOf(seen).unanswered.reset();
  const Finding finding = only(seen);
  CHECK(finding.id == id);
  CHECK(finding.severity == Severity::Fault);
  CHECK_THAT(finding.remedy, Contains(word));
  CHECK(finding.evidence == "what the daemon says");
}

TEST_CASE("doctor: a peer that does not answer, by what came back") {
  Observation seen = silentPeer();
  PeerFacts& peer = peerOf(seen);
  SECTION("nothing was tried") {
    CHECK(only(seen).id == "handshake-silent");
    CHECK_THAT(only(seen).remedy, Contains("--probe"));
  }
  SECTION("its host is up") {
    peer.port = PortAnswer::Silent;
    peer.hostAnswers = true;
    CHECK_THAT(only(seen).sentence, Contains("udp/51820 is blocked on the way"));
  }
  SECTION("its host is not") {
    peer.port = PortAnswer::Silent;
    peer.hostAnswers = false;
    CHECK_THAT(only(seen).sentence, Contains("host is off"));
  }
  SECTION("port unreachable") {
    peer.port = PortAnswer::Refused;
    CHECK(only(seen).id == "handshake-port-closed");
  }
  SECTION("prohibited") {
    peer.port = PortAnswer::Prohibited;
    CHECK(only(seen).id == "handshake-port-blocked");
    CHECK_THAT(only(seen).remedy, Contains("udp dport 51820 accept"));
  }
  SECTION("no way") {
    peer.port = PortAnswer::Unreachable;
    CHECK(only(seen).id == "handshake-no-route");
  }
  SECTION("just now") {
    peer.unanswered = 3s;
    CHECK(diagnose(seen).empty());
  }
}

TEST_CASE("doctor: clocks that went back") {
  Observation seen = silentPeer();
  peerOf(seen).called = false;
  peerOf(seen).clockBehind = 4;
  peerOf(seen).clockBehindBy = 3600s;
  CHECK(only(seen).id == "handshake-clock-behind");
  CHECK_THAT(only(seen).remedy, Contains("timedatectl"));
  // It has been well since.
  Observation mended = healthy();
  peerOf(mended).clockBehind = 4;
  CHECK(diagnose(mended).empty());

  Observation own = healthy();
  own.machine.clockBehind = 86400s;
  own.machine.clockEvidence = "/etc/adit/adit0.conf";
  CHECK(only(own).id == "own-clock-behind");
}

TEST_CASE("doctor: a NAT that has forgotten the flow of a peer that calls us") {
  Observation seen = silentPeer();
  PeerFacts& peer = peerOf(seen);
  peer.called = false;
  peer.lastHandshake = 200s;
  CHECK(only(seen).id == "nat-rebinding");
  CHECK_THAT(only(seen).remedy, Contains("PersistentKeepalive = 25") && !Contains("Roam"));
  peer.roams = false;
  CHECK_THAT(only(seen).remedy, Contains("Roam = on"));
}

TEST_CASE("doctor: keepalive on the wrong side, and on none") {
  Observation server = healthy();
  peerOf(server).keepalive = 25;
  CHECK(only(server).id == "keepalive-wrong-side");

  Observation nas = healthy();
  peerOf(nas).called = true;
  peerOf(nas).behindNat = true;
  CHECK(only(nas).id == "keepalive-missing");
  peerOf(nas).keepalive = 25;
  CHECK(diagnose(nas).empty());
}

TEST_CASE("doctor: an endpoint that does not resolve") {
  Observation seen = silentPeer();
  peerOf(seen).endpoint.clear();
  peerOf(seen).unresolved = "vps.example.net:51820";
  CHECK(only(seen).id == "endpoint-unresolved");
  CHECK_THAT(only(seen).remedy, Contains("getent ahosts vps.example.net`"));
}

TEST_CASE("doctor: a path MTU that is smaller than assumed") {
  Observation seen = healthy();
  PathFacts& path = peerOf(seen).path;
  SECTION("the route says so") {
    path.routeMtu = 1492;
    CHECK(only(seen).id == "path-mtu-small");
    CHECK(only(seen).severity == Severity::Slow);
    CHECK_THAT(only(seen).remedy, Contains("MTU = 1412"));
  }
  SECTION("a router says so") {
    path.toldMtu = 1400;
    CHECK(only(seen).id == "path-mtu-small");
    CHECK_THAT(only(seen).remedy, Contains("MTU = 1320"));
  }
  SECTION("nobody says so: a black hole") {
    path.probed = path.smallAnswered = true;
    path.largestAnswered = 1316;
    CHECK(only(seen).id == "path-mtu-black-hole");
    CHECK(only(seen).severity == Severity::Fault);
    CHECK_THAT(only(seen).sentence, Contains("black hole"));
    CHECK_THAT(only(seen).remedy, Contains("MTU = 1316") && !Contains("1280"));
    path.largestAnswered = 1200;
    CHECK_THAT(only(seen).remedy, Contains("needs 1280"));
  }
  SECTION("pings are not answered at all, which says nothing of sizes") {
    path.probed = true;
    CHECK(diagnose(seen).empty());
  }
  SECTION("the full size is answered") {
    path.probed = path.smallAnswered = true;
    path.largestAnswered = 1420;
    CHECK(diagnose(seen).empty());
  }
}

TEST_CASE("doctor: a policer is told from a slow path") {
  Observation seen = healthy();
  RateSample sample{.offered = 50e6, .delivered = 8e6, .loss = 0.84, .idleDelay = 12ms};
  sample.loadedDelay = 13ms;
  sample.lossOutside = 0.0;
  peerOf(seen).sample = sample;
  CHECK(only(seen).id == "udp-policed");
  CHECK_THAT(only(seen).sentence, Contains("8 Mbit/s"));

  SECTION("pings beside the tunnel are lost as well") {
    sample.lossOutside = 0.8;
  }
  SECTION("packets wait before they are lost") {
    sample.loadedDelay = 90ms;
  }
  peerOf(seen).sample = sample;
  const auto expected = sample.lossOutside == 0.0 && sample.loadedDelay == 13ms;
  CHECK(only(seen).id == (expected ? "udp-policed" : "path-slow"));

  peerOf(seen).sample->loss = 0.01;
  CHECK(diagnose(seen).empty());
}

TEST_CASE("doctor: one core full of softirq") {
  Observation seen = healthy();
  seen.machine.cpus = {{0, 0.97, 0.9}, {1, 0.1, 0.0}};
  SECTION("two peers with traffic could be spread") {
    seen.tunnels.front().peers.push_back(peerOf(seen));
    for (PeerFacts& peer : seen.tunnels.front().peers) {
      peer.rate = 50e6;
    }
    CHECK(only(seen).id == "softirq-core");
    CHECK_THAT(only(seen).sentence, Contains("CPU 0"));
  }
  SECTION("one flow cannot: RPS is impossible") {
    peerOf(seen).rate = 500e6;
    seen.machine.nicSteers = true;
    CHECK(only(seen).id == "rps-one-flow");
    CHECK_THAT(only(seen).evidence, Contains("RPS is on at eth0"));
    CHECK_THAT(only(seen).remedy, Contains("inner flows"));
  }
  SECTION("no tunnel is up") {
    seen.tunnels.clear();
    CHECK(only(seen).id == "softirq-core");
  }
  SECTION("it is not softirq that fills it") {
    seen.machine.cpus[0].softirq = 0.2;
    CHECK(diagnose(seen).empty());
  }
  SECTION("no core is left") {
    seen.machine.cpus[1] = {1, 0.95, 0.9};
    peerOf(seen).rate = 500e6;
    CHECK_THAT(only(seen).sentence, Contains("all CPUs"));
  }
}

TEST_CASE("doctor: TCP buffers against bandwidth x delay") {
  Observation seen = healthy();
  peerOf(seen).delay = Measured<std::chrono::microseconds>{80ms, "3 pings"};
  seen.machine.tcp.receiveMaximum = 128 << 10;
  const Finding finding = only(seen);
  CHECK(finding.id == "tcp-buffers");
  CHECK(finding.severity == Severity::Slow);
  // 64 KiB of window every 80 ms.
  CHECK_THAT(finding.sentence, Contains("6.6 Mbit/s of 1 Gbit/s"));
  CHECK_THAT(finding.evidence, Contains("tcp_rmem allows 128 KiB") && Contains("3 pings") &&
                                   Contains("the NIC's speed"));
  CHECK_THAT(finding.remedy, Contains("--bandwidth 1000mbit --delay 80ms"));

  seen.bandwidth = 5'000'000;
  CHECK(diagnose(seen).empty());
  seen.bandwidth.reset();
  seen.machine.tcp.receiveMaximum = 64 << 20;
  CHECK(diagnose(seen).empty());
  // Without a delay nobody knows.
  seen.machine.tcp.receiveMaximum = 4096;
  peerOf(seen).delay.reset();
  CHECK(diagnose(seen).empty());
}

TEST_CASE("doctor: congestion control matters where there is delay or loss") {
  Observation seen = healthy();
  seen.machine.tcp.congestionControl = "cubic";
  CHECK(only(seen).severity == Severity::Advice);
  peerOf(seen).delay = Measured<std::chrono::microseconds>{1ms, "3 pings"};
  CHECK(only(seen).severity == Severity::Advice);
  SECTION("delay") {
    peerOf(seen).delay->value = 40ms;
  }
  SECTION("loss") {
    seen.tunnels.front().tcp = TcpWaits{3, 0, 0, 0.02};
  }
  const bool matters = peerOf(seen).delay->value == 40ms || seen.tunnels.front().tcp;
  const Finding finding = only(seen);
  CHECK(finding.id == "congestion-control");
  CHECK(finding.severity == (matters ? Severity::Slow : Severity::Advice));
  CHECK_THAT(finding.remedy, Contains("adit tune apply"));
}

TEST_CASE("doctor: connections that wait for a window") {
  Observation seen = healthy();
  seen.tunnels.front().tcp = TcpWaits{2, 0.7, 0.1, 0};
  CHECK(only(seen).id == "tcp-window");
  CHECK_THAT(only(seen).evidence, Contains("rwnd_limited"));
  seen.tunnels.front().tcp = TcpWaits{2, 0.1, 0.7, 0};
  CHECK_THAT(only(seen).evidence, Contains("sndbuf_limited"));
  seen.tunnels.front().tcp = TcpWaits{2, 0.1, 0.1, 0};
  CHECK(diagnose(seen).empty());
}

TEST_CASE("doctor: a cipher that one side does not accelerate") {
  Observation seen = healthy();
  PeerFacts& peer = peerOf(seen);
  SECTION("the peer") {
    peer.cipher = "chacha20-poly1305";
    peer.speeds = CipherSpeeds{300, 60};
    CHECK_THAT(only(seen).sentence, Contains("peer nas does not accelerate AES"));
    CHECK(only(seen).id == "cipher-not-accelerated");
  }
  SECTION("we") {
    peer.cipher = "chacha20-poly1305";
    seen.tunnels.front().speeds = {300, 60};
    CHECK_THAT(only(seen).sentence, Contains("this machine does not accelerate AES"));
  }
  SECTION("AES is insisted on all the same") {
    peer.speeds = CipherSpeeds{300, 60};
    CHECK_THAT(only(seen).sentence, Contains("uses aes-256-gcm, which peer nas does not"));
    CHECK_THAT(only(seen).remedy, Contains("Cipher = auto"));
  }
  SECTION("neither side: ChaCha20 is right") {
    peer.cipher = "chacha20-poly1305";
    peer.speeds = CipherSpeeds{300, 60};
    seen.tunnels.front().speeds = {300, 60};
    CHECK(diagnose(seen).empty());
  }
  SECTION("WireGuard does not tell, and has no other cipher") {
    peer.cipher = "chacha20-poly1305";
    peer.speeds.reset();
    CHECK(diagnose(seen).empty());
  }
  SECTION("pinned to the slower one") {
    peer.cipher = seen.tunnels.front().pinnedCipher = "chacha20-poly1305";
    CHECK(only(seen).id == "cipher-pinned");
  }
}

TEST_CASE("doctor: reasons why the module is not there are told apart") {
  const ModuleFacts listed{.listed = true, .kernel = "6.1.0-9-amd64", .headers = true};
  SECTION("not installed") {
    const Finding finding = only(userspace({.kernel = "6.1.0-9-amd64"}));
    CHECK(finding.id == "module-not-installed");
    CHECK(finding.severity == Severity::Advice);
  }
  SECTION("headers are missing") {
    const Finding finding = only(userspace({.kernel = "6.1.0-9-amd64", .source = true}));
    CHECK(finding.id == "module-headers");
    CHECK_THAT(finding.remedy, Contains("linux-headers-6.1.0-9-amd64"));
  }
  SECTION("not built") {
    CHECK(only(userspace({.kernel = "6.1.0-9-amd64", .source = true, .headers = true})).id ==
          "module-not-built");
  }
  SECTION("another kernel's") {
    ModuleFacts module = listed;
    module.vermagic = "6.1.0-7-amd64 SMP preempt mod_unload modversions ";
    CHECK(only(userspace(module)).id == "module-vermagic");
    module.vermagic = "6.1.0-9-amd64 SMP preempt mod_unload modversions ";
    CHECK(only(userspace(module)).id == "module-refused");
  }
  SECTION("Secure Boot") {
    ModuleFacts module = listed;
    module.signaturesWanted = true;
    CHECK(only(userspace(module)).id == "module-secure-boot");
    module.isSigned = true;
    CHECK_THAT(only(userspace(module)).sentence, Contains("does not trust the key"));
  }
  SECTION("no more modules") {
    ModuleFacts module = listed;
    module.disabled = true;
    CHECK(only(userspace(module)).id == "module-disabled");
  }
  SECTION("it is loaded, or nobody wants it") {
    CHECK(diagnose(userspace({.loaded = true, .kernel = "6.1.0-9-amd64"})).empty());
    Observation seen = userspace({.kernel = "6.1.0-9-amd64"});
    seen.tunnels.front().kernelWanted = false;
    CHECK(diagnose(seen).empty());
  }
  SECTION("without a tunnel it is advice") {
    Observation seen = userspace({.kernel = "6.1.0-9-amd64", .source = true});
    seen.tunnels.clear();
    CHECK(only(seen).severity == Severity::Advice);
  }
}

TEST_CASE("doctor: another firewall, by its chain") {
  Observation seen = healthy();
  seen.tunnels.front().firewall = {
      {"chain FORWARD of table ip filter drops packets to mapped ports", "ufw route allow"}};
  seen.tunnels.front().maps = {
      {.listen = "tcp/80", .target = "10.10.0.2:80", .active = true, .leg = "firewall"}};
  const Finding finding = only(seen);
  CHECK(finding.id == "firewall-drops");
  CHECK_THAT(finding.sentence, Contains("chain FORWARD of table ip filter"));
  CHECK(finding.remedy == "`ufw route allow`");
}

TEST_CASE("doctor: the leg of a mapping that fails") {
  const auto [leg, id] = GENERATE(table<std::string, std::string>({
      {"service", "map-service-refused"},
      {"reply path", "map-no-reply-path"},
      {"route", "map-no-route"},
      {"target", "map-target-silent"},
      {"rules", "map-not-loaded"},
  }));
  Observation seen = healthy();
  seen.tunnels.front().maps = {{.listen = "tcp/18080",
                                .target = "10.10.0.2:80",
                                .active = true,
                                .leg = leg,
                                .detail = "10.10.0.2:80 does not"}};
  const Finding finding = only(seen);
  CHECK(finding.id == id);
  CHECK_THAT(finding.sentence, Contains("tcp/18080 to 10.10.0.2:80"));
}

TEST_CASE("doctor: mappings without probes") {
  Observation seen = healthy();
  MapFacts map{.listen = "tcp/18080", .target = "10.10.0.2:80", .active = true};
  SECTION("clients come and get no answer") {
    map.packetsIn = 12;
    seen.tunnels.front().maps = {map};
    CHECK(only(seen).id == "map-no-answer");
    seen.tunnels.front().maps.front().packetsOut = 12;
    CHECK(diagnose(seen).empty());
    map.listen = "udp/514";
    seen.tunnels.front().maps = {map};
    CHECK(diagnose(seen).empty());
  }
  SECTION("it is not active") {
    map.active = false;
    map.reason = "no public interface";
    seen.tunnels.front().maps = {map};
    CHECK(only(seen).evidence == "no public interface");
  }
}

TEST_CASE("doctor: a service of this host that is mapped elsewhere") {
  Observation seen = healthy();
  seen.tunnels.front().services = {{.port = "tcp/80"}};
  CHECK(only(seen).id == "service-not-listening");
  seen.tunnels.front().services = {{.port = "tcp/80", .loopback = "127.0.0.1"}};
  CHECK_THAT(only(seen).sentence, Contains("127.0.0.1 alone"));
  seen.tunnels.front().services = {{.port = "tcp/80", .listening = true}};
  CHECK(diagnose(seen).empty());
}

TEST_CASE("doctor: the connection table is, or was, full") {
  Observation seen = healthy();
  seen.machine.conntrack = Conntrack{65500, 65536, 0};
  CHECK(only(seen).id == "conntrack-full");
  CHECK(only(seen).severity == Severity::Fault);
  CHECK_THAT(only(seen).remedy, Contains("nf_conntrack_max=131072"));
  seen.machine.conntrack = Conntrack{10, 65536, 7};
  CHECK(only(seen).severity == Severity::Slow);
  seen.machine.conntrack.reset();
  CHECK(diagnose(seen).empty());
}

TEST_CASE("doctor: irqbalance against what adit has placed") {
  Observation seen = healthy();
  seen.machine.irqbalance = Irqbalance{77, {}, {}};
  CHECK(diagnose(seen).empty());
  seen.machine.irqbalance = Irqbalance{77, {38, 39}, {}};
  CHECK(only(seen).severity == Severity::Advice);
  seen.machine.irqbalance->moved = {"/proc/irq/38/smp_affinity"};
  CHECK(only(seen).severity == Severity::Slow);
  CHECK_THAT(only(seen).remedy, Contains("--banirq=38 --banirq=39"));
}

TEST_CASE("doctor: what the daemon warns of besides is passed on") {
  Observation seen = healthy();
  seen.tunnels.front().warnings = {"IPv6 is off"};
  CHECK(only(seen).sentence == "adit0: IPv6 is off");
}
