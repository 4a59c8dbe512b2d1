// What was seen of a machine and of its tunnels: figures alone, no judgement. What could not be
// seen, or was not looked at, is absent.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/cpu_sample.hpp"

namespace adit::doctor {

/// A figure and where it is from: "the NIC's speed", "3 pings through the tunnel".
template <typename T>
struct Measured {
  T value{};
  std::string source = {};
};

struct TcpSettings {
  std::string congestionControl = {};
  /// What the kernel lists as available; it may have more that it would load.
  std::vector<std::string> available = {};
  /// Bytes, the third field of tcp_rmem and of tcp_wmem; 0 where it cannot be read.
  std::uint64_t receiveMaximum = 0;
  std::uint64_t sendMaximum = 0;
};

struct Conntrack {
  std::uint64_t count = 0;
  std::uint64_t maximum = 0;
  /// drop and early_drop of /proc/net/stat/nf_conntrack, since boot.
  std::uint64_t drops = 0;
};

/// adit.ko on this machine.
struct ModuleFacts {
  bool loaded = false;
  /// modprobe(8) finds it for the running kernel.
  bool listed = false;
  /// Release of the running kernel.
  std::string kernel = {};
  /// Of the file; empty where it could not be read.
  std::string vermagic = {};
  /// The file ends with a signature.
  bool isSigned = false;
  /// The firmware has Secure Boot on, or the kernel asks for signatures (sig_enforce, lockdown).
  bool signaturesWanted = false;
  /// kernel.modules_disabled = 1
  bool disabled = false;
  /// DKMS has its source.
  bool source = false;
  /// /lib/modules/KERNEL/build leads somewhere.
  bool headers = false;
};

struct Irqbalance {
  unsigned pid = 0;
  /// Interrupts that adit has set and irqbalance's command line does not ban.
  std::vector<unsigned> unbanned = {};
  /// Of these, the files whose value is another by now.
  std::vector<std::string> moved = {};
};

/// Since boot, /proc/net/softnet_stat.
struct Softnet {
  std::uint64_t packets = 0;
  std::uint64_t backlogDrops = 0;
  std::uint64_t squeezes = 0;
};

struct MachineFacts {
  /// Of the default route, or as asked; empty where there is none.
  std::string nic = {};
  /// Bits per second.
  std::optional<std::uint64_t> nicSpeed = {};
  /// Receive queues, and whether any of them has RPS.
  unsigned nicQueues = 0;
  bool nicSteers = false;
  std::vector<CpuShare> cpus = {};
  /// Empty where /proc/sys does not say.
  TcpSettings tcp = {};
  std::optional<Conntrack> conntrack = {};
  std::optional<ModuleFacts> module = {};
  std::optional<Irqbalance> irqbalance = {};
  Softnet softnet = {};
  /// How far the clock is behind what must be past already (a file's time); nothing while it is
  /// not.
  std::optional<std::chrono::seconds> clockBehind = {};
  /// What says so.
  std::string clockEvidence = {};
};

/// An answer to a datagram of ours at the peer's endpoint.
enum class PortAnswer : std::uint8_t {
  NotTried,
  /// Nothing came back, as from a tunnel's port that is open.
  Silent,
  /// ICMP port unreachable.
  Refused,
  /// ICMP says that a filter forbids it.
  Prohibited,
  /// ICMP says that there is no way to the host.
  Unreachable,
};

/// A train of pings of growing rate, and the same beside the tunnel.
struct RateSample {
  /// Bits per second of packets at the rate at which the first were lost, or the highest tried.
  double offered = 0;
  double delivered = 0;
  /// Lost part, 0 to 1.
  double loss = 0;
  std::chrono::microseconds idleDelay{};
  std::chrono::microseconds loadedDelay{};
  /// Lost part of pings to the endpoint's own address at that rate; nothing where it does not
  /// answer pings.
  std::optional<double> lossOutside = {};
};

struct PathFacts {
  /// Address and UDP header, and adit's own, in bytes.
  std::uint32_t overhead = 0;
  /// What the kernel takes for the MTU of the way to the endpoint; 0 where there is no route.
  std::uint32_t routeMtu = 0;
  /// A router on the way has told of a smaller one (ICMP).
  std::optional<std::uint32_t> toldMtu = {};
  /// Pings in the tunnel were tried, of the smallest size and up.
  bool probed = false;
  bool smallAnswered = false;
  /// Bytes of the largest inner packet that was answered.
  std::uint32_t largestAnswered = 0;
};

/// A cipher's speed on one core, megabytes per second.
struct CipherSpeeds {
  std::uint32_t chacha = 0;
  std::uint32_t aes = 0;
};

struct PeerFacts {
  /// Name, or public key.
  std::string label = {};
  /// Where we send to now, "203.0.113.9:51820"; empty for nowhere yet.
  std::string endpoint = {};
  /// The configuration has an Endpoint: we call.
  bool called = false;
  /// HOST:PORT that does not resolve; else empty.
  std::string unresolved = {};
  /// The endpoint is a public address, and our own towards it a private one: a NAT is between.
  bool behindNat = false;
  bool roams = true;
  unsigned keepalive = 0;
  std::optional<std::chrono::seconds> lastHandshake = {};
  std::optional<std::chrono::seconds> unanswered = {};
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  /// Bits per second while it was watched, both ways together.
  double rate = 0;
  /// Handshakes refused because their timestamp went back.
  std::uint64_t clockBehind = 0;
  /// By how much at the last of them; nothing while it is well.
  std::optional<std::chrono::seconds> clockBehindBy = {};
  /// Name of the session's cipher; empty for no session.
  std::string cipher = {};
  std::optional<CipherSpeeds> speeds = {};
  PortAnswer port = PortAnswer::NotTried;
  /// The endpoint's address answers pings.
  std::optional<bool> hostAnswers = {};
  PathFacts path = {};
  /// Round trip in the tunnel.
  std::optional<Measured<std::chrono::microseconds>> delay = {};
  std::optional<RateSample> sample = {};
};

struct HandshakeTrouble {
  /// As control::TroubleSnapshot.
  std::string kind = {};
  std::string peer = {};
  std::string text = {};
};

/// What another firewall drops, and the command that lets it through.
struct FirewallDrop {
  std::string what = {};
  std::string fix = {};
};

struct MapFacts {
  std::string listen = {};
  std::string target = {};
  bool active = false;
  std::string reason = {};
  bool masquerade = false;
  /// What map check found: "service", "reply path", "target", "route"; empty for nothing.
  std::string leg = {};
  std::string detail = {};
  std::uint64_t packetsIn = 0;
  std::uint64_t packetsOut = 0;
};

/// A service of this host that the other end maps.
struct ServiceFacts {
  /// "tcp/80"
  std::string port = {};
  bool listening = false;
  /// Address that it listens on where that is loopback alone; else empty.
  std::string loopback = {};
};

/// Of TCP connections of this host through the tunnel (ss -ti), the sum.
struct TcpWaits {
  std::size_t connections = 0;
  /// Parts of the time in which there was something to send, 0 to 1.
  double byReceiver = 0;
  double bySendBuffer = 0;
  /// Segments sent again, of all.
  double retransmitted = 0;
};

struct TunnelFacts {
  std::string name = {};
  /// "kernel" or "userspace", and why.
  std::string backend = {};
  std::string backendReason = {};
  /// Backend = auto or kernel: the kernel's is wanted.
  bool kernelWanted = true;
  std::uint32_t mtu = 0;
  /// Cipher of the file; empty for auto.
  std::string pinnedCipher = {};
  CipherSpeeds speeds = {};
  /// RPS on the tunnel's own queues.
  bool steers = false;
  std::vector<PeerFacts> peers = {};
  std::vector<HandshakeTrouble> troubles = {};
  std::vector<FirewallDrop> firewall = {};
  std::vector<MapFacts> maps = {};
  std::vector<ServiceFacts> services = {};
  std::optional<TcpWaits> tcp = {};
  /// Of the daemon, without those that are told otherwise here.
  std::vector<std::string> warnings = {};
};

struct Observation {
  MachineFacts machine;
  std::vector<TunnelFacts> tunnels = {};
  /// Bits per second of the path, where a person said so.
  std::optional<std::uint64_t> bandwidth = {};
};

}  // namespace adit::doctor
