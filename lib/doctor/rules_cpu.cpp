// CPUs: who does the work, and who could.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

/// A core with this much softirq has no room for more packets.
constexpr double kSaturated = 0.85;
constexpr double kMostlySoftirq = 0.5;
/// Others that could take over.
constexpr double kFree = 0.5;
/// Traffic that makes a steering question worth asking, bits per second.
constexpr double kTraffic = 1e6;
/// One cipher has to be this much faster for it to matter (docs/protocol.md, "The choice").
constexpr double kFaster = 1.25;
constexpr std::string_view kAes = "aes-";

std::size_t activePeers(const std::vector<TunnelFacts>& tunnels) {
  std::size_t count = 0;
  for (const TunnelFacts& tunnel : tunnels) {
    count += static_cast<std::size_t>(std::ranges::count_if(
        tunnel.peers, [](const PeerFacts& peer) { return peer.rate >= kTraffic; }));
  }
  return count;
}

std::string cpuList(const std::vector<CpuShare>& cpus) {
  std::string text;
  for (const CpuShare& cpu : cpus) {
    text += fmt::format("{}CPU {} {} ({} softirq)", text.empty() ? "" : ", ", cpu.cpu,
                        percentText(cpu.busy), percentText(cpu.softirq));
  }
  return text;
}

std::string tuneRemedy(const std::vector<TunnelFacts>& tunnels) {
  return tunnels.empty() ? "`adit tune plan`, then `adit tune apply`"
                         : fmt::format("`adit tune plan {0}`, then `adit tune apply {0}`",
                                       tunnels.front().name);
}

void judgeOneFlow(const Observation& seen, const CpuShare& full, Findings& out) {
  const MachineFacts& machine = seen.machine;
  const bool tunnelSteers =
      std::ranges::any_of(seen.tunnels, [](const TunnelFacts& tunnel) { return tunnel.steers; });
  out.push_back(
      {"rps-one-flow", Severity::Slow,
       fmt::format("one core does all of the tunnel's packets, and RPS on {} cannot change that: "
                   "outside they are one UDP flow",
                   machine.nic),
       fmt::format("CPU {} at {}, {} softirq; one peer with traffic{}", full.cpu,
                   percentText(full.busy), percentText(full.softirq),
                   machine.nicSteers ? fmt::format("; RPS is on at {}", machine.nic) : ""),
       tunnelSteers ? "RPS on the tunnel is on already: more peers, or a faster core"
                    : tuneRemedy(seen.tunnels) +
                          ": RPS on the tunnel's own queues, where the inner flows differ"});
}

void judgeSaturation(const Observation& seen, Findings& out) {
  const MachineFacts& machine = seen.machine;
  const auto full = std::ranges::max_element(machine.cpus, {}, &CpuShare::softirq);
  if (full == machine.cpus.end() || full->busy < kSaturated || full->softirq < kMostlySoftirq) {
    return;
  }
  const bool othersFree =
      std::ranges::any_of(machine.cpus, [](const CpuShare& cpu) { return cpu.busy < kFree; });
  if (othersFree && activePeers(seen.tunnels) == 1) return judgeOneFlow(seen, *full, out);
  out.push_back(
      {"softirq-core", Severity::Slow,
       othersFree ? fmt::format("CPU {} is full with network softirq while others idle", full->cpu)
                  : "all CPUs are full with network softirq",
       cpuList(machine.cpus),
       othersFree ? tuneRemedy(seen.tunnels)
                  : "fewer bytes per CPU second: a larger MTU, offloads (`ethtool -k`), or more "
                    "cores"});
}

std::string speedsText(const CipherSpeeds& speeds) {
  return fmt::format("AES-GCM {} MB/s, ChaCha20-Poly1305 {} MB/s", speeds.aes, speeds.chacha);
}

bool accelerates(const CipherSpeeds& speeds) {
  return speeds.aes >= speeds.chacha * kFaster;
}

bool isKnown(const CipherSpeeds& speeds) {
  return speeds.aes != 0 && speeds.chacha != 0;
}

void judgeSuite(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  const bool aes = peer.cipher.starts_with(kAes);
  const bool here = accelerates(tunnel.speeds);
  const bool there = !peer.speeds || !isKnown(*peer.speeds) || accelerates(*peer.speeds);
  std::string evidence = fmt::format("one core here: {}", speedsText(tunnel.speeds));
  if (peer.speeds) evidence += fmt::format("; there: {}", speedsText(*peer.speeds));
  const std::string who = here ? fmt::format("peer {}", peer.label) : "this machine";
  if (aes && (!here || !there)) {
    out.push_back({"cipher-not-accelerated", Severity::Slow,
                   fmt::format("{}: the session with peer {} uses {}, which {} does not accelerate",
                               tunnel.name, peer.label, peer.cipher, who),
                   std::move(evidence),
                   fmt::format("Cipher = auto on both sides, then `adit reload {}`", tunnel.name)});
    return;
  }
  if (aes || here == there) return;
  out.push_back(
      {"cipher-not-accelerated", Severity::Slow,
       fmt::format("{}: {} does not accelerate AES, so the session with peer {} has to use {}",
                   tunnel.name, who, peer.label, peer.cipher),
       std::move(evidence),
       fmt::format("on {}: `grep -c -w aes /proc/cpuinfo`; a virtual machine needs a CPU type that "
                   "passes it on (host)",
                   who)});
}

}  // namespace

void judgeCpus(const Observation& seen, Findings& out) {
  judgeSaturation(seen, out);
}

void judgeCipher(const TunnelFacts& tunnel, Findings& out) {
  if (!isKnown(tunnel.speeds)) return;
  for (const PeerFacts& peer : tunnel.peers) {
    if (peer.cipher.empty()) continue;
    if (!tunnel.pinnedCipher.empty() && tunnel.pinnedCipher == peer.cipher &&
        !peer.cipher.starts_with(kAes) && accelerates(tunnel.speeds) && peer.speeds &&
        accelerates(*peer.speeds)) {
      out.push_back({"cipher-pinned", Severity::Slow,
                     fmt::format("{}: Cipher = {} is slower here than what both sides could use",
                                 tunnel.name, tunnel.pinnedCipher),
                     fmt::format("one core here: {}; there: {}", speedsText(tunnel.speeds),
                                 speedsText(*peer.speeds)),
                     fmt::format("Cipher = auto, then `adit reload {}`", tunnel.name)});
      continue;
    }
    judgeSuite(tunnel, peer, out);
  }
}

void judgeIrqbalance(const MachineFacts& machine, Findings& out) {
  if (!machine.irqbalance || machine.irqbalance->unbanned.empty()) return;
  const Irqbalance& other = *machine.irqbalance;
  std::string bans;
  for (const unsigned irq : other.unbanned) {
    bans += fmt::format(" --banirq={}", irq);
  }
  const bool fights = !other.moved.empty();
  out.push_back(
      {"irqbalance-fights", fights ? Severity::Slow : Severity::Advice,
       fights ? "irqbalance moves interrupts away from where adit has put them"
              : "irqbalance runs and may move the interrupts that adit has placed",
       fmt::format("process {}; {} of {} interrupts moved{}{}", other.pid, other.moved.size(),
                   other.unbanned.size(), fights ? ": " : "", fights ? other.moved.front() : ""),
       fmt::format("`IRQBALANCE_ARGS=\"{}\"` in /etc/default/irqbalance, then "
                   "`systemctl restart irqbalance`",
                   bans.substr(1))});
}

void judgeBacklog(const MachineFacts& machine, Findings& out) {
  // Below one in a hundred thousand nobody notices.
  constexpr std::uint64_t kRare = 100'000;
  const Softnet& softnet = machine.softnet;
  if (softnet.backlogDrops == 0 || softnet.backlogDrops < softnet.packets / kRare) return;
  out.push_back({"backlog-drops", Severity::Slow,
                 "the kernel drops received packets, for a CPU's queue is full",
                 fmt::format("{} of {} packets since boot (/proc/net/softnet_stat, column 2)",
                             softnet.backlogDrops, softnet.packets),
                 "`adit tune plan` (netdev_max_backlog), then `adit tune apply`"});
}

}  // namespace adit::doctor
