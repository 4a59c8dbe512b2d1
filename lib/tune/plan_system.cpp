// Kernel parameters: TCP, queueing, and what drops make necessary.
#include <algorithm>
#include <limits>

#include "tune/plan_builder.hpp"
#include "tune/text.hpp"

namespace adit::tune {
namespace {

constexpr std::string_view kCongestion = "proc/sys/net/ipv4/tcp_congestion_control";
constexpr std::uint64_t kAssumedBandwidth = 1'000'000'000;
constexpr std::chrono::microseconds kAssumedDelay = std::chrono::milliseconds(100);
/// A connection may take this part of the memory where nobody said how much.
constexpr std::uint64_t kMemoryShare = 16;
/// The parameters are of type int.
constexpr std::uint64_t kLargest = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostBacklog = 1 << 18;
/// The kernel's default of netdev_budget.
constexpr std::uint64_t kBudget = 300;

std::string bandwidthText(std::uint64_t bits) {
  return bits % 1'000'000'000 == 0 ? fmt::format("{} Gbit/s", bits / 1'000'000'000)
                                   : fmt::format("{} Mbit/s", bits / 1'000'000);
}

}  // namespace

void PlanBuilder::grow(const std::string& path, std::uint64_t wanted, const std::string& why) {
  const auto shown = read(path);
  if (!shown) return;
  const std::uint64_t before = parseUnsigned(original(path, *shown)).value_or(kLargest);
  if (wanted > before) add(path, fmt::format("{}", std::min(wanted, kLargest)), why);
}

void PlanBuilder::growTcpBuffer(const std::string& path, std::uint64_t bytes,
                                const std::string& why) {
  const auto shown = read(path);
  if (!shown) return;
  const std::string before = original(path, *shown);
  const auto fields = words(before);
  if (fields.size() != 3 || parseUnsigned(fields[2]).value_or(kLargest) >= bytes) return;
  add(path, fmt::format("{}\t{}\t{}", fields[0], fields[1], bytes), why);
}

std::uint64_t PlanBuilder::wantedBuffer(const std::vector<Nic>& nics, std::string& why) const {
  const Setting<std::uint64_t>& buffers = request_.settings.buffers;
  if (buffers.isGiven()) {
    why = "as [Tune] says";
    return std::min(buffers.value, kLargest);
  }
  std::optional<std::uint64_t> speed;
  for (const Nic& nic : nics) {
    if (nic.speed) speed = std::max(speed.value_or(0), *nic.speed);
  }
  const std::uint64_t bandwidth = request_.bandwidth.value_or(speed.value_or(kAssumedBandwidth));
  const auto delay = request_.delay.value_or(kAssumedDelay);
  // Half of a buffer is window, the rest is the kernel's bookkeeping (tcp_adv_win_scale).
  const double product =
      2.0 * static_cast<double>(bandwidth) / 8 * static_cast<double>(delay.count()) / 1e6;
  auto bytes = static_cast<std::uint64_t>(std::min(product, static_cast<double>(kLargest)));
  std::string limit;
  const bool told = request_.bandwidth && request_.delay;
  if (!told && topology_.memory > 0 && bytes > topology_.memory / kMemoryShare) {
    bytes = topology_.memory / kMemoryShare;
    limit = fmt::format(", at most 1/{} of the memory", kMemoryShare);
  }
  bytes = std::min((bytes + kPage - 1) / kPage * kPage, kLargest);
  why = fmt::format("2 x {} ({}) x {} ms ({}){}", bandwidthText(bandwidth),
                    request_.bandwidth ? "given"
                    : speed            ? "the NIC's speed"
                                       : "assumed",
                    static_cast<double>(delay.count()) / 1000, request_.delay ? "given" : "assumed",
                    limit);
  return bytes;
}

void PlanBuilder::planTcp(const std::vector<Nic>& nics) {
  const Setting<std::string>& congestion = request_.settings.congestionControl;
  if (!congestion.isOff()) {
    // Whether the kernel has it shows when it is written: lists and loaded modules mislead.
    const std::string name = congestion.isGiven() ? congestion.value : "bbr";
    add(std::string(kCongestion), name,
        congestion.isGiven() ? "as [Tune] says"
                             : "keeps its rate on paths with loss and long delay");
  }
  if (request_.settings.buffers.isOff()) return;
  std::string why;
  const std::uint64_t bytes = wantedBuffer(nics, why);
  growTcpBuffer("proc/sys/net/ipv4/tcp_rmem", bytes, why);
  growTcpBuffer("proc/sys/net/ipv4/tcp_wmem", bytes, why);
  grow("proc/sys/net/core/rmem_max", bytes, why);
  grow("proc/sys/net/core/wmem_max", bytes, why);
}

void PlanBuilder::planQdisc() {
  const Setting<std::string>& qdisc = request_.settings.qdisc;
  const std::string path = "proc/sys/net/core/default_qdisc";
  if (qdisc.isGiven()) {
    add(path, qdisc.value, "as [Tune] says; for devices that are made from now on");
    for (const std::string& nic : request_.nics) {
      remark(
          fmt::format("default_qdisc is for new devices: {} keeps its own until the next boot, "
                      "or until `tc qdisc replace dev {} root {}`",
                      nic, nic, qdisc.value));
    }
    return;
  }
  const Setting<std::string>& congestion = request_.settings.congestionControl;
  const bool bbr = congestion.isAuto() || (congestion.isGiven() && congestion.value == "bbr");
  constexpr std::pair<unsigned, unsigned> kPacesItself{4, 20};
  if (qdisc.isAuto() && bbr && topology_.kernel != std::pair{0U, 0U} &&
      topology_.kernel < kPacesItself) {
    add(path, "fq", "BBR needs it on kernels before 4.20; for devices that are made from now on");
  }
}

void PlanBuilder::growByDrops(const std::string& path, std::uint64_t drops, std::uint64_t before,
                              const std::string& why) {
  if (const auto entry = record_.entries.find(path);
      entry != record_.entries.end() && drops <= before) {
    add(path, entry->second.now, why);
    return;
  }
  if (drops <= before) return;
  const auto shown = read(path);
  const auto now = shown ? parseUnsigned(*shown) : std::nullopt;
  if (now && *now < kMostBacklog) add(path, fmt::format("{}", *now * 2), why);
}

void PlanBuilder::planBacklog() {
  const Setting<std::uint64_t>& backlog = request_.settings.backlog;
  if (backlog.isOff()) return;
  const std::string path = "proc/sys/net/core/netdev_max_backlog";
  if (backlog.isGiven()) {
    add(path, fmt::format("{}", backlog.value), "as [Tune] says");
    return;
  }
  const Counters& before = record_.counters;
  growByDrops(path, drops_.backlogDrops, before.backlogDrops,
              fmt::format("{} packets dropped since boot, for the queue of a CPU was full "
                          "(/proc/net/softnet_stat, column 2)",
                          drops_.backlogDrops));
  // Now and then a round ends early on every machine; it matters where packets often wait.
  const std::uint64_t squeezes = drops_.squeezes - std::min(before.squeezes, drops_.squeezes);
  const std::uint64_t packets = drops_.packets - std::min(before.packets, drops_.packets);
  const bool often = squeezes > 0 && squeezes * kBudget * 10 >= packets;
  const std::string why = fmt::format(
      "softirq ran out of budget {} times for {} packets (/proc/net/softnet_stat, "
      "column 3)",
      drops_.squeezes, drops_.packets);
  for (const std::string file : {"netdev_budget", "netdev_budget_usecs"}) {
    growByDrops("proc/sys/net/core/" + file, often ? drops_.squeezes : before.squeezes,
                before.squeezes, why);
  }
}

void PlanBuilder::planConntrack() {
  const Setting<std::uint64_t>& conntrack = request_.settings.conntrack;
  if (conntrack.isOff()) return;
  const std::string path = "proc/sys/net/netfilter/nf_conntrack_max";
  if (conntrack.isGiven()) {
    add(path, fmt::format("{}", conntrack.value), "as [Tune] says");
    return;
  }
  if (drops_.conntrackDrops <= record_.counters.conntrackDrops && !isRecorded(path)) return;
  growByDrops(path, drops_.conntrackDrops, record_.counters.conntrackDrops,
              fmt::format("{} connections dropped since boot, for the table was full "
                          "(/proc/net/stat/nf_conntrack, drop and early_drop)",
                          drops_.conntrackDrops));
}

}  // namespace adit::tune
