#include <catch2/catch.hpp>

#include "recorded_machine.hpp"
#include "scratch.hpp"
#include "tune/interrupts.hpp"
#include "tune/topology.hpp"

using namespace adit;
using namespace adit::tune;
using namespace adit::tune::testing;

namespace {

std::vector<unsigned> numbers(const Nic& nic) {
  std::vector<unsigned> result;
  for (const NicIrq& irq : nic.irqs) {
    result.push_back(irq.number);
  }
  return result;
}

}  // namespace

TEST_CASE("case 60: the interrupts of a NIC are its own, and no control vectors") {
  const RecordedMachine big = sixteenCores();
  const Nic eth0 = readNic(big, "eth0").value();
  CHECK(numbers(eth0) == std::vector<unsigned>{61, 62, 63, 64, 65, 66, 67, 68});
  CHECK(eth0.irqs[3].queue == 3);
  CHECK_THAT(eth0.irqSource, Catch::EndsWith("0000:18:00.0/msi_irqs"));
  // By name where sysfs says nothing; eth1 is no part of eth10, nor the other way round.
  CHECK(numbers(readNic(big, "eth1").value()) == std::vector<unsigned>{80});
  CHECK(numbers(readNic(big, "eth10").value()) == std::vector<unsigned>{81});

  // igb's plain name is its vector for the link.
  CHECK(numbers(readNic(celeronNas(), "enp3s0").value()) == std::vector<unsigned>{127, 128});

  // mlx5 by its PCI address, also without msi_irqs.
  RecordedMachine mlx = twoNodes();
  CHECK(readNic(mlx, "ens1").value().irqs.size() == 63);
  for (unsigned irq = 200; irq < 264; ++irq) {
    mlx.remove(fmt::format("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/msi_irqs/{}", irq));
  }
  const Nic byAddress = readNic(mlx, "ens1").value();
  CHECK(byAddress.irqSource == "proc/interrupts");
  CHECK(byAddress.irqs.size() == 63);
  CHECK(byAddress.irqs.front().number == 201);
}

TEST_CASE("case 60: a legacy line is taken only where nobody's MSI has its number") {
  RecordedMachine machine(2, "0-1");
  machine.addNic({.name = "eth0", .pci = "pci0000:00/0000:00:19.0"});
  machine.set("sys/devices/pci0000:00/0000:00:19.0/irq", "255");
  machine.addInterrupt(255, "PCI-MSIX-0000:01:00.0   3-edge", "nvme0q3");
  CHECK(readNic(machine, "eth0").value().irqs.empty());
  machine.set("sys/devices/pci0000:00/0000:00:19.0/irq", "20");
  machine.addInterrupt(20, "IO-APIC   20-fasteoi", "ehci_hcd:usb1, e1000");
  CHECK(numbers(readNic(machine, "eth0").value()) == std::vector<unsigned>{20});
}

TEST_CASE("case 61: virtio's vectors hang on the PCI parent, and other virtio devices are others") {
  const Nic eth0 = readNic(oneQueueVm(), "eth0").value();
  CHECK(numbers(eth0) == std::vector<unsigned>{38, 39});
  CHECK(eth0.irqQueues() == 1);
  CHECK_THAT(eth0.irqSource, Catch::EndsWith("0000:00:03.0/msi_irqs"));
}

TEST_CASE("ARM: interrupts of a platform device by whole names, those for packets") {
  const Nic end0 = readNic(armBoard(), "end0").value();
  CHECK(numbers(end0) == std::vector<unsigned>{46, 47});
  CHECK(end0.irqQueues() == 1);
}

TEST_CASE("the columns of /proc/interrupts go by the names in its header") {
  // CPU 1 is offline.
  const auto rows = parseInterrupts(
      "            CPU0       CPU2\n"
      "  38:          5          6  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n"
      "  16:          1          2  IR-IO-APIC   16-fasteoi   ehci_hcd:usb1, eth0\n"
      "  46:          1          2     GICv3  79 Level     end0:rx-0\n"
      "  47:          1          2  irq-mvebu eth7\n"
      "  90:          1          2  PCI-MSI 1048577-edge      0000:01:00.4 (queue 3)\n"
      " NMI:          0          0   Non-maskable interrupts\n");
  REQUIRE(rows);
  REQUIRE(rows->size() == 5);
  CHECK((*rows)[0].action == "virtio2-input.0");
  CHECK((*rows)[0].source == "PCI-MSIX-0000:00:03.0 1-edge");
  CHECK((*rows)[1].action == "ehci_hcd:usb1, eth0");
  CHECK((*rows)[2].action == "end0:rx-0");
  CHECK((*rows)[3].action == "eth7");
  CHECK((*rows)[4].action == "0000:01:00.4 (queue 3)");
  CHECK_FALSE(parseInterrupts("no header\n"));
}

TEST_CASE("case 60: names of vectors") {
  CHECK(namesWhole("i40e-eth1-TxRx-0", "eth1"));
  CHECK_FALSE(namesWhole("eth10-TxRx-0", "eth1"));
  CHECK_FALSE(namesWhole("veth1-rx", "eth1"));
  CHECK(namesWhole("eth10-x eth1", "eth1"));
  CHECK_FALSE(namesWhole("eth1", ""));
  CHECK(queueOfVector("i40e-ten0-TxRx-7") == 7U);
  CHECK(queueOfVector("mlx5_comp12@pci:0000:81:00.0") == 12U);
  CHECK(queueOfVector("eth0-Tx-Rx-3") == 3U);
  CHECK(queueOfVector("0000:01:00.4 (queue 3)") == 3U);
  CHECK_FALSE(queueOfVector("eth0"));
  CHECK_FALSE(queueOfVector("enp3s0"));
  for (const char* control :
       {"virtio2-config", "mlx5_async0@pci:0000:81:00.0", "end0:mac", "i40e-0000:18:00.0:misc",
        "ena-mgmnt@pci:0000:00:05.0", "eth0-event-4", "iavf-0000:18:02.0:mbx-mailbox"}) {
    INFO(control);
    CHECK(isControlVector(control));
  }
  for (const char* data : {"eth0-TxRx-0", "virtio2-input.0", "mlx5_comp3@pci:x", "eth0"}) {
    INFO(data);
    CHECK_FALSE(isControlVector(data));
  }
}

TEST_CASE("CPUs and nodes: holes, and a node that is all offline") {
  RecordedMachine machine(8, "0,2,4-5");
  machine.addNode(0, "0-3");
  machine.addNode(1, "6-7");
  machine.addNic({.name = "eth0", .pci = "pci0000:00/0000:00:03.0", .node = 1});
  const Topology topology = readTopology(machine).value();
  CHECK(topology.online == CpuSet{0, 2, 4, 5});
  CHECK(topology.nodes.at(0) == CpuSet{0, 2});
  CHECK_FALSE(topology.nodes.contains(1));
  CHECK(topology.near(readNic(machine, "eth0").value()) == topology.online);
  machine.remove("sys/devices/system/cpu/online");
  CHECK_FALSE(readTopology(machine));
}

TEST_CASE("a NIC's parameters, and one that is absent") {
  const Nic ens1 = readNic(twoNodes(), "ens1").value();
  CHECK(ens1.node == 1U);
  CHECK(ens1.speed == 100'000'000'000ULL);
  CHECK(ens1.rxQueues.size() == 63);
  CHECK(ens1.rxQueues[10] == 10);
  const auto absent = readNic(twoNodes(), "eth7");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ENODEV);
}

TEST_CASE("the NIC of the default route") {
  RecordedMachine machine(1, "0");
  CHECK(defaultNic(machine).empty());
  machine.set("proc/net/ipv6_route",
              "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
              "fe800000000000000000000000000001 00000400 00000000 00000000 00000003 eth6");
  CHECK(defaultNic(machine) == "eth6");
  machine.set("proc/net/route",
              "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
              "wlan0 00000000 0101A8C0 0003 0 0 600 00000000 0 0 0\n"
              "eth0 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0\n"
              "eth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0");
  CHECK(defaultNic(machine) == "eth0");
}

TEST_CASE("a recorded machine in a folder reads as in memory, and does not lead out of it") {
  const std::filesystem::path folder = adit::testing::makeScratch("adit-tune");
  twoNodes().saveTo(folder);
  RootedFiles files(folder);
  const Nic ens1 = readNic(files, "ens1").value();
  CHECK(ens1.irqs.size() == 63);
  CHECK(ens1.node == 1U);
  CHECK(readTopology(files).value().nodes.size() == 2);
  std::filesystem::create_directory_symlink("/proc/self", folder / "sys/class/net/out");
  CHECK_FALSE(readNic(files, "out"));
  std::filesystem::remove_all(folder);
}
