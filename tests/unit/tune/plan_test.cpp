#include <catch2/catch.hpp>

#include "recorded_machine.hpp"

using namespace adit;
using namespace adit::tune;
using namespace adit::tune::testing;

namespace {

std::string rps(const std::string& nic, unsigned queue = 0) {
  return fmt::format("sys/class/net/{}/queues/rx-{}/rps_cpus", nic, queue);
}
std::string flows(const std::string& nic, unsigned queue = 0) {
  return fmt::format("sys/class/net/{}/queues/rx-{}/rps_flow_cnt", nic, queue);
}
std::string xps(const std::string& nic, unsigned queue) {
  return fmt::format("sys/class/net/{}/queues/tx-{}/xps_cpus", nic, queue);
}
std::string irq(unsigned number) {
  return fmt::format("proc/irq/{}/smp_affinity_list", number);
}
std::string wanted(const Plan& plan, const std::string& path) {
  const auto item = itemOf(plan, path);
  return item ? item->wanted : "(not planned)";
}

constexpr const char* kNone = "(not planned)";
constexpr const char* kFlowTable = "proc/sys/net/core/rps_sock_flow_entries";
constexpr const char* kCongestion = "proc/sys/net/ipv4/tcp_congestion_control";
constexpr const char* kQdisc = "proc/sys/net/core/default_qdisc";
constexpr const char* kBacklog = "proc/sys/net/core/netdev_max_backlog";
constexpr const char* kBudget = "proc/sys/net/core/netdev_budget";
constexpr const char* kConntrack = "proc/sys/net/netfilter/nf_conntrack_max";
constexpr const char* kReceive = "proc/sys/net/ipv4/tcp_rmem";

template <typename T>
void turnOff(Setting<T>& setting) {
  setting.mode = Setting<T>::Mode::Off;
}

/// Everything but what `change` sets is left alone.
Settings only(const std::function<void(Settings&)>& change) {
  Settings settings;
  turnOff(settings.rps);
  turnOff(settings.xps);
  turnOff(settings.irq);
  turnOff(settings.rfs);
  turnOff(settings.congestionControl);
  turnOff(settings.buffers);
  turnOff(settings.qdisc);
  turnOff(settings.conntrack);
  turnOff(settings.backlog);
  change(settings);
  return settings;
}

template <typename T>
void give(Setting<T>& setting, T value) {
  setting.mode = Setting<T>::Mode::Given;
  setting.value = std::move(value);
}

}  // namespace

TEST_CASE("a virtio machine with one queue: its interrupts on one CPU, RPS on the other") {
  RecordedMachine machine = oneQueueVm();
  const Plan plan = machine.plan("eth0");
  CHECK(wanted(plan, irq(38)) == "0");
  CHECK(wanted(plan, irq(39)) == "0");
  CHECK(wanted(plan, irq(37)) == kNone);
  CHECK(wanted(plan, irq(34)) == kNone);
  CHECK(wanted(plan, rps("eth0")) == "00000002");
  CHECK(wanted(plan, rps("adit0")) == "00000003");
  CHECK(wanted(plan, kFlowTable) == "32768");
  CHECK(wanted(plan, flows("eth0")) == "32768");
  CHECK(wanted(plan, xps("eth0", 0)) == kNone);
  CHECK(wanted(plan, kCongestion) == "bbr");
  for (const Item& item : plan.items) {
    INFO(item.path);
    CHECK_FALSE(item.why.empty());
    CHECK(item.changes());
  }
  CHECK(machine.writes.empty());
}

TEST_CASE("a NAS with as many queues as CPUs: an interrupt for each, no RPS on the NIC") {
  RecordedMachine machine = celeronNas();
  machine.set(rps("enp3s0", 0), "3");
  const Plan plan = machine.plan("enp3s0");
  CHECK(wanted(plan, irq(127)) == "0");
  CHECK(wanted(plan, irq(128)) == "1");
  CHECK(wanted(plan, irq(126)) == kNone);
  CHECK(wanted(plan, rps("enp3s0", 0)) == "00000000");
  CHECK(wanted(plan, rps("enp3s0", 1)) == kNone);
  CHECK(wanted(plan, rps("adit0")) == "00000003");
  CHECK(wanted(plan, xps("enp3s0", 0)) == "00000001");
  CHECK(wanted(plan, xps("enp3s0", 1)) == "00000002");
  CHECK(wanted(plan, flows("enp3s0", 1)) == "16384");
}

TEST_CASE("sixteen cores and eight queues: the other eight help") {
  RecordedMachine machine = sixteenCores();
  const Plan plan = machine.plan("eth0");
  for (unsigned queue = 0; queue < 8; ++queue) {
    CHECK(wanted(plan, irq(61 + queue)) == fmt::format("{}", queue));
    CHECK(wanted(plan, rps("eth0", queue)) == "0000ff00");
    CHECK(wanted(plan, flows("eth0", queue)) == "4096");
    CHECK(wanted(plan, xps("eth0", queue)) == fmt::format("{:08x}", 0x101U << queue));
  }
  for (const unsigned other : {60U, 69U, 80U, 81U}) {
    CHECK(wanted(plan, irq(other)) == kNone);
  }
}

TEST_CASE("128 CPUs on two nodes: interrupts and helpers on the NIC's node") {
  RecordedMachine machine = twoNodes();
  const Plan plan = machine.plan("ens1");
  // The node's CPUs are 32-63 and 96-127; 63 queues leave the last one.
  CHECK(wanted(plan, irq(200)) == kNone);
  CHECK(wanted(plan, irq(201)) == "32");
  CHECK(wanted(plan, irq(232)) == "63");
  CHECK(wanted(plan, irq(233)) == "96");
  CHECK(wanted(plan, irq(263)) == "126");
  CHECK(wanted(plan, irq(300)) == kNone);
  CHECK(wanted(plan, rps("ens1", 62)) == "80000000,00000000,00000000,00000000");
  CpuSet senders;
  for (unsigned queue = 0; queue < 63; ++queue) {
    const CpuSet here = CpuSet::fromMask(wanted(plan, xps("ens1", queue))).value();
    CHECK(CpuSet::fromList(wanted(plan, irq(201 + queue)))->isSubsetOf(here));
    CHECK((senders & here).empty());
    senders = senders | here;
  }
  CHECK(senders.size() == 128);
}

TEST_CASE("holes in the CPU numbers: only CPUs that are online") {
  RecordedMachine machine = sixteenCores();
  machine.setOnline("0,3-4,9");
  const Plan plan = machine.plan("eth0");
  CHECK(wanted(plan, irq(61)) == "0");
  CHECK(wanted(plan, irq(62)) == "3");
  CHECK(wanted(plan, irq(63)) == "4");
  CHECK(wanted(plan, irq(64)) == "9");
  CHECK(wanted(plan, irq(65)) == "0");
  CHECK(wanted(plan, rps("adit0")) == "00000219");
  for (const Item& item : plan.items) {
    if (item.form == Form::Mask) {
      INFO(item.path << " " << item.wanted);
      CHECK(CpuSet::fromMask(item.wanted)->isSubsetOf(CpuSet{0, 3, 4, 9}));
    }
  }
}

TEST_CASE("an ARM board: two vectors of one queue go to one CPU") {
  RecordedMachine machine = armBoard();
  const Plan plan = machine.plan("end0");
  CHECK(wanted(plan, irq(46)) == "0");
  CHECK(wanted(plan, irq(47)) == "0");
  CHECK(wanted(plan, irq(44)) == kNone);
  CHECK(wanted(plan, rps("end0")) == "0000000e");
}

TEST_CASE("one CPU: nothing to spread") {
  RecordedMachine machine(1, "0");
  machine.addNic({.name = "eth0", .pci = "pci0000:00/0000:00:03.0", .irqs = {{24, "eth0"}}});
  machine.addNic({.name = "adit0", .pci = ""});
  const Plan plan = machine.plan("eth0", only([](Settings& settings) {
                                   settings.rps.mode = Setting<Cpus>::Mode::Auto;
                                   settings.irq.mode = Setting<Cpus>::Mode::Auto;
                                   settings.xps.mode = Setting<Cpus>::Mode::Auto;
                                   settings.rfs.mode = Setting<std::uint64_t>::Mode::Auto;
                                 }));
  CHECK(plan.items.empty());
}

TEST_CASE("more queues are asked for, up to the CPUs that are near") {
  RecordedMachine machine = sixteenCores();
  machine.channelsOf["eth0"] = {8, 64};
  const Plan plan = machine.plan("eth0");
  CHECK(wanted(plan, channelsPath("eth0")) == "16");
  CHECK(remarked(plan, "eth0 is reset"));
  machine.channelsOf["eth0"] = {8, 8};
  CHECK(wanted(machine.plan("eth0"), channelsPath("eth0")) == kNone);
  // What somebody changed after us stays.
  Record record;
  record.entries[channelsPath("eth0")] = {"8", "16"};
  machine.channelsOf["eth0"] = {4, 64};
  const auto item = itemOf(machine.plan("eth0", {}, record), channelsPath("eth0"));
  REQUIRE(item);
  CHECK_FALSE(item->changes());
}

TEST_CASE("given CPUs: those that are online, for the interface that is named") {
  RecordedMachine machine = sixteenCores();
  Settings settings = only([](Settings& change) {
    give(change.rps, Cpus{"eth0", "2-3,40"});
    give(change.irq, Cpus{"", "4,5"});
  });
  Plan plan = machine.plan("eth0", settings);
  CHECK(wanted(plan, rps("eth0", 7)) == "0000000c");
  CHECK(wanted(plan, rps("adit0")) == kNone);
  CHECK(wanted(plan, irq(61)) == "4");
  CHECK(wanted(plan, irq(62)) == "5");
  CHECK(wanted(plan, irq(63)) == "4");
  CHECK(remarked(plan, "Rps names CPU 40, which is not online"));
  settings.rps.value = {"", "all"};
  plan = machine.plan("eth0", settings);
  CHECK(wanted(plan, rps("eth0", 0)) == "0000ffff");
  CHECK(wanted(plan, rps("adit0")) == "0000ffff");
}

TEST_CASE("case 65: RPS on the NIC is applied as asked, and what it cannot do is said") {
  RecordedMachine machine = oneQueueVm();
  const Plan plan = machine.plan("eth0", only([](Settings& settings) {
                                   give(settings.rps, Cpus{"eth0", "all"});
                                 }));
  CHECK(wanted(plan, rps("eth0")) == "00000003");
  CHECK(remarked(plan, "the packets of one peer are one flow outside the tunnel"));
  CHECK(remarked(plan, "RPS on adit0, which Rps = auto would set"));
  CHECK(wanted(machine.plan("eth0"), rps("adit0")) == "00000003");
}

TEST_CASE("case 62: a running irqbalance keeps its interrupts unless it bans exactly ours") {
  RecordedMachine machine = celeronNas();
  machine.set("proc/812/comm", "irqbalance");
  machine.set("proc/812/cmdline", std::string("/usr/sbin/irqbalance\0--foreground\0", 35));
  Plan plan = machine.plan("enp3s0");
  CHECK(wanted(plan, irq(127)) == kNone);
  CHECK(remarked(plan, "irqbalance (process 812)"));
  CHECK(remarked(plan, "--banirq=127 --banirq=128"));
  machine.set("proc/812/cmdline", std::string("/usr/sbin/irqbalance\0--banirq=127\0-i\0"
                                              "128\0",
                                              41));
  plan = machine.plan("enp3s0");
  CHECK(wanted(plan, irq(127)) == "0");
  CHECK_FALSE(remarked(plan, "irqbalance"));
  machine.set("proc/812/cmdline", std::string("/usr/sbin/irqbalance\0--banirq=127\0", 34));
  CHECK(remarked(machine.plan("enp3s0"), "restart it: --banirq=128"));
}

TEST_CASE("case 66: the kernel's list of congestion controls is not asked") {
  RecordedMachine machine = oneQueueVm();
  machine.set("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic");
  CHECK(wanted(machine.plan("eth0"), kCongestion) == "bbr");
  machine.remove(kCongestion);
  const Plan plan = machine.plan("eth0");
  CHECK(wanted(plan, kCongestion) == kNone);
  CHECK(remarked(plan, "does not have /proc/sys/net/ipv4/tcp_congestion_control"));
}

TEST_CASE("case 68: default_qdisc is for new devices, and needed by BBR on old kernels only") {
  RecordedMachine machine = oneQueueVm();
  CHECK(wanted(machine.plan("eth0"), kQdisc) == kNone);
  machine.set("proc/sys/kernel/osrelease", "4.14.221");
  CHECK(wanted(machine.plan("eth0"), kQdisc) == "fq");
  machine.set("proc/sys/kernel/osrelease", "4.20.0");
  CHECK(wanted(machine.plan("eth0"), kQdisc) == kNone);
  const Plan plan = machine.plan(
      "eth0", only([](Settings& settings) { give(settings.qdisc, std::string("fq")); }));
  CHECK(wanted(plan, kQdisc) == "fq");
  CHECK(plan.items.size() == 1);
  CHECK(remarked(plan, "eth0 keeps its own until the next boot"));
}

TEST_CASE("buffers: twice bandwidth x delay, never less than there is") {
  RecordedMachine machine = celeronNas();
  // 1 Gbit/s x 100 ms: 12.5 MB, doubled, in whole pages.
  CHECK(wanted(machine.plan("enp3s0"), kReceive) == "4096\t131072\t25001984");
  CHECK(wanted(machine.plan("enp3s0"), "proc/sys/net/core/wmem_max") == "25001984");
  Request request;
  request.nics = {"enp3s0"};
  request.bandwidth = 10'000'000'000;
  request.delay = std::chrono::milliseconds(50);
  const Plan given = makePlan(machine.machine(), request, {}).value();
  CHECK(wanted(given, kReceive) == "4096\t131072\t125001728");
  CHECK_THAT(itemOf(given, kReceive)->why, Catch::Contains("10 Gbit/s (given) x 50 ms (given)"));
  // 25 Gbit/s from the driver: at most a sixteenth of the memory where nobody said so.
  machine.set("sys/class/net/enp3s0/speed", "25000");
  CHECK(wanted(machine.plan("enp3s0"), kReceive) == "4096\t131072\t250945536");
  machine.set(kReceive, "4096\t131072\t999999999");
  CHECK(wanted(machine.plan("enp3s0"), kReceive) == kNone);
  const Plan small = machine.plan(
      "enp3s0", only([](Settings& settings) { give(settings.buffers, std::uint64_t{65536}); }));
  CHECK(small.items.empty());
}

TEST_CASE("backlog, budget and connections: only when counters show drops, and which") {
  RecordedMachine machine = oneQueueVm();
  Plan plan = machine.plan("eth0");
  CHECK(wanted(plan, kBacklog) == kNone);
  CHECK(wanted(plan, kBudget) == kNone);
  CHECK(wanted(plan, kConntrack) == kNone);

  machine.set("proc/net/softnet_stat", "00001000 0000000a 00000100\n00001000 00000001 00000000");
  machine.set("proc/net/stat/nf_conntrack",
              "entries clashres found insert_failed drop early_drop\n"
              "00000010 00000000 00000000 00000000 00000002 00000003\n"
              "00000010 00000000 00000000 00000000 00000000 00000001");
  plan = machine.plan("eth0");
  CHECK(wanted(plan, kBacklog) == "2000");
  CHECK_THAT(itemOf(plan, kBacklog)->why,
             Catch::Contains("11 packets dropped") && Catch::Contains("softnet_stat, column 2"));
  CHECK(wanted(plan, kBudget) == "600");
  CHECK(wanted(plan, kConntrack) == "131072");
  CHECK_THAT(itemOf(plan, kConntrack)->why, Catch::Contains("6 connections dropped"));

  // After it was applied only more drops double it again.
  Record record;
  record.counters = plan.counters;
  record.entries[kBacklog] = {"1000", "2000"};
  record.entries[kConntrack] = {"65536", "131072"};
  machine.set(kBacklog, "2000");
  machine.set(kConntrack, "131072");
  plan = machine.plan("eth0", {}, record);
  CHECK(wanted(plan, kBacklog) == "2000");
  CHECK(wanted(plan, kConntrack) == "131072");
  CHECK(wanted(plan, kBudget) == kNone);
  machine.set("proc/net/softnet_stat", "00001000 0000000b 00000100\n00001000 00000001 00000000");
  CHECK(wanted(machine.plan("eth0", {}, record), kBacklog) == "4000");
}

TEST_CASE("planning on what is applied already changes nothing") {
  RecordedMachine machine = sixteenCores();
  Record record;
  for (const Item& item : machine.plan("eth0").items) {
    record.entries[item.path] = {item.current, item.wanted};
    machine.set(item.path, item.wanted);
  }
  const Plan again = machine.plan("eth0", {}, record);
  CHECK(again.items.size() == record.entries.size());
  for (const Item& item : again.items) {
    INFO(item.path);
    CHECK_FALSE(item.changes());
  }
}

TEST_CASE("a container without net.core: the rest is planned, and one line says what is absent") {
  RecordedMachine machine = container();
  const Plan plan = machine.plan("eth0");
  CHECK(wanted(plan, kCongestion) == "bbr");
  CHECK(wanted(plan, rps("eth0")) == "000000ff");
  CHECK(remarked(plan, "does not have /proc/sys/net/core/rps_sock_flow_entries"));
  CHECK(remarked(plan, "on the host"));
}

TEST_CASE("a NIC that is absent is an error") {
  RecordedMachine machine = oneQueueVm();
  Request request;
  request.nics = {"eth7"};
  const auto plan = makePlan(machine.machine(), request, {});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ENODEV);
}
