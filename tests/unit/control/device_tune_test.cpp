#include <catch2/catch.hpp>

#include "config/parser.hpp"
#include "control/device_tune.hpp"
#include "control/privileged_tune.hpp"
#include "control/tune_request.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;

namespace {

using CpuMode = tune::Setting<tune::Cpus>::Mode;
using NumberMode = tune::Setting<std::uint64_t>::Mode;

config::TuneConfig tuneOf(config::TuneConfig::Profile profile,
                          const std::vector<std::pair<std::string, std::string>>& keys) {
  config::TuneConfig tune;
  tune.profile = profile;
  for (const auto& [key, value] : keys) {
    tune.settings.push_back({key, value, {}});
  }
  return tune;
}

/// A machine with eth0 (IRQ 24) below a bridge br0, wlan0 (IRQ 30), and a tunnel.
void recordMachine(const ScratchDirectory& root) {
  root.write("sys/devices/system/cpu/online", "0-1\n");
  root.write("sys/class/net/eth0/device/msi_irqs/24", "msix\n");
  root.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n");
  root.write("sys/class/net/wlan0/device/msi_irqs/30", "msix\n");
  root.write("sys/class/net/wlan0/queues/rx-0/rps_cpus", "0\n");
  root.write("sys/class/net/adit0/queues/rx-0/rps_cpus", "0\n");
  root.write("sys/class/net/br0/lower_eth0/ifindex", "2\n");
  root.write("proc/interrupts",
             "       CPU0 CPU1\n 24: 0 0 PCI-MSI 0-edge eth0\n 30: 0 0 PCI-MSI 1-edge wlan0\n");
  root.write("proc/irq/24/smp_affinity_list", "0-1\n");
  root.write("proc/irq/30/smp_affinity_list", "0-1\n");
  root.write("proc/sys/net/core/rmem_max", "212992\n");
  root.write("proc/net/route",
             "Iface Destination Gateway Flags RefCnt Use Metric Mask\n"
             "br0 00000000 0101A8C0 0003 0 0 0 00000000\n");
}

}  // namespace

TEST_CASE("[Tune]: auto computes what is left open, explicit leaves it alone", "[tune]") {
  using Profile = config::TuneConfig::Profile;
  CHECK_FALSE(wantsTuning(tuneOf(Profile::Off, {})));
  CHECK(wantsTuning(tuneOf(Profile::Auto, {})));

  tune::Settings settings =
      tuneSettings(tuneOf(Profile::Auto, {{"Rps", "eth0:0-3"}, {"Irq", "off"}, {"Buffers", "4M"}}));
  CHECK(settings.rps.isGiven());
  CHECK(settings.rps.value.interface == "eth0");
  CHECK(settings.rps.value.list == "0-3");
  CHECK(settings.irq.isOff());
  CHECK(settings.buffers.value == 4U << 20);
  CHECK(settings.xps.isAuto());
  CHECK(settings.congestionControl.isAuto());

  settings = tuneSettings(tuneOf(Profile::Explicit, {{"Rps", "ALL"},
                                                     {"Rfs", "65536"},
                                                     {"Xps", "eth1:auto"},
                                                     {"CongestionControl", "cubic"},
                                                     {"Backlog", "auto"}}));
  CHECK(settings.rps.value.list == "all");
  CHECK(settings.rfs.value == 65536);
  CHECK(settings.xps.mode == CpuMode::Auto);
  CHECK(settings.xps.value.interface == "eth1");
  CHECK(settings.congestionControl.value == "cubic");
  CHECK(settings.backlog.mode == NumberMode::Auto);
  CHECK(settings.buffers.isOff());
  CHECK(settings.qdisc.isOff());
  CHECK(settings.conntrack.isOff());
  CHECK(settings.irq.isOff());
}

TEST_CASE("the NICs of a configuration: behind Public or the default route, and named", "[tune]") {
  ScratchDirectory root;
  recordMachine(root);
  const tune::RootedFiles files(root.path());
  config::Config config;
  config.tune = tuneOf(config::TuneConfig::Profile::Auto, {});
  CHECK(tuneRequest(config, "adit0", files).nics == std::vector<std::string>{"eth0"});
  CHECK(tuneRequest(config, "adit0", files).tunnels == std::vector<std::string>{"adit0"});
  config.interface.publicInterface = "wlan0";
  CHECK(tuneRequest(config, "adit0", files).nics == std::vector<std::string>{"wlan0"});
  config.interface.publicInterface = "eth9";
  CHECK(tuneRequest(config, "adit0", files).nics.empty());
  config.tune = tuneOf(config::TuneConfig::Profile::Auto, {{"Rps", "eth0:all"}});
  CHECK(tuneRequest(config, "adit0", files).nics == std::vector<std::string>{"eth0"});
}

TEST_CASE("root writes only what the configuration leads to", "[tune][privileged]") {
  ScratchDirectory root;
  recordMachine(root);
  TuneWriter writer("adit-test-none", root.path());
  config::Config config;
  config.interface.publicInterface = "br0";
  const std::string eth0 = "sys/class/net/eth0/queues/rx-0/rps_cpus";
  // Without [Tune] nothing, nor without a configuration.
  CHECK(writer.write(&config, eth0, "3").error().code == 0);
  CHECK(writer.write(nullptr, eth0, "3").error().code == 0);
  config.tune = tuneOf(config::TuneConfig::Profile::Auto, {});
  CHECK(writer.write(&config, eth0, "3"));
  CHECK(root.read(eth0) == "3");
  CHECK(writer.write(&config, "proc/irq/24/smp_affinity_list", "1"));
  CHECK(writer.write(&config, "proc/sys/net/core/rmem_max", "425984"));
  for (const char* path : {"sys/class/net/wlan0/queues/rx-0/rps_cpus",
                           "proc/irq/30/smp_affinity_list", "proc/irq/1/smp_affinity_list",
                           "proc/sys/kernel/core_pattern", "proc/sys/net/ipv4/ip_forward"}) {
    INFO(path);
    CHECK(writer.write(&config, path, "1").error().code == 0);
  }
  CHECK(root.read("proc/irq/30/smp_affinity_list") == "0-1\n");
  CHECK(writer.write(&config, eth0, "3;x").error().code == 0);
  // What was written may be put back, whatever the file says by then.
  config.tune = tuneOf(config::TuneConfig::Profile::Off, {});
  CHECK(writer.write(&config, eth0, "0"));
  CHECK(root.read(eth0) == "0");
  // An absent file has the kernel's own code.
  config.tune = tuneOf(config::TuneConfig::Profile::Auto, {});
  CHECK(writer.write(&config, "sys/class/net/eth0/queues/rx-7/rps_cpus", "3").error().code ==
        ENOENT);
}
