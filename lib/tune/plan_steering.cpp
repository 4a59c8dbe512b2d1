// Which CPU takes which packets: interrupts, RPS, RFS and XPS (Documentation/networking/
// scaling.rst).
#include <algorithm>
#include <bit>
#include <map>

#include "tune/plan_builder.hpp"
#include "tune/text.hpp"

namespace adit::tune {
namespace {

/// Flows that are remembered: the kernel's documentation calls it right for moderate load.
constexpr std::uint64_t kFlowEntries = 32768;
/// The kernel refuses more (rps_sock_flow_sysctl()).
constexpr std::uint64_t kMostFlowEntries = std::uint64_t{1} << 29;

std::string queueFile(const Nic& nic, std::string_view direction, unsigned queue,
                      std::string_view file) {
  return fmt::format("sys/class/net/{}/queues/{}-{}/{}", nic.name, direction, queue, file);
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Each queue's place among those that have interrupts: numbers may have holes.
std::map<unsigned, std::size_t> ranksOf(const std::vector<NicIrq>& irqs) {
  std::map<unsigned, std::size_t> ranks;
  for (const NicIrq& irq : irqs) {
    ranks.emplace(irq.queue, 0);
  }
  std::size_t next = 0;
  for (auto& [queue, rank] : ranks) {
    rank = next++;
  }
  return ranks;
}

std::string listOf(unsigned cpu) {
  return CpuSet{cpu}.toList();
}

}  // namespace

bool PlanBuilder::concerns(const Setting<Cpus>& setting, const std::string& name) {
  return !setting.isOff() && (setting.value.interface.empty() || setting.value.interface == name);
}

void PlanBuilder::planChannels(const Nic& nic) {
  if (!concerns(request_.settings.irq, nic.name) || nic.irqs.empty()) return;
  const auto channels = machine_.nics.channels(nic.name);
  if (!channels) return;
  const std::string path = channelsPath(nic.name);
  const std::string current = fmt::format("{}", channels->combined);
  if (const auto entry = record_.entries.find(path); entry != record_.entries.end()) {
    // Asked for once. Whoever changes it after that has a reason, and the NIC a reset less.
    const std::string& now = entry->second.now;
    plan_.items.push_back({path, Form::Channels, now, now, "", {}});
    return;
  }
  const auto near = static_cast<unsigned>(topology_.near(nic).size());
  const unsigned wanted = std::min(channels->maximum, near);
  if (channels->combined >= wanted) return;
  plan_.items.push_back({path,
                         Form::Channels,
                         current,
                         fmt::format("{}", wanted),
                         fmt::format("the driver offers {}, and {} are near to the NIC",
                                     plural(channels->maximum, "queue"), plural(near, "CPU")),
                         {}});
  remark(
      fmt::format("{} is reset while its number of queues changes; what follows for it is "
                  "planned for {} and computed anew after that",
                  nic.name, plural(channels->combined, "queue")));
}

bool PlanBuilder::irqsAreOurs(const Nic& nic) {
  const auto balancer = findIrqbalance(machine_.files);
  if (!balancer) return true;
  std::string options;
  for (const NicIrq& irq : nic.irqs) {
    if (std::ranges::find(balancer->banned, irq.number) == balancer->banned.end()) {
      options += fmt::format("{}--banirq={}", options.empty() ? "" : " ", irq.number);
    }
  }
  if (options.empty()) return true;
  remark(
      fmt::format("irqbalance (process {}) moves the interrupts of {} at its own discretion, so "
                  "they are left to it: stop it with `systemctl disable --now irqbalance`, or "
                  "add to IRQBALANCE_ARGS in /etc/default/irqbalance and restart it: {}",
                  balancer->pid, nic.name, options));
  return false;
}

CpuSet PlanBuilder::currentIrqCpus(const Nic& nic) const {
  CpuSet cpus;
  for (const NicIrq& irq : nic.irqs) {
    const std::string folder = fmt::format("proc/irq/{}/", irq.number);
    auto text = machine_.files.read(folder + "effective_affinity_list");
    if (!text || trimmed(*text).empty()) text = machine_.files.read(folder + "smp_affinity_list");
    const auto here = text ? CpuSet::fromList(*text) : Result<CpuSet>();
    // One that may come anywhere keeps no CPU from helping.
    if (here && here->size() == 1) cpus = cpus | *here;
  }
  return cpus & topology_.online;
}

CpuSet PlanBuilder::planIrqs(const Nic& nic, const CpuSet& cpus) {
  if (cpus.empty() || nic.irqs.empty() || !concerns(request_.settings.irq, nic.name) ||
      !irqsAreOurs(nic)) {
    return currentIrqCpus(nic);
  }
  const std::vector<unsigned> order = cpus.members();
  const auto ranks = ranksOf(nic.irqs);
  CpuSet used;
  for (const NicIrq& irq : nic.irqs) {
    const std::size_t place = ranks.at(irq.queue) % order.size();
    std::vector<std::string> others;
    for (std::size_t i = 1; i < order.size(); ++i) {
      others.push_back(listOf(order[(place + i) % order.size()]));
    }
    used.add(order[place]);
    add(irqPath(irq.number), listOf(order[place]),
        fmt::format("{}: queue {} of {}, one CPU each{}", irq.name, irq.queue, nic.name,
                    nic.node && topology_.nodes.contains(*nic.node) && topology_.nodes.size() > 1
                        ? fmt::format(", on memory node {}", *nic.node)
                        : ""),
        std::move(others));
  }
  return used;
}

void PlanBuilder::planRps(const Nic& nic, const CpuSet& cpus, const CpuSet& irqCpus) {
  const Setting<Cpus>& rps = request_.settings.rps;
  if (!concerns(rps, nic.name)) return;
  CpuSet wanted;
  std::string why;
  if (rps.isGiven()) {
    wanted = given(rps, "Rps");
    why = "as [Tune] says";
  } else if (nic.irqs.empty()) {
    if (cpus.size() > 1) wanted = cpus;
    why = fmt::format("{} has no interrupts of its own: its flows are spread over {}", nic.name,
                      plural(cpus.size(), "CPU"));
  } else if (nic.irqQueues() >= cpus.size()) {
    why = fmt::format("{} for {}: the NIC spreads flows itself", plural(nic.irqQueues(), "queue"),
                      plural(cpus.size(), "CPU"));
  } else {
    wanted = cpus - irqCpus;
    why = fmt::format("{} for {}: the CPUs that take no interrupt of {} help",
                      plural(nic.irqQueues(), "queue"), plural(cpus.size(), "CPU"), nic.name);
  }
  for (const unsigned queue : nic.rxQueues) {
    addMask(queueFile(nic, "rx", queue, "rps_cpus"), wanted, why);
  }
}

void PlanBuilder::planXps(const Nic& nic, const CpuSet& cpus) {
  const Setting<Cpus>& xps = request_.settings.xps;
  // The kernel has no XPS for a single queue (ENOENT).
  if (!concerns(xps, nic.name) || nic.txQueues.size() < 2) return;
  const CpuSet chosen = xps.isGiven() ? given(xps, "Xps") : cpus;
  if (chosen.empty()) return;
  std::vector<unsigned> order = chosen.members();
  if (xps.isAuto()) {
    // Those of other nodes send too.
    for (const unsigned cpu : (topology_.online - chosen).members()) {
      order.push_back(cpu);
    }
  }
  const std::size_t queues = nic.txQueues.size();
  std::vector<CpuSet> masks(queues);
  for (std::size_t i = 0; i < std::max(queues, order.size()); ++i) {
    masks[i % queues].add(order[i % order.size()]);
  }
  const std::string why = nic.irqs.empty()
                              ? fmt::format("each CPU sends by one queue of {}", nic.name)
                              : "each CPU sends by the queue whose interrupt it takes";
  for (std::size_t i = 0; i < queues; ++i) {
    addMask(queueFile(nic, "tx", nic.txQueues[i], "xps_cpus"), masks[i],
            xps.isGiven() ? "as [Tune] says" : why);
  }
}

void PlanBuilder::planNic(const Nic& nic) {
  const Setting<Cpus>& irq = request_.settings.irq;
  const CpuSet near = topology_.near(nic);
  const bool givenHere = irq.isGiven() && concerns(irq, nic.name);
  const CpuSet irqCpus = planIrqs(nic, givenHere ? given(irq, "Irq") : near);
  planRps(nic, near, irqCpus);
  planXps(nic, near);
  const Setting<Cpus>& rps = request_.settings.rps;
  if (!concerns(rps, nic.name) || request_.tunnels.empty()) return;
  const std::string tunnel = request_.tunnels.front();
  remark(
      fmt::format("the packets of one peer are one flow outside the tunnel: they stay on one "
                  "queue and one CPU of {}, whatever RPS says. The flows inside are spread by "
                  "RPS on {}{}",
                  nic.name, tunnel, concerns(rps, tunnel) ? "" : ", which Rps = auto would set"));
}

void PlanBuilder::planTunnel(const Nic& tunnel) {
  planRps(tunnel, topology_.online, {});
}

void PlanBuilder::planFlowTable(const std::vector<Nic>& nics) {
  const Setting<std::uint64_t>& rfs = request_.settings.rfs;
  if (rfs.isOff() || topology_.online.size() < 2 || nics.empty()) return;
  const std::string path = "proc/sys/net/core/rps_sock_flow_entries";
  const auto shown = read(path);
  if (!shown) return;
  const std::uint64_t before = parseUnsigned(original(path, *shown)).value_or(0);
  const std::uint64_t asked =
      std::bit_ceil(std::min(rfs.isGiven() ? rfs.value : kFlowEntries, kMostFlowEntries));
  const std::uint64_t entries = rfs.isGiven() ? asked : std::max(asked, before);
  add(path, fmt::format("{}", entries), "RFS: a flow goes to the CPU of the program that reads it");
  for (const Nic& nic : nics) {
    if (nic.rxQueues.empty()) continue;
    const std::uint64_t each = std::bit_floor(entries / nic.rxQueues.size());
    for (const unsigned queue : nic.rxQueues) {
      add(queueFile(nic, "rx", queue, "rps_flow_cnt"), fmt::format("{}", each),
          fmt::format("RFS: {} entries over {} of {}", entries,
                      plural(nic.rxQueues.size(), "queue"), nic.name));
    }
  }
}

}  // namespace adit::tune
