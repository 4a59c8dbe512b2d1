// The recorded machines.
#include "recorded_machine.hpp"

namespace adit::tune::testing {
namespace {

void addTunnel(RecordedMachine& machine) {
  machine.addNic({.name = "adit0", .pci = ""});
}

}  // namespace

RecordedMachine oneQueueVm() {
  RecordedMachine machine(2, "0-1");
  machine.addNic(
      {.name = "eth0",
       .pci = "pci0000:00/0000:00:03.0",
       .virtio = 2,
       .irqs = {{37, "virtio2-config"}, {38, "virtio2-input.0"}, {39, "virtio2-output.0"}}});
  machine.addInterrupt(34, "PCI-MSIX-0000:00:05.0   1-edge", "virtio4-input");
  machine.addInterrupt(41, "PCI-MSIX-0000:00:04.0   1-edge", "virtio3-rx");
  addTunnel(machine);
  return machine;
}

RecordedMachine celeronNas() {
  RecordedMachine machine(2, "0-1");
  machine.addNic({.name = "enp3s0",
                  .pci = "pci0000:00/0000:00:1c.2/0000:03:00.0",
                  .rxQueues = 2,
                  .txQueues = 2,
                  .speed = 1000,
                  .irqs = {{126, "enp3s0"}, {127, "enp3s0-TxRx-0"}, {128, "enp3s0-TxRx-1"}}});
  machine.addInterrupt(125, "PCI-MSI-0000:00:17.0   0-edge", "ahci[0000:00:17.0]");
  machine.set("proc/meminfo", "MemTotal:        3921000 kB");
  addTunnel(machine);
  return machine;
}

RecordedMachine sixteenCores() {
  RecordedMachine machine(16, "0-15");
  machine.addNode(0, "0-15");
  NicSpec eth0{.name = "eth0",
               .pci = "pci0000:17/0000:17:00.0/0000:18:00.0",
               .rxQueues = 8,
               .txQueues = 8,
               .node = 0,
               .speed = 10000};
  eth0.irqs.emplace_back(60, "i40e-0000:18:00.0:misc");
  for (unsigned queue = 0; queue < 8; ++queue) {
    eth0.irqs.emplace_back(61 + queue, fmt::format("i40e-eth0-TxRx-{}", queue));
  }
  eth0.irqs.emplace_back(69, "i40e-0000:18:00.0:fdir-TxRx-0");
  machine.addNic(eth0);
  machine.channelsOf["eth0"] = {8, 8};
  // Two more, whose names hold one another, and which sysfs says nothing of.
  machine.addNic({.name = "eth1",
                  .pci = "pci0000:17/0000:17:00.1/0000:19:00.0",
                  .irqs = {{80, "i40e-eth1-TxRx-0"}},
                  .msi = false});
  machine.addNic({.name = "eth10",
                  .pci = "pci0000:17/0000:17:00.2/0000:1a:00.0",
                  .irqs = {{81, "eth10-TxRx-0"}},
                  .msi = false});
  addTunnel(machine);
  return machine;
}

RecordedMachine twoNodes() {
  RecordedMachine machine(128, "0-127");
  machine.addNode(0, "0-31,64-95");
  machine.addNode(1, "32-63,96-127");
  NicSpec ens1{.name = "ens1",
               .pci = "pci0000:80/0000:80:01.0/0000:81:00.0",
               .rxQueues = 63,
               .txQueues = 63,
               .node = 1,
               .speed = 100000};
  ens1.irqs.emplace_back(200, "mlx5_async0@pci:0000:81:00.0");
  for (unsigned queue = 0; queue < 63; ++queue) {
    ens1.irqs.emplace_back(201 + queue, fmt::format("mlx5_comp{}@pci:0000:81:00.0", queue));
  }
  machine.addNic(ens1);
  machine.channelsOf["ens1"] = {63, 63};
  machine.addInterrupt(300, "PCI-MSIX-0000:82:00.0   1-edge", "mlx5_comp0@pci:0000:82:00.0");
  addTunnel(machine);
  return machine;
}

RecordedMachine armBoard() {
  RecordedMachine machine(4, "0-3");
  machine.addNic(
      {.name = "end0",
       .pci = "platform/fe1c0000.ethernet",
       .rxQueues = 1,
       .txQueues = 1,
       .speed = 1000,
       .irqs = {{44, "end0:mac"}, {45, "end0:wol"}, {46, "end0:rx-0"}, {47, "end0:tx-0"}},
       .msi = false});
  machine.addInterrupt(48, "GICv3 113 Level", "fe2b0000.mmc");
  addTunnel(machine);
  return machine;
}

RecordedMachine container() {
  RecordedMachine machine(8, "0-7");
  machine.addNic({.name = "eth0", .pci = ""});
  for (const char* name : {"rps_sock_flow_entries", "rmem_max", "wmem_max", "netdev_max_backlog",
                           "netdev_budget", "netdev_budget_usecs", "default_qdisc"}) {
    machine.remove(std::string("proc/sys/net/core/") + name);
  }
  machine.refuse("proc/sys/", EROFS);
  machine.refuse("sys/", EROFS);
  addTunnel(machine);
  return machine;
}

}  // namespace adit::tune::testing
