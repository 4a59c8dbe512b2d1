#include <catch2/catch.hpp>

#include "recorded_machine.hpp"
#include "scratch.hpp"
#include "tune/apply.hpp"

using namespace adit;
using namespace adit::tune;
using namespace adit::tune::testing;

namespace {

constexpr const char* kCongestion = "proc/sys/net/ipv4/tcp_congestion_control";

std::string rps(const std::string& nic, unsigned queue = 0) {
  return fmt::format("sys/class/net/{}/queues/rx-{}/rps_cpus", nic, queue);
}
std::string irq(unsigned number) {
  return fmt::format("proc/irq/{}/smp_affinity_list", number);
}

/// A machine, and what was applied to it.
struct Tuned {
  RecordedMachine machine;
  std::string nic;
  Settings settings = {};
  Record record = {};
  std::vector<Record> saved = {};

  ApplyReport apply() {
    Request request;
    request.nics = {nic};
    request.tunnels = {"adit0"};
    request.settings = settings;
    auto report = tuneMachine(machine.machine(), request, record, [&](const Record& now) {
      saved.push_back(now);
      return Result<void>{};
    });
    REQUIRE(report);
    return *std::move(report);
  }
};

/// The files that are tuned; what the kernel computes from them is left out.
std::map<std::string, std::string> tunables(const RecordedMachine& machine) {
  std::map<std::string, std::string> files = machine.all();
  std::erase_if(files,
                [](const auto& file) { return file.first.find("effective") != std::string::npos; });
  return files;
}

std::size_t count(const ApplyReport& report, Outcome outcome) {
  return static_cast<std::size_t>(
      std::ranges::count(report.results, outcome, &ItemResult::outcome));
}

}  // namespace

TEST_CASE("apply writes, reads back and records; revert leaves every byte as before") {
  const auto machines = {std::pair{oneQueueVm(), "eth0"}, std::pair{celeronNas(), "enp3s0"},
                         std::pair{sixteenCores(), "eth0"}, std::pair{twoNodes(), "ens1"},
                         std::pair{armBoard(), "end0"}};
  for (const auto& [machine, nic] : machines) {
    INFO(nic);
    const auto before = tunables(machine);
    Tuned tuned{machine, nic};
    const ApplyReport report = tuned.apply();
    CHECK(report.ok());
    CHECK(report.warnings.empty());
    CHECK(count(report, Outcome::Done) == report.results.size());
    CHECK(tunables(tuned.machine) != before);
    for (const Standing& each : standing(tuned.machine.machine(), tuned.record)) {
      CHECK(each.holds);
    }
    CHECK(revert(tuned.machine.machine(), tuned.record).empty());
    CHECK(tuned.record.entries.empty());
    CHECK(tunables(tuned.machine) == before);
  }
}

TEST_CASE("case 62: the effective affinity is read back") {
  Tuned tuned{celeronNas(), "enp3s0"};
  const ApplyReport report = tuned.apply();
  for (const ItemResult& result : report.results) {
    const bool interrupt = result.item.path.starts_with("proc/irq/");
    CHECK(result.effective == (interrupt ? result.item.wanted : ""));
  }
  for (const Standing& each : standing(tuned.machine.machine(), tuned.record)) {
    CHECK(each.effective.empty() != each.path.starts_with("proc/irq/"));
  }
}

TEST_CASE("case 62: an irqbalance that came since has the interrupts, and nobody complains") {
  Tuned tuned{celeronNas(), "enp3s0"};
  tuned.apply();
  tuned.machine.set("proc/900/comm", "irqbalance");
  tuned.machine.set("proc/900/cmdline", "irqbalance");
  tuned.machine.set(irq(127), "1");
  const ApplyReport report = tuned.apply();
  CHECK(report.warnings.empty());
  CHECK(tuned.machine.text(irq(127)) == "1");
  CHECK(tuned.machine.text(irq(128)) == "0-1");
  CHECK_FALSE(tuned.record.entries.contains(irq(127)));
  REQUIRE_FALSE(report.remarks.empty());
}

TEST_CASE("applying twice writes nothing the second time") {
  Tuned tuned{twoNodes(), "ens1"};
  tuned.apply();
  tuned.machine.writes.clear();
  tuned.saved.clear();
  const ApplyReport again = tuned.apply();
  CHECK(tuned.machine.writes.empty());
  CHECK(tuned.saved.empty());
  CHECK(count(again, Outcome::Already) == again.results.size());
}

TEST_CASE("the old values are saved before the first write") {
  Tuned tuned{oneQueueVm(), "eth0"};
  const auto before = tunables(tuned.machine);
  Request request;
  request.nics = {"eth0"};
  std::optional<Record> first;
  const auto report = tuneMachine(tuned.machine.machine(), request, tuned.record,
                                  [&](const Record& record) -> Result<void> {
                                    if (!first) {
                                      CHECK(tuned.machine.writes.empty());
                                      first = record;
                                    }
                                    return {};
                                  });
  REQUIRE(report);
  // Killed right after the last write, the next one reverts by that record alone.
  CHECK(revert(tuned.machine.machine(), *first).empty());
  CHECK(tunables(tuned.machine) == before);

  // Where it cannot be saved nothing is written.
  tuned.machine.writes.clear();
  Record none;
  CHECK_FALSE(tuneMachine(tuned.machine.machine(), request, none,
                          [](const Record&) -> Result<void> { return fail("no space"); }));
  CHECK(tuned.machine.writes.empty());
}

TEST_CASE("case 62: what a link reset or a hot-plugged CPU undid is applied again") {
  Tuned tuned{sixteenCores(), "eth0"};
  tuned.machine.setOnline("0-7");
  tuned.apply();
  const std::string before = tuned.machine.text(rps("adit0"));
  // The driver puts its interrupts back when the link goes down and up.
  tuned.machine.set(irq(63), "0-7");
  for (const Standing& each : standing(tuned.machine.machine(), tuned.record)) {
    CHECK(each.holds == (each.path != irq(63)));
  }
  tuned.apply();
  CHECK(tuned.machine.text(irq(63)) == "2");
  tuned.machine.setOnline("0-15");
  tuned.apply();
  CHECK(tuned.machine.text(rps("adit0")) == "ffff");
  CHECK(before == "00ff");
  CHECK(tuned.machine.text(rps("eth0", 3)) == "ff00");
  CHECK(revert(tuned.machine.machine(), tuned.record).empty());
  CHECK(tuned.machine.text(rps("adit0")) == "0000");
}

TEST_CASE("a queue that appears is tuned; one that has gone is no trouble to revert") {
  Tuned tuned{container(), "eth0"};
  tuned.machine.allow("sys/");
  tuned.machine.allow("proc/sys/");
  tuned.apply();
  tuned.machine.setQueues("eth0", 4, 4);
  tuned.apply();
  CHECK(tuned.machine.text(rps("eth0", 3)) == "ff");
  CHECK(tuned.machine.text("sys/class/net/eth0/queues/tx-1/xps_cpus") == "22");
  tuned.machine.setQueues("eth0", 1, 1);
  CHECK(revert(tuned.machine.machine(), tuned.record).empty());
  CHECK(tuned.machine.text(rps("eth0", 0)) == "00");
}

TEST_CASE("more queues first, then the rest for those that there are") {
  Tuned tuned{sixteenCores(), "eth0"};
  const auto before = tunables(tuned.machine);
  tuned.machine.channelsOf["eth0"] = {8, 16};
  tuned.machine.onChannels = [&](const std::string& nic, unsigned queues) {
    tuned.machine.setQueues(nic, queues, queues);
    // As a driver does.
    tuned.machine.set(irq(61), "7");
    tuned.machine.set(irq(64), "3");
  };
  tuned.apply();
  CHECK(tuned.machine.channelsOf["eth0"].combined == 16);
  CHECK(tuned.machine.writes.front() == channelsPath("eth0"));
  CHECK(tuned.machine.text(rps("eth0", 15)) == "ff00");
  CHECK(revert(tuned.machine.machine(), tuned.record).empty());
  CHECK(tuned.machine.channelsOf["eth0"].combined == 8);
  CHECK(tunables(tuned.machine) == before);
}

TEST_CASE("a driver that refuses more queues keeps those it has; the rest goes on") {
  Tuned tuned{sixteenCores(), "eth0"};
  tuned.machine.channelsOf["eth0"] = {8, 16};
  tuned.machine.refuse("ethtool/eth0", EINVAL);
  const ApplyReport report = tuned.apply();
  CHECK(report.ok());
  CHECK(count(report, Outcome::Refused) == 1);
  CHECK(tuned.machine.text(irq(61)) == "0");
}

TEST_CASE("interrupts that cannot move are one line") {
  for (const int code : {EIO, EPERM, EROFS}) {
    Tuned tuned{sixteenCores(), "eth0"};
    tuned.machine.refuse("proc/irq/", code);
    const ApplyReport report = tuned.apply();
    CHECK(report.ok());
    CHECK(count(report, Outcome::Refused) == 8);
    REQUIRE(report.warnings.size() == 1);
    CHECK_THAT(report.warnings.front(), Catch::Contains("cannot be moved here") &&
                                            Catch::Contains(std::strerror(code)) &&
                                            Catch::Contains("61, 62, 63"));
    // What could not be written is not put back either.
    CHECK_FALSE(tuned.record.entries.contains(irq(61)));
    CHECK(tuned.machine.text(rps("adit0")) == "ffff");
  }
}

TEST_CASE("exhausted vectors: another CPU is tried, and holds") {
  Tuned tuned{sixteenCores(), "eth0"};
  tuned.machine.exhaust(2);
  tuned.machine.exhaust(3);
  const ApplyReport report = tuned.apply();
  CHECK(report.ok());
  CHECK(tuned.machine.text(irq(63)) == "4");
  CHECK(tuned.machine.text(irq(64)) == "4");
  CHECK(report.warnings.empty());
  tuned.machine.writes.clear();
  tuned.apply();
  CHECK(tuned.machine.writes.empty());
  CHECK(revert(tuned.machine.machine(), tuned.record).empty());
  CHECK(tuned.machine.text(irq(63)) == "0-15");
}

TEST_CASE("what the kernel calls malformed is a mistake of ours and says so") {
  Tuned tuned{oneQueueVm(), "eth0"};
  tuned.machine.refuse(rps("eth0"), EINVAL);
  const ApplyReport report = tuned.apply();
  CHECK_FALSE(report.ok());
  CHECK(count(report, Outcome::Failed) == 1);
  CHECK_THAT(report.warnings.front(), Catch::Contains("please report"));
}

TEST_CASE("case 66: a kernel without BBR keeps what it has, with one warning") {
  Tuned tuned{oneQueueVm(), "eth0"};
  tuned.machine.congestionControls = {"reno", "cubic"};
  const ApplyReport report = tuned.apply();
  CHECK(report.ok());
  CHECK(tuned.machine.text(kCongestion) == "cubic");
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front() == "this kernel has no TCP congestion control bbr; it stays cubic");
  CHECK_FALSE(tuned.record.entries.contains(kCongestion));

  // In a container the list does not name it, and it works all the same.
  Tuned hidden{oneQueueVm(), "eth0"};
  hidden.machine.set("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic");
  hidden.apply();
  CHECK(hidden.machine.text(kCongestion) == "bbr");
  revert(hidden.machine.machine(), hidden.record);
  CHECK(hidden.machine.text(kCongestion) == "cubic");
}

TEST_CASE("case 66: a read-only /proc/sys is one line that names the host, and nothing fails") {
  Tuned tuned{container(), "eth0"};
  const auto before = tunables(tuned.machine);
  const ApplyReport report = tuned.apply();
  CHECK(report.ok());
  CHECK(tunables(tuned.machine) == before);
  REQUIRE(report.warnings.size() == 2);
  CHECK_THAT(report.warnings[0],
             Catch::Contains("Read-only file system") && Catch::Contains("on the host"));
  CHECK(tuned.record.entries.empty());
}

TEST_CASE("what somebody else changed since stays") {
  Tuned tuned{celeronNas(), "enp3s0"};
  tuned.apply();
  tuned.machine.set(kCongestion, "reno");
  const auto lines = revert(tuned.machine.machine(), tuned.record);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines.front(), Catch::Contains("tcp_congestion_control was changed to \"reno\""));
  CHECK(tuned.machine.text(kCongestion) == "reno");
  CHECK(tuned.record.entries.empty());
}

TEST_CASE("what is not asked for any more is put back") {
  Tuned tuned{celeronNas(), "enp3s0"};
  tuned.apply();
  CHECK(tuned.machine.text(kCongestion) == "bbr");
  tuned.settings.congestionControl.mode = Setting<std::string>::Mode::Off;
  tuned.apply();
  CHECK(tuned.machine.text(kCongestion) == "cubic");
  CHECK_FALSE(tuned.record.entries.contains(kCongestion));
  CHECK(tuned.record.entries.contains(irq(127)));
}

TEST_CASE("the record survives as a file, ends with the boot, and holds nothing of others") {
  const std::filesystem::path folder = adit::testing::makeScratch("adit-tune");
  const std::filesystem::path file = folder / "adit0/tune.json";
  Tuned tuned{celeronNas(), "enp3s0"};
  tuned.machine.set("proc/net/softnet_stat", "00001000 0000000a 00000100");
  CHECK(Record::load(file, tuned.machine)->entries.empty());
  tuned.apply();
  tuned.record.boot = Record::load(file, tuned.machine)->boot;
  REQUIRE(tuned.record.save(file));
  const Record loaded = Record::load(file, tuned.machine).value();
  CHECK(loaded.entries == tuned.record.entries);
  CHECK(loaded.counters == tuned.record.counters);

  RecordedMachine rebooted = celeronNas();
  rebooted.set("proc/sys/kernel/random/boot_id", "another");
  CHECK(Record::load(file, rebooted)->entries.empty());

  Record tampered = tuned.record;
  tampered.entries["proc/sys/kernel/core_pattern"] = {"x", "y"};
  tampered.entries["proc/irq/127/../../sys/kernel/core_pattern"] = {"0", "1"};
  tampered.entries["sys/class/net/../queues/rx-0/rps_cpus"] = {"0", "1"};
  tampered.entries["proc/sys/net/ipv4/tcp_rmem"] = {"|/bin/sh", "1 2 3"};
  REQUIRE(tampered.save(file));
  Record expected = tuned.record;
  expected.entries.erase("proc/sys/net/ipv4/tcp_rmem");
  CHECK(Record::load(file, tuned.machine)->entries == expected.entries);

  REQUIRE(Record{}.save(file));
  CHECK_FALSE(std::filesystem::exists(file));
  std::filesystem::remove_all(folder);
}

TEST_CASE("only files of tuning are written, with values of their form") {
  for (const auto& [path, value] : std::vector<std::pair<std::string, std::string>>{
           {"sys/class/net/eth0.5/queues/rx-12/rps_cpus", "0000000f,ffffffff"},
           {"sys/class/net/eth0/queues/tx-0/xps_cpus", "0"},
           {"sys/class/net/eth0/queues/rx-0/rps_flow_cnt", "4096"},
           {"proc/irq/127/smp_affinity_list", "0-3,8"},
           {"proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456"},
           {"proc/sys/net/ipv4/tcp_congestion_control", "bbr"},
           {"proc/sys/net/netfilter/nf_conntrack_max", "65536"}}) {
    INFO(path);
    CHECK(checkWrite(path, value));
  }
  for (const auto& [path, value] : std::vector<std::pair<std::string, std::string>>{
           {"", "1"},
           {"proc/sys/kernel/core_pattern", "1"},
           {"proc/sys/net/ipv4/ip_forward", "1"},
           {"/proc/sys/net/core/rmem_max", "1"},
           {"proc/sys/net/core/../core/rmem_max", "1"},
           {"sys/class/net/../queues/rx-0/rps_cpus", "1"},
           {"sys/class/net/eth0/queues/rx-0/../rps_cpus", "1"},
           {"sys/class/net/eth0/queues/rx-x/rps_cpus", "1"},
           {"sys/class/net/eth0/queues/tx-0/rps_cpus", "1"},
           {"sys/class/net/eth0/device/remove", "1"},
           {"proc/irq/default_smp_affinity", "1"},
           {"proc/irq/1x/smp_affinity_list", "1"},
           {"proc/irq/1/smp_affinity", "1"},
           {"proc/irq/1/smp_affinity_list", "1\n2"},
           {"proc/irq/1/smp_affinity_list", ""},
           {"proc/sys/net/core/rmem_max", "-1"},
           {"proc/sys/net/ipv4/tcp_congestion_control", "a;b"},
           {"ethtool/eth0/combined", "4"},
           {"proc/sys/net/core/rmem_max", std::string(5000, '1')}}) {
    INFO(path << " = " << value);
    CHECK_FALSE(checkWrite(path, value));
  }
}
